/** Errors of a BSP computation by name: all processes learn of them, and none hangs. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test, vi } from 'vitest';
import { start } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-bsp-errors.js', import.meta.url));
const SIZE = 3;

// Against hanging only.
vi.setConfig({ testTimeout: 200_000 });

interface Told {
  readonly rank: number;
  readonly codes: readonly string[];
  readonly x: number;
}

async function run(kind: string, delivery: string, how: string) {
  const args = ['run', '-n', String(SIZE), '--ranks', kind, '--timeout', '150', '--grace', '20', PROGRAM, '--'];
  const { code, stdout, stderr } = await start([...args, `--delivery=${delivery}`, `--how=${how}`]).finished;
  const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!) as Told);
  return { code, report: stdout + stderr, told: told.sort((a, b) => a.rank - b.rank) };
}

const deliveries = ['shared', 'packed', 'datagrams'];

describe.each(RANK_KINDS)('ranks that are %s', (kind) => {
  test.each(
    deliveries.flatMap((delivery) =>
      ['registers-more', 'removes-another', 'tag-size', 'ends'].map((how) => ({ delivery, how })),
    ),
  )('all learn that they differ, in this sync and the next: $how, $delivery', async ({ delivery, how }) => {
    const { report, told } = await run(kind, delivery, how);
    expect(
      told.map(({ rank }) => rank),
      report,
    ).toEqual([0, 1, 2]);
    for (const { rank, codes } of told) {
      const calls = how === 'ends' && rank === SIZE - 1 ? 1 : 2;
      expect(codes, report).toEqual(new Array(calls).fill('ERR_COLLECTIVE'));
    }
  });

  test.each(deliveries)('one that exits ends the sync of the others: %s', async (delivery) => {
    const { report, told } = await run(kind, delivery, 'returns');
    expect(
      told.map(({ rank }) => rank),
      report,
    ).toEqual([0, 1]);
    for (const { codes } of told) expect(codes, report).toEqual(['ERR_RMA_RANK_FAILED', 'ERR_RMA_RANK_FAILED']);
  });

  test.each(deliveries)('abort ends all with its code, after its message: %s', async (delivery) => {
    const { code, report, told } = await run(kind, delivery, 'abort');
    expect(code, report).toBe(7);
    expect(report).toContain('process 2 of 3: no solution');
    // Some may have been told before they were ended.
    for (const { codes } of told) expect(codes, report).toEqual(['ERR_RMA_RANK_FAILED', 'ERR_RMA_RANK_FAILED']);
  });

  test.each(deliveries)(
    'a variable that has lost its memory is an error at its owner, and nobody hangs: %s',
    async (delivery) => {
      const { report, told } = await run(kind, delivery, 'lost-memory');
      const owner = told.find(({ rank }) => rank === SIZE - 1);
      expect(owner?.codes[0], report).toBe('ERR_BUFFER');
      // The others may have what they need, and learn of it in the next superstep.
      for (const { codes } of told) expect(codes.at(-1), report).not.toBe('none');
    },
  );

  test.each(['shared', 'packed', 'zero-copy', 'auto'])(
    'and if its program goes on, the others are told by it: %s',
    async (delivery) => {
      const { code, report, told } = await run(kind, delivery, 'lost-memory-caught');
      expect(
        told.map(({ rank }) => rank),
        report,
      ).toEqual([0, 1, 2]);
      // The others may complete the superstep.
      for (const { codes } of told) expect(codes.at(-1), report).toBe('ERR_BUFFER');
      expect(told[SIZE - 1].codes[0], report).toBe('ERR_BUFFER');
      expect(code, report).toBe(0);
    },
  );

  test.each(deliveries)(
    'a deadline breaks nothing: the next sync goes on with the same superstep: %s',
    async (delivery) => {
      const { report, told } = await run(kind, delivery, 'deadline');
      expect(
        told.map(({ rank }) => rank),
        report,
      ).toEqual([0, 1, 2]);
      for (const { rank, codes, x } of told) {
        if (rank !== SIZE - 1) expect(['ERR_RMA_TIMEOUT', 'none'], report).toContain(codes[0]);
        if (codes[0] === 'ERR_RMA_TIMEOUT') expect(codes[1], report).toBe('none');
        expect(x, report).toBe(5);
      }
    },
  );
});
