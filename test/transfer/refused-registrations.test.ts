/**
 * A device that refuses to register what a layout lies in (`faults.registration`): one registration over pieces and
 * gaps fails, and the bytes go another way, or others make room. Likewise a second connection that is refused. Nothing
 * is lost, and nobody hangs.
 */
import { describe, expect, test, vi } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { runTasks } from '../../src/start/tasks.ts';
import type { LayoutStatistics } from '../../src/transfer/requests/layout-statistics.ts';
import { QpState } from '../../src/verbs/queue-pair.ts';
import { Window } from '../../src/window/calls/window.ts';

const ELEMENTS = 4096;
const BYTES = 4 * ELEMENTS;
const PIECES = 128;
const [COLUMN, ROW] = [24, 32];
const COLUMNS = { type: Datatype.vector(PIECES, COLUMN, ROW, Datatype.INT32) };
const BOTH = { origin: COLUMNS, target: COLUMNS };
const NAMES = ['sgrs', 'host-assisted', 'auto'] as const;
type Name = (typeof NAMES)[number];

const filled = (first: number): Int32Array => Int32Array.from({ length: ELEMENTS }, (_, i) => first + i);
const isCovered = (i: number): boolean => i % ROW < COLUMN;

interface Seen {
  readonly right: boolean;
  readonly layouts: LayoutStatistics;
}

/** Rank 0 puts from so many arrays in turn to rank 1, and gets into them what is there. */
async function exchange(world: Communicator, name: Name, arrays: number, turns: number): Promise<Seen> {
  const win = await Window.allocate(world, Int32Array, ELEMENTS, { info: { noncontiguous: name } });
  let right = true;
  await win.lockAll();
  if (world.rank === 0) {
    const origins = Array.from({ length: arrays }, () => new Int32Array(ELEMENTS));
    for (let turn = 0; turn < turns; turn++) {
      const origin = origins[turn % arrays];
      origin.set(filled(1000 * (turn + 1)));
      win.put(origin, 1, 0, BOTH);
      // The next one is issued before this one is complete: it has to wait until registrations can be given up.
      const into = origins[(turn + 1) % arrays];
      if (arrays === 1) await win.flush(1);
      else into.fill(-1);
      const before = [...into];
      win.get(into, 1, 0, BOTH);
      await win.flush(1);
      const there = new Int32Array(ELEMENTS);
      win.get(there, 1, 0, BOTH);
      await win.flush(1);
      right &&= there.every((value, i) => value === (isCovered(i) ? 1000 * (turn + 1) + i : 0));
      right &&= into.every((value, i) => isCovered(i) || value === before[i]);
    }
  }
  await world.barrier();
  const { layouts } = win.statistics();
  await win.unlockAll();
  await win.free();
  return { right, layouts: layouts! };
}

const run = (name: Name, arrays: number, turns: number, registration?: number): Promise<Seen[]> =>
  runTasks(2, (world) => exchange(world, name, arrays, turns), {
    fabric: 'infinihost-express',
    faults: registration === undefined ? {} : { registration },
  });

test.each(NAMES)('%s: what cannot be registered at all goes packed, whole and right', async (name) => {
  const [{ right, layouts }] = await run(name, 1, 4, BYTES - 1);
  expect(right).toBe(true);
  expect(layouts).toMatchObject({ packed: 12, sends: 0, receives: 0 });
  // Without the refusal it is gathered and scattered.
  const [usual] = await run(name, 1, 4);
  expect(usual.right).toBe(true);
  expect(usual.layouts.sends + usual.layouts.receives).toBeGreaterThan(0);
  // `auto` has measured that lists are quicker here.
  expect(usual.layouts.packed).toBe(0);
});

test.each(NAMES)(
  '%s: where one origin can be registered at a time, each takes the place of the other',
  async (name) => {
    const [{ right, layouts }] = await run(name, 3, 9, BYTES);
    expect(right).toBe(true);
    expect(layouts).toMatchObject({ packed: 0, sends: 9 * 3 });
  },
);

test('without the hint, an origin that cannot be registered is refused: the call says why', async () => {
  const main = async (world: Communicator): Promise<void> => {
    const win = await Window.allocate(world, Int32Array, ELEMENTS);
    await win.lockAll();
    if (world.rank === 0) {
      const put = (): void => win.put(new Int32Array(ELEMENTS), 1, 0);
      expect(put).toThrow(/cannot lock 16384 bytes: 0 of 16383 bytes are locked \(ENOMEM\)/);
    }
    await win.unlockAll();
    await win.free();
  };
  await runTasks(2, main, { fabric: 'infinihost-express', faults: { registration: BYTES - 1 } });
});

