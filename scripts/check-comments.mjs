/**
 * Checks that lines of comments end at column 120, as code does (which the formatter sees to).
 *
 *     node scripts/check-comments.mjs
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const WIDTH = 120;
const root = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['.', 'bench', 'bin', 'examples', 'native', 'scripts', 'src', 'test'];
/** Node's headers. */
const FOREIGN = join(root, 'native', 'include');

const wide = [];
for (const folder of FOLDERS) {
  for (const entry of readdirSync(join(root, folder), { recursive: folder !== '.', withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || !/\.([cm]?[jt]s|cc?|h|sh)$/.test(entry.name) || file.startsWith(FOREIGN)) continue;
    for (const [i, line] of readFileSync(file, 'utf8').split('\n').entries()) {
      const comment = (file.endsWith('.sh') ? /^\s*#/ : /^\s*(\/\/|\/?\*)/).test(line);
      if (comment && [...line].length > WIDTH)
        wide.push(`${relative(root, file)}:${i + 1}: ${[...line].length} columns`);
    }
  }
}
if (wide.length > 0) {
  console.error(`Comments that are wider than ${WIDTH} columns; break them:\n${wide.join('\n')}`);
  process.exitCode = 1;
}
