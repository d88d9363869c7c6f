/**
 * Checks that lines of comments and of Markdown's prose end at column 120, as code does (which the formatter sees to).
 * Tables, blocks of code and the addresses of links may be wider, and pages that programs write are not looked at.
 *
 *     node scripts/check-comments.mjs
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const WIDTH = 120;
const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['.', 'bench', 'bin', 'docs', 'examples', 'native', 'scripts', 'src', 'test'];
/** Node's headers. */
const FOREIGN = join(root, 'native', 'include');
/** Written by `npm run figures`, `conformance` and `docs`. */
const WRITTEN = /^docs\/(results\.md|conformance\.md|figures\/|api\/)/;

/** Tables, code by indentation, addresses, HTML, and messages: a line that is one span of code. */
const NO_PROSE = /^\s*\||^ {4}|^\s*\[[^\]]*\]: |^\s*<|^\s*`[^`]*`[.,:;]?$/;

const wide = [];
for (const folder of FOLDERS) {
  for (const entry of readdirSync(join(root, folder), { recursive: folder !== '.', withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || file.startsWith(FOREIGN) || WRITTEN.test(relative(root, file))) continue;
    const find = /\.([cm]?[jt]s|cc?|h|sh)$/.test(entry.name)
      ? comments
      : entry.name.endsWith('.md')
        ? prose
        : undefined;
    if (find === undefined) continue;
    for (const [i, text] of find(readFileSync(file, 'utf8').split('\n'), file)) {
      const columns = [...text].length;
      if (columns > WIDTH) wide.push(`${relative(root, file)}:${i + 1}: ${columns} columns`);
    }
  }
}
if (wide.length > 0) {
  console.error(`Comments or prose wider than ${WIDTH} columns; break the lines:\n${wide.join('\n')}`);
  process.exitCode = 1;
}

/** Lines of comments, with their numbers from 0. */
function* comments(lines, file) {
  const comment = file.endsWith('.sh') ? /^\s*#/ : /^\s*(\/\/|\/?\*)/;
  for (const [i, line] of lines.entries()) if (comment.test(line)) yield [i, line];
}

/** Lines of prose, without the addresses of links. */
function* prose(lines) {
  let fence;
  for (const [i, line] of lines.entries()) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark !== undefined && (fence === undefined || line.trim() === fence))
      fence = fence === undefined ? mark : undefined;
    else if (fence === undefined && !NO_PROSE.test(line)) yield [i, line.replace(/\]\([^)]*\)/g, ']()')];
  }
}
