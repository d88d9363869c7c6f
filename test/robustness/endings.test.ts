/**
 * Programs that end as they should not: every one has a clear end, the right exit code, and one line that says which
 * rank, and why.
 */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { leftWith, marker, start, verdicts } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';
import { linesOf } from './jobs.ts';
import { Slots } from './slots.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-endings.js', import.meta.url));

interface Ending {
  readonly how: string;
  readonly others: string;
  readonly code: number;
  /** What the launcher says, after `rank 1 `; the others' end follows. */
  readonly verdict: RegExp;
  /** What the others are told. */
  readonly told: RegExp;
  readonly size?: number;
  readonly timeout?: number;
  readonly only?: 'processes' | 'threads';
}

const EXITED_1 = { code: 1, verdict: /^exited with code 1 \(/, told: /exited with code 1$/ };
const WITHOUT = {
  code: 1,
  verdict: /^exited with code 0 without calling finalize\(\) \(.*\); rank \d then exited with code 1/,
  told: /ended without finalize\(\) while other ranks still wait for it$/,
};
const NO_INIT = {
  ...WITHOUT,
  verdict: /^exited with code 0 without calling init\(\) \(.*\); rank \d then exited with code 1/,
};

const endings: Ending[] = [
  { how: 'throw', others: 'barrier', ...EXITED_1 },
  { how: 'throw', others: 'fence-sync', size: 4, ...EXITED_1 },
  { how: 'throw-later', others: 'barrier-sync', ...EXITED_1 },
  { how: 'throw-in-timer', others: 'fence', ...EXITED_1 },
  { how: 'unhandled-rejection', others: 'allocate', ...EXITED_1 },
  { how: 'wrong-call', others: 'receive', ...EXITED_1 },
  { how: 'throw-in-lock', others: 'lock', size: 3, ...EXITED_1 },
  { how: 'throw-before-init', others: 'barrier', size: 3, ...EXITED_1 },
  { how: 'exit-5', others: 'fence', code: 5, verdict: /^exited with code 5 \(/, told: /exited with code 5$/ },
  {
    how: 'exit-256',
    others: 'barrier',
    code: 1,
    verdict: /^exited with code 256 \(/,
    told: /exited with code 256$/,
  },
  { how: 'exit-4294967296', others: 'barrier', ...EXITED_1 },
  {
    how: 'exit-in-handler',
    others: 'receive',
    code: 4,
    verdict: /^exited with code 4 \(/,
    told: /exited with code 4$/,
  },
  {
    how: 'exit-6-before-init',
    others: 'barrier',
    code: 6,
    verdict: /^exited with code 6 \(/,
    told: /exited with code 6$/,
  },
  {
    how: 'exit-in-fence-epoch',
    others: 'two-fences',
    code: 3,
    verdict: /^exited with code 3 \(/,
    told: /exited with code 3$/,
  },
  {
    how: 'never-settles',
    others: 'barrier',
    code: 13,
    verdict: /^exited with code 13 \(/,
    told: /exited with code 13$/,
  },
  {
    how: 'abort',
    others: 'barrier',
    code: 134,
    only: 'processes',
    verdict: /^was killed by SIGABRT \(/,
    told: /killed by signal 6$/,
  },
  { how: 'exit-0', others: 'barrier', ...WITHOUT },
  { how: 'exit-0', others: 'finalize', size: 4, ...WITHOUT },
  { how: 'return', others: 'fence-sync', ...WITHOUT },
  { how: 'exit-0-in-lock', others: 'lock-sync', size: 3, ...WITHOUT },
  { how: 'exit-0-before-init', others: 'barrier', ...NO_INIT },
  { how: 'return-before-init', others: 'barrier', size: 4, ...NO_INIT },
];

const late: { how: string; others: string; size: number; named: RegExp }[] = [
  {
    how: 'spin',
    others: 'fence',
    size: 2,
    named: /rank 0 \(.*\) waits in fence .*\n {2}rank 1 \(.*\) is not waiting in a call of this library\n$/,
  },
  {
    how: 'spin',
    others: 'barrier-sync',
    size: 4,
    named:
      /rank 0 .* waits in barrier .*\n {2}rank 1 .*\n {2}rank 2 .* waits in barrier .*\n {2}rank 3 .* waits in barrier .*\n$/,
  },
  {
    how: 'spin-in-lock',
    others: 'lock',
    size: 2,
    named: /rank 0 .* waits in .*lock.*\n {2}rank 1 .* is not waiting in a call of this library\n$/,
  },
  {
    how: 'spin-before-init',
    others: 'barrier',
    size: 2,
    named: /rank 0 .* waits in init\(\) .*\n {2}rank 1 .* has not called init\(\)\n$/,
  },
];

/** Enough for ranks to have joined, on a machine that does much else. */
const TIMEOUT_S = 4;

const slots = new Slots(3);

describe.concurrent.each(RANK_KINDS)('ranks that are %s', (kind) => {
  it('a rank that ends because another one has failed: both are told', async () => {
    const program = fileURLToPath(new URL('../../build/programs/test/ranks/robust-behind.js', import.meta.url));
    const job = start(['run', '-n', '3', '--ranks', kind, '--timeout', '60', '--grace', '30', program]);
    const { stdout, stderr } = await slots.use(() => job.finished);
    const [line] = linesOf<{ code: string; message: string }>(stdout.replaceAll(/^\[\d\] (?=\[)/gm, ''));
    expect(line, stdout + stderr).toMatchObject({ rank: 0, code: 'ERR_RMA_RANK_FAILED' });
    expect(line.message).toMatch(
      /^rank 2 \(.*\) ended without finalize\(\) while .* wait for it, after rank 1 \(.*\) exited with code 3$/,
    );
  });

  it.each(endings.filter(({ only }) => only === undefined || only === kind))(
    '$how, while the others wait ($others): ends with code $code',
    async ({ how, others, size = 2, code, verdict, told }) => {
      const { finished, mark, report } = await run(kind, size, how, others, 30);
      const lines = linesOf<{ code?: string; message?: string }>(finished.stdout.replaceAll(/^\[\d\] (?=\[)/gm, ''));
      const survivors = Array.from({ length: size }, (_, rank) => rank).filter((rank) => rank !== 1);
      expect(lines.map(({ rank }) => rank).sort(), report).toEqual(survivors);
      for (const line of lines) {
        expect(line.code, report).toBe('ERR_RMA_RANK_FAILED');
        expect(line.message, report).toMatch(/^rank 1 \(/);
        expect(line.message, report).toMatch(told);
      }
      expect(finished.code, report).toBe(code);
      const said = verdicts(finished.stderr);
      expect(said, report).toHaveLength(1);
      expect(said[0], report).toMatch(/^onesided: rank 1 /);
      expect(said[0].slice('onesided: rank 1 '.length), report).toMatch(verdict);
      expect(await leftWith(mark)).toEqual([]);
    },
    60_000,
  );

  it.each(late)(
    '$how, while $size ranks wait ($others): the timeout ends it',
    async ({ how, others, size, named }) => {
      const { finished, mark, report } = await run(kind, size, how, others, TIMEOUT_S);
      expect(finished.code, report).toBe(124);
      const said = verdicts(finished.stderr);
      expect(said, report).toHaveLength(1);
      expect(said[0], report).toMatch(/^onesided: the job did not end within 4 s \(--timeout\); still running:$/);
      expect(finished.stderr, report).toMatch(named);
      expect(await leftWith(mark)).toEqual([]);
    },
    60_000,
  );
});

async function run(kind: string, size: number, how: string, others: string, timeout: number) {
  const mark = marker();
  const args = ['run', '-n', String(size), '--ranks', kind, '--timeout', String(timeout), PROGRAM, '--'];
  const job = [`--who=1`, `--how=${how}`, `--others=${others}`, mark];
  const finished = await slots.use(() => start([...args, ...job]).finished);
  return {
    finished,
    mark,
    report: `onesided ${args.join(' ')} ${job.join(' ')}\n${finished.stdout}${finished.stderr}`,
  };
}
