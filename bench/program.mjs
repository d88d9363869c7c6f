/**
 * `npm run program -- NAME [OPTIONS]`: builds what is missing and runs a program of bench/ranks/ on ranks; `npm run lu`
 * is one of them.
 *
 *     npm run program -- lu|halo|ring|task-sharing|overlap|random-access|summa|mg|cg
 *     |bsp-jacobi|bsp-probe|bsp-fft|bsp-lu|bsp-inner-product|bsp-two-levels
 *     [--ranks 2] [--kind processes|threads] [--hosts a:2,b:2 [--ssh COMMAND]] [--trace FILE]
 *     [the program's own options]
 *     npm run program -- NAME --fabric infinihost-64 [--ranks 64] [--trace FILE] [the program's own options]
 *
 * With a fabric the ranks are tasks of one process on a modelled fabric (docs/guide/fabrics.md), and times are virtual.
 * `--hosts` and `--ssh` are those of `onesided run`: the folder must be there on every host.
 * A trace is for Perfetto (docs/guide/traces.md).
 *
 * What the options are, and what is measured, `npm run program -- NAME --help` says.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { help } from '../scripts/explain.mjs';
import { buildWhatIsMissing, root } from './build.mjs';
import { launch } from './launch.mjs';

/** And how many ranks a program has if nobody says. */
const PROGRAMS = {
  ...{ lu: '2', halo: '4', ring: '4', 'task-sharing': '4', overlap: '2', 'random-access': '4' },
  ...{ summa: '4', mg: '4', cg: '4', 'bsp-jacobi': '4', 'bsp-probe': '2' },
  ...{ 'bsp-fft': '2', 'bsp-lu': '4', 'bsp-inner-product': '4', 'bsp-two-levels': '4' },
};

const [name, ...args] = process.argv.slice(2);
if (process.argv.includes('--help')) {
  help(...(Object.hasOwn(PROGRAMS, name) ? [join(root, `bench/ranks/${name}.ts`)] : []), process.argv[1]);
}
if (!Object.hasOwn(PROGRAMS, name ?? '')) {
  console.error(
    `the program is one of ${Object.keys(PROGRAMS).join(', ')}${name === undefined ? '' : `, not '${name}'`}`,
  );
  process.exit(2);
}
if (args.includes('--fabric')) {
  buildWhatIsMissing();
  const program = join(root, `build/programs/bench/ranks/${name}.js`);
  process.exit(spawnSync(process.execPath, [program, ...args], { stdio: 'inherit' }).status ?? 1);
}
/** Takes an option with its value out of the arguments. */
function take(option) {
  const at = args.indexOf(option);
  return at < 0 ? undefined : args.splice(at, 2)[1];
}
const given = take('--ranks');
const run = {};
for (const option of ['hosts', 'ssh', 'trace']) {
  const value = take(`--${option}`);
  if (value !== undefined) run[option] = value;
}
const kind = take('--kind');
const ranks = given ?? (run.hosts === undefined ? PROGRAMS[name] : undefined);
launch(`ranks/${name}`, { ranks, kind, run, args });
