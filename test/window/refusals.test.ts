/** A window that one rank has no memory for is made by none, and all hear from which rank that is, and why. */
import { expect, it } from 'vitest';
import { type Communicator, Window } from '../../src/index.ts';
import { runTasks } from '../../src/start/tasks.ts';

const MAKE: [string, (world: Communicator) => Promise<Window>][] = [
  ['Window.createDynamic', (world) => Window.createDynamic(world)],
  ['Window.create', (world) => Window.create(world, null)],
  ['Window.allocate', (world) => Window.allocate(world, Uint8Array, 0)],
  ['Window.allocate', (world) => Window.allocate(world, Uint8Array, 8)],
];

it.each(MAKE)('%s', async (call, make) => {
  const told = new Map<number, { code?: string; message: string }>();
  await runTasks(
    3,
    async (world) => {
      const { context } = world.job;
      const { allocateMemory } = context;
      if (world.rank === 1) {
        context.allocateMemory = () => {
          throw new Error('nothing is left, not even for “this”');
        };
      }
      await make(world).catch((error: Error) => told.set(world.rank, error));
      context.allocateMemory = allocateMemory;
      // Nothing of it is left in the way of another window.
      const win = await make(world);
      await win.free();
      await world.finalize();
    },
    { fabric: 'infinihost-64' },
  );
  expect([...told.keys()].sort()).toEqual([0, 1, 2]);
  for (const [rank, { code, message }] of told) {
    expect(code).toBe(rank === 1 ? 'ERR_SIZE' : 'ERR_WIN');
    expect(message.startsWith(`${call}: `)).toBe(true);
    expect(message).toMatch(/nothing is left, not even for “this”$/);
    if (rank !== 1) expect(message).toContain('no window was created, because the call failed on rank 1: ');
  }
});
