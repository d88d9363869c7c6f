/**
 * Checks the project, some steps at a time, and says of each whether it passed, and after how long.
 *
 *     node scripts/check.mjs          all steps: `npm run check`
 *     node scripts/check.mjs --quick  those that take seconds: what has changed since the last time, or the last commit
 *
 * The quick form leaves out what only the whole project tells: unused exports and packages. What needs the bundle, the
 * package (check-package.mjs), is checked by `npm test`, which has one.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const quick = process.argv.includes('--quick');
const bin = (name) => join(root, 'node_modules/.bin', name);
const script = (name) => [process.execPath, join(root, 'scripts', name)];

/** A step: what it looks at, and the command; `false` leaves it out. */
const STEPS = [
  ['types', script('tsc.mjs')],
  ['lint and format', quick ? ofChanged() : [bin('biome'), 'check', '.']],
  ['unused exports and packages', !quick && [bin('knip')]],
  ['direction of imports', script('check-layers.mjs')],
  ['width of lines', script('check-width.mjs')],
];

const results = await Promise.all(STEPS.filter(([, command]) => command).map((step) => run(...step)));
process.exit(results.every((status) => status === 0) ? 0 : 1);

/** Runs a step, and says how it went when it has ended. What a step says is of interest where it failed. */
async function run(what, [program, ...args]) {
  const began = performance.now();
  const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  const status = await new Promise((resolve) => {
    child.on('error', ({ message }) => {
      said += message;
      resolve(1);
    });
    child.on('close', resolve);
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${what}: ${status === 0 ? 'passed' : 'failed'} after ${seconds} s`);
  if (status !== 0) console.log(said);
  return status;
}

/** Biome for the files that differ from the last commit; nothing if none does. */
function ofChanged() {
  const list = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout?.split('\0') ?? [];
  const changed = [
    ...list('diff', '-z', '--name-only', 'HEAD'),
    ...list('ls-files', '-z', '--others', '--exclude-standard'),
  ].filter((file) => file !== '' && existsSync(join(root, file)));
  return changed.length > 0 && [bin('biome'), 'check', '--no-errors-on-unmatched', ...changed];
}
