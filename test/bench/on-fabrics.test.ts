/**
 * The programs of chapters 4 to 6 on modelled fabrics: the same programs as on real ranks, and their results are right.
 */
import type { WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { randomAccess, WAYS } from '../../bench/hpcc/epochs.ts';
import { halo } from '../../bench/patterns/halo.ts';
import { modelledMachine } from '../../bench/patterns/machine.ts';
import { readModelled } from '../../bench/patterns/modelled.ts';
import { overlap } from '../../bench/patterns/overlap.ts';
import { ring } from '../../bench/patterns/ring.ts';
import { taskSharing } from '../../bench/patterns/task-sharing.ts';
import { chargedOn, lu } from '../../bench/splash/lu.ts';
import { summa } from '../../bench/summa/summa.ts';
import { NONCONTIGUOUS_NAMES } from '../ranks/support/kinds.ts';

const NODES = { fabric: 'infinihost-64' };
const LOCKS: readonly WindowInfo[] = [
  { lock: 'remote' },
  { lock: 'two-sided' },
  { lock: 'direct' },
  { lock: 'hybrid' },
];
const FENCES: readonly WindowInfo[] = [
  { fence: 'deferred' },
  { fence: 'immediate-naive' },
  { fence: 'immediate-optimized' },
  { fence: 'remote-notify' },
];
const nameOf = (info: WindowInfo): string => Object.values(info).join(' ');

const LAYOUTS: readonly WindowInfo[] = [{}, ...NONCONTIGUOUS_NAMES.map((noncontiguous) => ({ noncontiguous }))];
describe.each(LAYOUTS)('panels by %j', (info) => {
  it.each([
    [4, 64, 64, 64],
    [6, 5, 80, 33],
    [9, 90, 3, 50],
  ])('are the direct product in the end, on %i ranks: %i × %i × %i', async (ranks, m, n, k) => {
    const options = { m, n, k, panel: 8, samples: 2, gflops: 1, info };
    const [result] = await runTasks(ranks, (world) => summa(world, options, modelledMachine(world)), NODES);
    expect(result.errors).toBe(0);
    // The arithmetic is charged: no rank has less of it than the mean.
    expect(result.microseconds).toBeGreaterThan((2 * m * n * k) / (1e3 * ranks));
  });
});

describe.each(FENCES.map((info) => [nameOf(info), info] as const))('fence %s', (_, info) => {
  it('brings every border to every neighbour', async () => {
    const options = { neighbours: 8, bytes: 2048, compute: 50, steps: 10, info } as const;
    const [result] = await runTasks(9, (world) => halo(world, options, modelledMachine(world)), NODES);
    expect(result.errors).toBe(0);
    expect(result.microseconds).toBeGreaterThan(50);
  });

  it('overlaps as its scheme allows', async () => {
    const options = {
      side: 'fence',
      operation: 'put',
      bytes: 2 ** 18,
      operations: 1,
      samples: 3,
      compute: 1,
      info,
    } as const;
    const [result] = await runTasks(2, (world) => overlap(world, options, modelledMachine(world)), NODES);
    if (result.side === 'receiver') throw new Error('the other side was asked for');
    expect(result.errors).toBe(0);
    if (info.fence === 'deferred') expect(result.overlap).toBeLessThan(20);
    else expect(result.overlap).toBeGreaterThan(80);
  });
});

describe.each(LOCKS.map((info) => [nameOf(info), info] as const))('lock %s', (_, info) => {
  it('factors a matrix, with the same bits as on any other ranks', async () => {
    const options = { n: 200, block: 32, seed: 1, kernel: 'wasm', lockType: 'exclusive', samples: 1, info } as const;
    const [result] = await runTasks(6, (world) => lu(world, { ...options, ...chargedOn(world, 1) }), NODES);
    const [alone] = await runTasks(1, (world) => lu(world, { ...options, ...chargedOn(world, 1) }), NODES);
    expect(result.verified).toBe(true);
    expect(result.digest).toBe(alone.digest);
    // Arithmetic of one rank takes what it is charged: 2/3 n³ operations and a little more at blocks' edges, at one a
    // nanosecond.
    expect(alone.breakdown.compute).toBeGreaterThan((2 * 200 ** 3) / 3 / 1e6);
    expect(alone.breakdown.compute).toBeLessThan((2 * 208 ** 3) / 3 / 1e6 + 1);
  });

  it('sends a message round a ring', async () => {
    const options = { bytes: 64, compute: 10, rounds: 3, info } as const;
    const [result] = await runTasks(5, (world) => ring(world, options, modelledMachine(world)), NODES);
    expect(result.errors).toBe(0);
    expect(result.hop).toBeGreaterThan(0);
  });

  it('hands out tasks within and between nodes', async () => {
    const options = { perNode: 16, tasks: 4, bytes: 1024, info } as const;
    const [result] = await runTasks(32, (world) => taskSharing(world, options, modelledMachine(world)), {
      fabric: 'connectx-16-cores',
    });
    expect(result.errors).toBe(0);
    expect(result.nodes).toBe(2);
  });

  it('gives a computing target what it needs', async () => {
    const options = {
      side: 'receiver',
      operation: 'get',
      bytes: 64,
      operations: 1,
      samples: 1,
      compute: 2000,
      info,
    } as const;
    const [result] = await runTasks(4, (world) => overlap(world, options, modelledMachine(world)), NODES);
    if (result.side !== 'receiver') throw new Error('the receiver was asked for');
    expect(result).toMatchObject({ errors: 0, origins: 3 });
    expect(Math.abs(result.alone - 2000)).toBeLessThan(10);
  });
});

/** Ways of RandomAccess, and who carries their updates out. */
const UPDATES = WAYS.flatMap((way) =>
  (
    [
      [{ lock: 'two-sided', lock_defer: true }, 'exclusive'],
      [{ update: 'by-requests' }, 'unchecked'],
      [{ update: 'by-target' }, 'unchecked'],
      [{ lock: 'direct', update: 'by-type' }, 'shared'],
    ] as const
  ).map(([info, lock]) => ({ way, info, lock })),
);

describe('RandomAccess with an epoch for each update', () => {
  it.each(UPDATES)('loses none, but by get-modify-put: $way, $info, locks $lock', async ({ way, info, lock }) => {
    const options = { way, words: 256, ahead: 64, info, lock };
    const [result] = await runTasks(8, (world) => randomAccess(world, options, modelledMachine(world)), NODES);
    expect(result.updates).toBe(4 * 256);
    expect(result.microseconds).toBeGreaterThan(0);
    if (way === 'get-modify-put') expect(result.lost).toBeGreaterThan(0);
    else expect(result).toMatchObject({ lost: 0, errors: 0 });
  });

  it('is right on ranks that do not divide the table', async () => {
    const options = { way: 'packed', words: 128, ahead: 16, info: {}, lock: 'shared' } as const;
    const [result] = await runTasks(5, (world) => randomAccess(world, options, modelledMachine(world)), NODES);
    expect(result).toMatchObject({ updates: 512, lost: 0, errors: 0 });
  });

  it.each([0, 3, 2048])('refuses to look %i updates ahead', async (ahead) => {
    const options = { way: 'packed', words: 128, ahead, info: {}, lock: 'shared' } as const;
    const run = runTasks(2, (world) => randomAccess(world, options, modelledMachine(world)), NODES);
    await expect(run).rejects.toThrow(/--ahead is a/);
  });
});

describe('options', () => {
  it('of a fabric are read, and refused without one', () => {
    expect(readModelled({ fabric: 'infinihost-64', ranks: '5' })).toEqual({
      fabric: 'infinihost-64',
      ranks: 5,
      seed: 1,
    });
    expect(readModelled({ fabric: 'infinihost-64', trace: 'run.json' })).toMatchObject({
      ranks: 64,
      trace: 'run.json',
    });
    expect(readModelled({})).toBeUndefined();
    expect(() => readModelled({ trace: 'run.json' })).toThrow(/--trace is for ranks on a modelled fabric/);
    expect(() => readModelled({ ranks: '5' })).toThrow(/--ranks is for ranks on a modelled fabric/);
    expect(() => readModelled({ fabric: 'x', seed: 'y' })).toThrow(/--seed is a whole number/);
  });
});
