/** What `noncontiguous: 'auto'` chooses by: what each way takes, as measured when a window is made. */
import { describe, expect, test } from 'vitest';
import { Datatype } from '../../src/datatype/datatype.ts';
import { runTasks } from '../../src/start/tasks.ts';
import type { Way } from '../../src/transfer/layouts/way.ts';
import { LayoutCosts } from '../../src/transfer/layouts/way-costs.ts';
import { Window } from '../../src/window/calls/window.ts';

/** What each way takes, in microseconds: another thing for puts, so that they are not mixed up. */
type Model = Readonly<Record<Way, (pieces: number, bytes: number, puts: boolean) => number>>;

function costsOf(model: Model): LayoutCosts {
  const costs = new LayoutCosts();
  for (const place of LayoutCosts.places()) {
    const time = model[place.way](place.pieces, place.bytes, place.puts);
    costs.note(place, time + 5);
    costs.note(place, time);
    costs.note(place, time + 3);
  }
  costs.complete();
  return costs;
}

describe('costs', () => {
  const model: Model = {
    'multi-write': (pieces, bytes) => 4 + 0.8 * pieces + 0.001 * pieces * bytes,
    pack: (pieces, bytes) => 9 + 0.004 * pieces * bytes,
    sgrs: (pieces, bytes, puts) => (puts ? 14 : 9) + 0.2 * pieces + 0.001 * pieces * bytes,
  };
  const costs = costsOf(model);
  const cases = [true, false].flatMap((puts) =>
    [2, 3, 7, 15, 16, 31, 100, 200, 500, 700, 5000].flatMap((pieces) =>
      [1, 8, 50, 100, 1000, 4096, 10_000].map((bytes) => ({ puts, pieces, bytes })),
    ),
  );

  test.each(cases)('tell the quickest on straight lines: %o', ({ puts, pieces, bytes }) => {
    const times = Object.entries(model).map(([way, time]) => ({ way, time: time(pieces, bytes, puts) }));
    const best = Math.min(...times.map(({ time }) => time));
    const chosen = times.find(({ way }) => way === costs.quickest(puts, pieces * bytes, pieces))!;
    expect(chosen.time).toBeLessThanOrEqual(best * (1 + 1e-9));
  });

  test('are the same for who is told them', () => {
    const told = new LayoutCosts(Float64Array.from(costs.times));
    for (const { puts, pieces, bytes } of cases)
      expect(told.quickest(puts, pieces * bytes, pieces)).toBe(costs.quickest(puts, pieces * bytes, pieces));
  });

  test('are measured for all, with no more than 128 KiB', () => {
    const places = [...LayoutCosts.places()];
    expect(places.length).toBe(108);
    expect(Math.max(...places.map(({ pieces, bytes }) => pieces * bytes))).toBe(2 ** 17);
  });
});

describe('auto', () => {
  test('is measured once for a communicator, and all ranks learn of it', async () => {
    const results = await runTasks(
      3,
      async (world) => {
        const times: number[] = [];
        for (const comm of [world, world, await world.dup()]) {
          const began = world.now();
          const win = await Window.allocate(comm, Int32Array, 1024, { info: { noncontiguous: 'auto' } });
          times.push(world.now() - began);
          // Rank 1 has not measured: by its requests, 64 pieces of 4 bytes go packed.
          const data = new Int32Array(64);
          await win.lockAll();
          if (world.rank === 1) win.put(data, 2, 0, { target: { type: Datatype.vector(64, 1, 4, Datatype.INT32) } });
          await win.unlockAll();
          await world.barrier();
          times.push(win.statistics().layouts!.packed);
          await win.free();
        }
        return times;
      },
      { fabric: 'infinihost-express', seed: 1 },
    );
    for (const [rank, [first, , second, , other]] of results.entries()) {
      expect(first, `rank ${rank}`).toBeGreaterThan(10 * second);
      expect(other).toBeGreaterThan(10 * second);
    }
    expect(results.map(([, a, , b, , c]) => [a, b, c])).toEqual([
      [0, 0, 0],
      [1, 1, 1],
      [0, 0, 0],
    ]);
  });
});
