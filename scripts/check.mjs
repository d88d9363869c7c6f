/**
 * Checks the project, a step at a time, and says which one runs and how long it took.
 *
 *     node scripts/check.mjs          all steps: `npm run check`
 *     node scripts/check.mjs --quick  those that take seconds: what has changed since the last time, or the last commit
 *
 * The quick form leaves out what only the whole project tells: unused exports and packages. What needs the bundle, the
 * package (check-package.mjs), is checked by `npm test`, which has one.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const quick = process.argv.includes('--quick');
const bin = (name) => join(root, 'node_modules/.bin', name);
const script = (name) => [process.execPath, join(root, 'scripts', name)];

/** A step: what it looks at, and the command; `false` leaves it out. */
const STEPS = [
  [
    'types',
    [bin('tsc'), '--noEmit', ...(quick ? ['--incremental', '--tsBuildInfoFile', 'build/check.tsbuildinfo'] : [])],
  ],
  ['lint and format', quick ? ofChanged() : [bin('biome'), 'check', '.']],
  ['unused exports and packages', !quick && [bin('knip')]],
  ['direction of imports', script('check-layers.mjs')],
  ['width of lines', script('check-width.mjs')],
];

for (const [what, command] of STEPS) {
  if (!command) continue;
  process.stdout.write(`${what} …`);
  const began = performance.now();
  const [program, ...args] = command;
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  process.stdout.write(status === 0 ? ` ${seconds} s\n` : ` failed after ${seconds} s\n`);
  if (status === 0) continue;
  process.stdout.write(`${stdout ?? ''}${stderr ?? ''}${error === undefined ? '' : `${error.message}\n`}`);
  process.exit(1);
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
