/** That `noncontiguous: 'auto'` is never much worse than the best of the others, on every fabric of the package. */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { NONCONTIGUOUS_NAMES } from '../../src/transfer/layouts/layout-kinds.ts';
import { Window } from '../../src/window/calls/window.ts';

const ROW = 1024;
const PIECES = [2, 4, 8, 16, 64, 128, 256];
const BYTES = [16, 64, 256, 1024];

interface Took {
  readonly what: string;
  readonly microseconds: number;
}

/** Virtual time of each call with its flush, once the connections are there and the layout has gone over. */
async function measure(world: Communicator, noncontiguous: (typeof NONCONTIGUOUS_NAMES)[number]): Promise<Took[]> {
  const win = await Window.allocate(world, Int32Array, Math.max(...PIECES) * ROW, { info: { noncontiguous } });
  const took: Took[] = [];
  const last = world.size - 1;
  await win.lockAll();
  await world.barrier();
  if (world.rank === 0) {
    for (const call of ['put', 'get'] as const) {
      for (const pieces of PIECES) {
        for (const bytes of BYTES) {
          const elements = bytes / 4;
          const layout = { target: { type: Datatype.vector(pieces, elements, ROW, Datatype.INT32) } };
          const data = new Int32Array(pieces * elements);
          let begun = 0;
          for (let round = 0; round < 3; round++) {
            begun = world.now();
            win[call](data, last, 0, layout);
            await win.flush(last);
          }
          took.push({ what: `${call} of ${pieces} × ${bytes} bytes`, microseconds: world.now() - begun });
        }
      }
    }
  }
  await world.barrier();
  await win.unlockAll();
  await win.free();
  return took;
}

describe('auto', () => {
  test.each([
    ['infinihost-64', 2],
    ['infinihost-express', 2],
    ['infinihost-pci-x', 2],
    ['bsp-ib-16', 2],
    // On two nodes.
    ['connectx-16-cores', 17],
  ])('on %s, %i ranks', async (fabric, ranks) => {
    // A window that can send lists looks at one connection more, at both ends.
    const allowed = fabric === 'connectx-16-cores' ? 1.15 : 1.1;
    const all = new Map<string, Took[]>();
    for (const name of NONCONTIGUOUS_NAMES) {
      const [took] = await runTasks(ranks, (world) => measure(world, name), { fabric, seed: 1 });
      all.set(name, took);
    }
    const auto = all.get('auto')!;
    all.delete('auto');
    for (const [i, { what, microseconds }] of auto.entries()) {
      const best = Math.min(...[...all.values()].map((took) => took[i].microseconds));
      expect(microseconds, what).toBeLessThanOrEqual(allowed * best);
    }
    // One of them alone would be much worse somewhere.
    for (const took of all.values()) {
      expect(took.some(({ microseconds }, i) => microseconds > 1.5 * auto[i].microseconds)).toBe(true);
    }
  });
});
