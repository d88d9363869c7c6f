/**
 * Rows that are measured on real ranks as well (`--real`), by the programs of their figures: processes of this host, as many as two cores can run. What a fabric is needed for is not there: a row's
 * 8 to 64 nodes, more ranks than processors, and how long a message takes from node to node. An emulated network in shared memory is between the ranks, so requests of the network are about as fast as stores.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, run } from '../programs.ts';
import { show as digits, FENCES, forEach, POLICIES } from './figure.ts';
import { ASSERTIONS, mean, type PROGRAMS, sum, together } from './programs.ts';

type Programs = typeof PROGRAMS;
type Name = keyof Programs;
type Options<N extends Name> = Parameters<Programs[N]>[1];
type Result<N extends Name> = Awaited<ReturnType<Programs[N]>>;

/** Before a program is measured it has run so often; then so often. */
const WARM = 2000;
const SAMPLES = 2000;
const TWO = ['two-sided', 'direct'] as const;
const THREE = ['two-sided', 'direct', 'hybrid'] as const;

/** Without an exponent: there are milliseconds among microseconds. */
function show(value: number): string {
  return String(Number(digits(value)));
}

async function inFolder<R>(body: (file: string) => Promise<R>): Promise<R> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-figures-'));
  try {
    return await body(join(folder, 'result.json'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function launch(
  program: string,
  ranks: number,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<void> {
  const command = join(ROOT, 'dist/cli/main.js');
  const main = join(ROOT, `build/programs/bench/ranks/${program}.js`);
  await run(process.execPath, [command, 'run', '-n', `${ranks}`, main, '--', ...args], { env });
}

/** Runs a program of programs.ts on so many processes. @returns what each of them has found */
function onRanks<N extends Name>(
  ranks: number,
  program: N,
  options: Options<N>,
  env: Record<string, string> = {},
): Promise<Result<N>[]> {
  return inFolder(async (file) => {
    await launch('figure', ranks, ['--program', program, '--options', JSON.stringify(options), '--json', file], env);
    return Array.from({ length: ranks }, (_, rank) => JSON.parse(readFileSync(`${file}.${rank}`, 'utf8')));
  });
}

/** For each of the schemes, the name and what is told of it. */
async function told<S extends string>(schemes: readonly S[], tell: (scheme: S) => Promise<string>): Promise<string> {
  return (await forEach(schemes, async (scheme) => `${scheme} ${await tell(scheme)}`)).join(', ');
}

/** A program of bench/ranks/, by the schemes of one hint: what it finds in `field`, the least if it has several. */
function field(
  program: string,
  ranks: number,
  args: string,
  hint: 'lock' | 'fence',
  schemes: readonly string[],
  field: string,
): Promise<string> {
  return told(schemes, (scheme) =>
    inFolder(async (file) => {
      await launch(program, ranks, [...args.split(' '), `--${hint}`, scheme, '--json', file, '--quiet']);
      const found = JSON.parse(readFileSync(file, 'utf8'))[field] as number | readonly number[];
      return show(typeof found === 'number' ? found : Math.min(...found));
    }),
  );
}

const ROWS: Readonly<Record<string, () => Promise<string>>> = {
  'D4.1': async () => {
    const computing = (compute: number): Promise<string> =>
      told(TWO, async (lock) => {
        const [{ took, swaps, messages }] = await onRanks(2, 'locked', {
          info: { lock },
          compute,
          rounds: SAMPLES,
          warm: WARM,
        });
        return `${show(took)} (${show(swaps)} swaps, ${show(messages)} messages)`;
      });
    return `2 processes: µs of lock and unlock, target idle: ${await computing(0)}; it computes for 400 µs: ${await computing(400)}`;
  },
  'D4.2': async () => {
    const found = await onRanks(4, 'sharing', { info: { lock: 'direct' }, locks: 500, shared: 50 });
    return `4 processes, 500 locks each, half of them shared: ${sum(found, 'violations')} violations, at most ${Math.max(...found.map((one) => one.together))} shared holders at a time`;
  },
  'D4.3': async () => {
    const of = (bytes: number, operation: 'put' | 'get'): Promise<string> =>
      told(TWO, async (lock) => {
        const samples = bytes < 65536 ? SAMPLES : SAMPLES / 10;
        const [took] = await onRanks(2, 'epoch', { info: { lock }, bytes, operation, samples, warm: samples });
        return show(took);
      });
    return `2 processes: µs of put 4 B: ${await of(4, 'put')}; put 256 KiB: ${await of(2 ** 18, 'put')}; get 4 B: ${await of(4, 'get')}; get 256 KiB: ${await of(2 ** 18, 'get')}`;
  },
  'D4.4': async () =>
    `2 processes: ${await field('overlap', 2, '--side sender --operation put --bytes 262144', 'lock', TWO, 'overlap')} %`,
  'D4.6': async () =>
    `2 processes: ${await field('overlap', 2, '--side receiver --bytes 32768 --pieces 2000 --form promise', 'lock', TWO, 'slowdown')} times as long, 1 origin`,
  'D4.7': async () =>
    `2 processes: ${await field('lu', 2, '--n 1024 --samples 3', 'lock', TWO, 'milliseconds')} ms, n = 1024`,
  'D5.1': async () => {
    // As if there were two of them on each of two hosts: on one, a lock stays in CPU mode.
    const env = { ONESIDED_DEBUG: 'requests,neighbours' };
    const changes = await told(POLICIES, async (policy) => {
      const info = { lock: 'hybrid', lock_migration: policy } as const;
      const found = await onRanks(4, 'sharing', { info, locks: 250, shared: 25 }, env);
      return `${sum(found, 'violations')} violations, ${sum(found, 'migrations')} changes of mode`;
    });
    return `4 processes, as if on 2 nodes, 250 locks each: ${changes}`;
  },
  'D5.2': async () => `2 processes: ${await paired(1, THREE)} µs`,
  'D5.3': async () =>
    `2 processes: µs without ${await paired(1, THREE)}; pieces of 100 µs ${await paired(1, THREE, { compute: 100, pieces: 4 * SAMPLES })}`,
  'D5.5': async () =>
    `2 and 3 processes (of which two can run at a time): µs, 1 that wants the lock: ${await paired(1, THREE)}; 2: ${await paired(2, THREE)}`,
  'D6.1': async () => {
    const epochs = 200;
    const found = await told(FENCES, async (fence) => {
      const { puts, messages, finishes, flags, wrong } = together(
        await onRanks(4, 'counted', { fence, seed: 1, epochs }),
      );
      return `${messages} messages, ${finishes} finish messages, ${flags} flags for ${puts} puts, ${wrong} values wrong`;
    });
    return `4 processes, ${2 * epochs} fences each: ${found}`;
  },
  'D6.3': async () =>
    `2 processes: ${await field('overlap', 2, '--side fence --bytes 131072', 'fence', FENCES, 'overlap')} %`,
  'D6.7': async () =>
    `4 processes: ${await field('halo', 4, '--neighbours 8 --bytes 32768 --compute 200 --steps 50', 'fence', FENCES, 'microseconds')} µs a step`,
  'D6.9': async () => {
    const times = await told(FENCES, async (fence) => {
      const all = await forEach(ASSERTIONS, async (assert) =>
        mean(await onRanks(2, 'fences', { fence, epochs: SAMPLES, warm: WARM, assert })),
      );
      return all.map(show).join(' / ');
    });
    const [{ right, refills }] = await onRanks(4, 'flooded', { puts: 5000, compute: 5000 });
    return `2 processes: ${times} µs; 4 × 5000 notified puts to one of 4 processes ${right ? 'arrive, each once' : 'do NOT all arrive'}, and make it post more receives ${refills} times`;
  },
};

/** Microseconds of a lock of rank 0's part and its unlock, by so many others. */
function paired(
  others: number,
  schemes: readonly (typeof THREE)[number][],
  computing: { readonly compute?: number; readonly pieces?: number } = {},
): Promise<string> {
  return told(schemes, async (lock) => {
    const options = { info: { lock }, target: 0, samples: SAMPLES, warm: WARM, ...computing };
    return show(mean(await onRanks(others + 1, 'pairs', options)));
  });
}

/** @returns in words, or `undefined` if the row has no such program */
export async function onRealRanks(id: string): Promise<string | undefined> {
  return ROWS[id]?.();
}
