/**
 * Runs what reads the command line, before anything else has begun: what is wrong is said in one line, and the program
 * ends with the exit code 2. (bench/options.ts has the same for programs that are built.)
 */
export function orExplain(read) {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    console.error(error.message);
    process.exit(2);
  }
}
