import { readFileSync } from 'node:fs';

/**
 * Runs what reads the command line, before anything else has begun: what is wrong is said in one line, and the program
 * ends with the exit code 2; with `--help` it says what stands at the beginning of its files. (bench/options.ts has the
 * same for programs that are built.)
 */
export function orExplain(read, ...files) {
  if (process.argv.includes('--help')) help(process.argv[1], ...files);
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}

/** Says what stands in the comments at the beginning of files, and ends. */
export function help(...files) {
  const comments = files.map((file) => /^\/\*\*\s*(.*?)\s*\*\//s.exec(readFileSync(file, 'utf8'))[1]);
  console.log(comments.map((comment) => comment.replace(/^ ?\* ?/gm, '')).join('\n\n'));
  process.exit(0);
}
