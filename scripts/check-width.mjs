/**
 * Checks that lines of code, comments and Markdown's prose end at column 120. The formatter breaks most code; what it
 * leaves are strings, which `+` continues, and lines of text in templates, which a backslash at their end continues.
 * Wider may be: a line that is one regular expression; tables, blocks of code and the addresses of links of Markdown.
 * Pages that programs write are not looked at.
 *
 *     node scripts/check-width.mjs
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

/** A line that is one regular expression. */
const EXPRESSION = /^\s*\/.*\/[a-z]*[,;]?$/;

/** Tables, code by indentation, addresses, HTML, and messages: a line that is one span of code. */
const NO_PROSE = /^\s*\||^ {4}|^\s*\[[^\]]*\]: |^\s*<|^\s*`[^`]*`[.,:;]?$/;

const wide = [];
for (const folder of FOLDERS) {
  for (const entry of readdirSync(join(root, folder), { recursive: folder !== '.', withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || file.startsWith(FOREIGN) || WRITTEN.test(relative(root, file))) continue;
    const find = /\.([cm]?[jt]s|cc?|h|sh)$/.test(entry.name) ? code : entry.name.endsWith('.md') ? prose : undefined;
    if (find === undefined) continue;
    for (const [i, text] of find(readFileSync(file, 'utf8').split('\n'))) {
      const columns = [...text].length;
      if (columns > WIDTH) wide.push(`${relative(root, file)}:${i + 1}: ${columns} columns`);
    }
  }
}
if (wide.length > 0) {
  console.error(`Lines wider than ${WIDTH} columns:\n${wide.join('\n')}`);
  process.exitCode = 1;
}

/** Lines of code and comments, with their numbers from 0. */
function* code(lines) {
  for (const [i, line] of lines.entries()) if (!EXPRESSION.test(line)) yield [i, line];
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