test('a part of the program’s own that cannot be registered fails at all ranks, and the job goes on', async () => {
  const main = async (world: Communicator): Promise<string> => {
    const failed = await Window.create(world, new Int32Array(world.rank === 1 ? ELEMENTS : 8)).then(
      () => 'made',
      (error: Error) => error.message,
    );
    await world.barrier();
    return failed;
  };
  const found = await runTasks(2, main, { fabric: 'infinihost-express', faults: { registration: 1024 } });
  expect(found[1]).toMatch(/^Window.create: .*: register memory: cannot lock 16384 bytes: 0 of 1024 bytes are locked/);
  expect(found[0]).toMatch(/rank 1/);
});

test('a second connection that one rank could not make is not made later: both go another way', async () => {
  const layouts = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, ELEMENTS, { info: { noncontiguous: 'sgrs' } });
      const other = 1 - world.rank;
      const origin = filled(1000 * (world.rank + 1));
      await win.lockAll();
      win.put(Int32Array.of(0), other, ELEMENTS - 1);
      await win.flush(other);
      await world.barrier();
      if (world.rank === 0) {
        const refused = vi.spyOn(world.job.pd, 'createQueuePair').mockImplementation(() => {
          throw new Error('no more queue pairs');
        });
        win.put(origin, other, 0, BOTH);
        await win.flush(other);
        refused.mockRestore();
      }
      await world.barrier();
      if (world.rank === 1) {
        win.put(origin, other, 0, BOTH);
        await win.flush(other);
      }
      await world.barrier();
      const expected = filled(1000 * (other + 1));
      const right = win.local.subarray(0, ELEMENTS - 1).every((value, i) => value === (isCovered(i) ? expected[i] : 0));
      await win.unlockAll();
      await win.free();
      return right;
    },
    { fabric: 'infinihost-64' },
  );
  expect(layouts).toEqual([true, true]);
});

/** Who asks for the second connection; 'both' at the same time. */
const ASKING = [[0], [1], [0, 1]] as const;

describe.each(ASKING)(
  'a second connection that ranks %s and %s ask for, where rank 0 cannot connect its end',
  (...ranks) => {
    test.each(['put', 'get'] as const)('is made by neither: a %s goes packed, now and later', async (call) => {
      const found = await runTasks(
        2,
        async (world) => {
          const win = await Window.allocate(world, Int32Array, ELEMENTS, { info: { noncontiguous: 'sgrs' } });
          const other = 1 - world.rank;
          const into = new Int32Array(ELEMENTS);
          const move = async (): Promise<void> => {
            if (call === 'put') win.put(filled(1000 * (world.rank + 1)), other, 0, BOTH);
            else win.get(into, other, 0, BOTH);
            await win.flush(other);
          };
          if (call === 'get') win.local.set(filled(1000 * (world.rank + 1)));
          await world.barrier();
          await win.lockAll();
          const refused = world.rank === 0 ? refuseToConnect(world) : undefined;
          if ((ranks as readonly number[]).includes(world.rank)) await move();
          await world.barrier();
          refused?.mockRestore();
          await move();
          await world.barrier();
          const there = call === 'put' ? win.local : into;
          const expected = filled(1000 * (other + 1));
          const right = there.every((value, i) => value === (isCovered(i) ? expected[i] : 0));
          const { packed, sends } = win.statistics().layouts!;
          await win.unlockAll();
          await win.free();
          return { right, packed, sends };
        },
        { fabric: 'infinihost-64' },
      );
      expect(found).toEqual(
        [0, 1].map((rank) => ({ right: true, packed: ranks.includes(rank as never) ? 2 : 1, sends: 0 })),
      );
    });
  },
);

/** Queue pairs that the rank makes from now on connect to nothing. */
function refuseToConnect({ job }: Communicator): { mockRestore(): void } {
  const make = job.pd.createQueuePair.bind(job.pd);
  return vi.spyOn(job.pd, 'createQueuePair').mockImplementation((options) => {
    const queuePair = make(options);
    const modify = queuePair.modify.bind(queuePair);
    queuePair.modify = (attributes) => {
      if (attributes.state === QpState.RTR) throw new Error('no route to the device');
      modify(attributes);
    };
    return queuePair;
  });
}
