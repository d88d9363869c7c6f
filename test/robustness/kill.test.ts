/**
 * A rank killed by SIGKILL at a hundred moments: at each place of the library at which something could be left undone,
 * and at random times.
 *
 * `ONESIDED_SEED=N npx vitest run test/robustness/kill.test.ts -t "case 17:"` repeats a case: what the ranks do, who is
 * killed and where. Times are those of the machine. `ONESIDED_TEST_KILLS=N` draws as many; every place comes once
 * before one comes twice. In the gate: in a barrier, in the middle of a put, holding a lock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadNative, nativeStatus } from '../../src/native.ts';
import { leftWith, marker, start, verdicts } from '../launcher/command.ts';
import { Random } from '../ranks/support/random.ts';
import { casesOf } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';
import { linesOf, said } from './jobs.ts';
import { abandonedSharedMemory, sharedMemoryNames } from './leftovers.ts';
import { Slots } from './slots.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-kill.js', import.meta.url));
const CASES = Number(process.env['ONESIDED_TEST_KILLS'] ?? 100);
/**
 * Milliseconds after the start of the victim within which it is killed from outside: before, during and long after
 * `init`.
 */
const LATEST_KILL_MS = 600;

const PLACES = [
  ...['before-init', 'init', 'barrier', 'in-barrier', 'put', 'in-fence', 'notified-put', 'in-notified-fence'],
  ...['locked', 'get', 'queued', 'holder', 'accumulate', 'parked', 'new', 'allocate', 'free', 'allreduce'],
  ...['collective', 'split', 'in-half', 'message', 'finalize'],
  ...['long-message', 'long-allgather', 'long-broadcast'],
  ...['exposed', 'started', 'completed', 'notified', 'requested'],
];
/** Places to which the victim may come before all others have been started. */
const EARLY = ['before-init', 'init', 'anywhere'];
const ENDINGS = ['rethrow', 'exit', 'finalize', 'nothing'];

interface Case {
  readonly size: number;
  readonly victim: number;
  /**
   * `anywhere`: killed from outside, after so many milliseconds; otherwise by itself, when it has been there so many
   * times before.
   */
  readonly place: string;
  readonly after: number;
  readonly ending: string;
  readonly seed: number;
}

interface Caught {
  readonly caught: number;
  readonly code: string;
  readonly message: string;
  readonly doing: string;
}

const runSeed = seedOfRun();

function drawCase(number: number): Case {
  const random = new Random(runSeed, number);
  const size = random.pick([2, 2, 2, 4, 4, 8]);
  // Every place twice, then random times.
  const place = number < 2 * PLACES.length ? PLACES[number % PLACES.length] : 'anywhere';
  const once = ['before-init', 'init', 'finalize'].includes(place);
  return {
    size,
    victim: random.below(size),
    place,
    after: place === 'anywhere' ? random.below(LATEST_KILL_MS) : once ? 0 : random.below(6),
    ending: random.pick(ENDINGS),
    seed: random.below(1_000_000),
  };
}

const drawn = Array.from({ length: CASES }, (_, number) => {
  const drawn = drawCase(number);
  return { number, drawn, title: JSON.stringify(drawn) };
});
const cases = casesOf(drawn, ({ number }) => ['barrier', 'put', 'holder'].includes(PLACES[number]));

if (loadNative() === undefined) console.warn(`killed ranks are not tested: ${nativeStatus().reason}`);

describe.skipIf(loadNative() === undefined).concurrent(`a rank killed by SIGKILL (ONESIDED_SEED=${runSeed})`, () => {
  const slots = new Slots(3);
  const latencies: number[] = [];
  let names: Set<string>;

  beforeAll(() => {
    names = sharedMemoryNames();
  });

  it.each(cases)(
    'case $number: $title',
    async ({ drawn }) => {
      const { size, victim, place, after, ending, seed } = drawn;
      await slots.use(async () => {
        const mark = marker();
        const args = [
          `--seed=${seed}`,
          `--victim=${victim}`,
          `--place=${place}`,
          `--after=${after}`,
          `--ending=${ending}`,
          mark,
        ];
        // Who is still starting when another one dies has time to come so far as to be told, also on a busy machine.
        const job = start(['run', '-n', String(size), '--timeout', '120', '--grace', '60', PROGRAM, '--', ...args]);
        let killed: number | undefined;
        if (place === 'anywhere') {
          const pid = Number((await said(job, /\{"pid":(\d+)\}/))[1]);
          await sleep(after);
          killed = Date.now();
          process.kill(pid, 'SIGKILL');
        }
        const { code, stdout, stderr } = await job.finished;
        const all = linesOf<Partial<Caught & { died: number; began: boolean }>>(stdout);
        killed ??= all.find(({ died }) => died !== undefined)?.died;
        const survivors = all.filter((line): line is { rank: number } & Caught => line.caught !== undefined);
        const report = `${stdout}${stderr}`;
        // A launcher that hears of a death starts no more ranks.
        const others = all.filter(({ began }) => began !== undefined).map(({ rank }) => rank);
        if (!EARLY.includes(place)) expect(others, report).toHaveLength(size - 1);

        expect(killed, report).toBeDefined();
        expect(survivors.map(({ rank }) => rank).sort(), `every survivor gets an error:\n${report}`).toEqual(
          others.sort(),
        );
        for (const { code, message } of survivors) {
          expect(code, report).toBe('ERR_RMA_RANK_FAILED');
          expect(message, report).toContain(`rank ${victim} (process `);
        }
        for (const { caught } of survivors) latencies.push(caught - killed!);
        expect(code, report).toBe(128 + 9);
        const lines = verdicts(stderr);
        expect(lines, report).toHaveLength(1);
        expect(lines[0]).toMatch(new RegExp(`^onesided: rank ${victim} was killed by SIGKILL \\(pid \\d+\\)`));
        expect(await leftWith(mark)).toEqual([]);
      });
    },
    120_000,
  );

  it.each([
    { size: 2, after: 150 },
    { size: 4, after: 400 },
    { size: 8, after: 700 },
  ])(
    'takes all $size ranks with it if it is the launcher',
    async ({ size, after }) => {
      await slots.use(async () => {
        const mark = marker();
        const args = [`--seed=${runSeed}`, '--victim=0', '--place=anywhere', '--ending=nothing', mark];
        const job = start(['run', '-n', String(size), PROGRAM, '--', ...args]);
        await said(job, /\{"pid":(\d+)\}/);
        await sleep(after);
        job.child.kill('SIGKILL');
        await job.finished;
        expect(await leftWith(mark)).toEqual([]);
      });
    },
    60_000,
  );

  afterAll(async () => {
    latencies.sort((a, b) => a - b);
    const at = (part: number): number => latencies[Math.floor(part * (latencies.length - 1))];
    if (latencies.length > 0)
      console.log(
        `${latencies.length} survivors knew after ${at(0.5)} ms (median), ${at(0.9)} ms (nine ` +
          `of ten), ${at(1)} ms (all)`,
      );
    expect(abandonedSharedMemory(names)).toEqual([]);
  });
});
