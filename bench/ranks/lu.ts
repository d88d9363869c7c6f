/**
 * SPLASH LU, verified: see bench/splash/lu.ts.
 *
 *   onesided run -n 2 build/programs/bench/ranks/lu.js -- [--n 2048] [--block 128] [--samples 1] [--seed 1] [--kernel
 *   wasm|typescript]
 *     [--lock SCHEME] [--lock-defer] [--lock-mode MODE] [--lock-migration POLICY] [--lock-type exclusive|shared]
 *     [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--lock`, `--lock-defer`, `--lock-mode` and `--lock-migration` are the window's hints of those names. The exit code
 * is not 0 if verification fails.
 *
 * With `--fabric NAME [--ranks 64] [--gflops 1] [--trace FILE]` the ranks are tasks of this process on a modelled
 * fabric, and arithmetic takes virtual time at that rate of each rank; the matrix is then made from `--seed`, and so is
 * the run.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { init } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import type { Form } from '../calls.ts';
import { inRange, oneOf, orExplain, wholeNumber } from '../options.ts';
import { hintOptions, readHints } from '../patterns/hints.ts';
import { readModelled } from '../patterns/modelled.ts';
import { Progress } from '../progress.ts';
import { chargedOn, checkLuOptions, type LuOptions, type LuResult, lu, VERIFIED_KERNELS } from '../splash/lu.ts';

function describe(result: LuResult): string {
  const { n, block, ranks, grid, kernel, milliseconds, gflops, breakdown, fetched, bytes, residual, verified } = result;
  const parts = Object.entries(breakdown).map(([what, time]) => `${what} ${time.toFixed(2)}`);
  return (
    `LU of ${n} × ${n} in blocks of ${block} on ${ranks} ${ranks === 1 ? 'rank' : 'ranks'} ` +
    `(${grid.join(' × ')}, ${kernel}): ` +
    `${Math.min(...milliseconds).toFixed(1)} ms, ${gflops.toFixed(2)} GFLOP/s\n` +
    `ms a rank: ${parts.join(', ')}; ${fetched} blocks fetched, ${(bytes / 2 ** 20).toFixed(1)} MiB\n` +
    `${verified ? 'verified' : 'NOT VERIFIED'}: relative residual ${residual.toExponential(2)}, digest ${result.digest}`
  );
}

const { options, json, quiet, modelled, gflops } = orExplain(() => {
  const { values } = parseArgs({
    options: {
      n: { type: 'string', default: '2048' },
      block: { type: 'string', default: '128' },
      samples: { type: 'string', default: '1' },
      seed: { type: 'string', default: '1' },
      kernel: { type: 'string', default: 'wasm' },
      ...hintOptions(['lock']),
      'lock-type': { type: 'string', default: 'exclusive' },
      fetch: { type: 'string', default: 'needed' },
      form: { type: 'string', default: 'sync' },
      json: { type: 'string' },
      quiet: { type: 'boolean', default: false },
      fabric: { type: 'string' },
      ranks: { type: 'string' },
      gflops: { type: 'string' },
      trace: { type: 'string' },
    },
  });
  oneOf('--form', values.form, ['sync', 'promise']);
  const number = (name: 'n' | 'block' | 'samples' | 'seed'): number => {
    const value = wholeNumber(values[name]);
    if (Number.isNaN(value)) throw new RangeError(`--${name} is a whole number, not '${values[name]}'`);
    return value;
  };
  const options: LuOptions = {
    n: number('n'),
    block: number('block'),
    samples: number('samples'),
    seed: number('seed'),
    kernel: values.kernel,
    lockType: values['lock-type'],
    fetch: values.fetch,
    form: values.form as Form,
    info: readHints(values),
  };
  oneOf('--kernel', options.kernel, VERIFIED_KERNELS);
  checkLuOptions(options);
  const { fabric, ranks, trace } = values;
  const modelled = readModelled({ fabric, ranks, trace, ...(fabric !== undefined && { seed: values.seed }) });
  if (modelled === undefined && values.gflops !== undefined)
    throw new RangeError('--gflops is for a modelled fabric: give --fabric');
  const gflops = Number(values.gflops ?? 1);
  if (!(gflops > 0)) throw new RangeError(`--gflops is a number above 0, not '${values.gflops}'`);
  if (modelled !== undefined) inRange('--samples', options.samples, 1, 1);
  return { options, json: values.json, quiet: values.quiet, modelled, gflops };
});

function tell(result: LuResult): void {
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(result)}\n`);
  console.log(describe(result));
  if (!result.verified) process.exitCode = 1;
}

if (modelled === undefined) {
  const world = await init();
  const speaks = world.rank === 0;
  const progress = new Progress('factoring', 100, speaks && !quiet);
  const result = await lu(world, { ...options, progress: progressOf(progress) });
  progress.stop();
  if (speaks) tell(result);
  await world.finalize();
  if (!result.verified) process.exitCode = 1;
} else {
  const { ranks, ...tasks } = modelled;
  const progress = new Progress('factoring', 100, !quiet);
  const [result] = await runTasks(
    ranks,
    (world) =>
      lu(world, {
        ...options,
        ...chargedOn(world, gflops),
        ...(world.rank === 0 ? { progress: progressOf(progress) } : {}),
      }),
    tasks,
  );
  progress.stop();
  tell(result);
}

function progressOf(progress: Progress): (done: number, of: number) => void {
  return (done, of) => progress.update(Math.floor((100 * done) / of));
}
