/**
 * What `npm pack` and `npm publish` run before and after they read the package's files.
 *
 *     node scripts/pack.mjs before   builds dist/, prebuilds/ and native/include/; README.md gets links that work
 *                                    outside of this repository
 *     node scripts/pack.mjs after    puts README.md back
 *
 * A clone without `node_modules` is given them first. Everything goes to standard error: npm's own output may be JSON.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const readme = join(root, 'README.md');
const original = join(root, 'build', 'README.original.md');
const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const [when] = process.argv.slice(2);
if (when === 'before') await before();
else if (when === 'after') restore();
else throw new Error(`pack.mjs is called with "before" or "after", not "${when}"`);

async function before() {
  restore();
  if (!existsSync(join(root, 'node_modules', 'rolldown'))) run('npm', 'ci');
  run(process.execPath, join(root, 'scripts', 'build.mjs'));
  copyHeaders();
  // Made anew, unless `prepublishOnly` has just done so, and demanded all of them.
  if (process.env['npm_command'] !== 'publish') {
    const { prebuild } = await import('../native/prebuild.mjs');
    say(`prebuilt addons: ${prebuild(false).join(', ') || 'none'}`);
  }
  mkdirSync(dirname(original), { recursive: true });
  copyFileSync(readme, original);
  writeFileSync(readme, absoluteLinks(readFileSync(readme, 'utf8')));
}

/** Also after a run that was cut off between the two halves. */
function restore() {
  if (existsSync(original)) renameSync(original, readme);
}

/**
 * The headers that `onesided build` needs, with their licences. What is the same is left alone: compiled files depend
 * on it.
 */
function copyHeaders() {
  const to = join(root, 'native', 'include');
  mkdirSync(to, { recursive: true });
  for (const [name, folder, licence] of [
    ['node-addon-api', '.', 'LICENSE.md'],
    ['node-api-headers', 'include', 'LICENSE'],
  ]) {
    const from = join(root, 'node_modules', name);
    for (const file of readdirSync(join(from, folder)).filter((file) => file.endsWith('.h'))) {
      copyIfOther(join(from, folder, file), join(to, file));
    }
    copyIfOther(join(from, licence), join(to, `LICENSE.${name}`));
  }
}

function copyIfOther(from, to) {
  if (!existsSync(to) || !readFileSync(from).equals(readFileSync(to))) copyFileSync(from, to);
}

/** A registry's page shows README.md alone: links to files of the package have to say where the package is. */
function absoluteLinks(text) {
  if (own.repository !== undefined) return text;
  const base = `https://unpkg.com/${own.name}@${own.version}/`;
  return text.replace(/\]\((?!https?:|#)([^)\s]+)\)/g, (_, target) => `](${base}${target})`);
}

function run(command, ...args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (status === 0) return;
  say(`"${[command, ...args].join(' ')}" failed, see above`);
  process.exit(1);
}

function say(text) {
  process.stderr.write(`${text}\n`);
}
