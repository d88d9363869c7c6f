/** RandomAccess as HPCC's own program does it: a rank's own words without calls, and one pool of updates ahead. */
import type { WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { expect, it } from 'vitest';
import { Distribution } from '../../bench/hpcc/distribution.ts';
import { randomAccess, WAYS } from '../../bench/hpcc/epochs.ts';
import { Pool } from '../../bench/hpcc/pool.ts';
import { startOf } from '../../bench/hpcc/random-stream.ts';
import { modelledMachine } from '../../bench/patterns/machine.ts';

it('gives the fullest bucket, keeps no update of the own rank, and loses none', () => {
  const distribution = new Distribution(64, 4);
  const pool = new Pool(distribution, 1, 32);
  const stream = startOf(100_000);
  let own = 0;
  while (!pool.isFull) {
    pool.take(stream, (at, value) => {
      own++;
      expect(Number(value & 63n)).toBe(distribution.first(1) + at);
    });
  }
  expect(own).toBeGreaterThan(0);
  const buckets: { readonly owner: number; readonly count: number }[] = [];
  while (!pool.isEmpty) {
    const { owner, displacements, values } = pool.fullest();
    for (const [i, at] of displacements.entries()) {
      expect(Number(values[i] & 63n)).toBe(distribution.first(owner) + at);
    }
    buckets.push({ owner, count: values.length });
  }
  expect(buckets.map(({ owner }) => owner).sort()).toEqual([0, 2, 3]);
  const counts = buckets.map(({ count }) => count);
  expect(counts).toEqual([...counts].sort((a, b) => b - a));
  expect(counts.reduce((a, b) => a + b)).toBe(32);
});

it.each(WAYS)('%s: the table is right afterwards', async (way) => {
  const lock = way === 'direct' ? 'unchecked' : 'shared';
  const info: WindowInfo = way === 'direct' ? { update: 'by-requests' } : { lock: 'two-sided', lock_defer: true };
  const options = { way, words: 256, ahead: 64, info, lock, asHpcc: true } as const;
  const [result] = await runTasks(4, (world) => randomAccess(world, options, modelledMachine(world)), {
    fabric: 'infinihost-64',
    seed: 1,
  });
  expect(result).toMatchObject({ updates: 1024 });
  // Only get-modify-put may lose some: here more than HPCC allows, since the table is small.
  if (way !== 'get-modify-put') expect(result.lost).toBe(0);
});
