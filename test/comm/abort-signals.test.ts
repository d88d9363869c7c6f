/**
 * Signals of the program that lie or throw: a wait ends as the real signal says, and what does not begin leaves nothing
 * behind.
 */
import { expect, it, vi } from 'vitest';
import { init, Lock, Window } from '../../src/index.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Mutex } from '../../src/structures/index.ts';

function lying(properties: Record<string, unknown>): { controller: AbortController; signal: AbortSignal } {
  const controller = new AbortController();
  const { signal } = controller;
  for (const [name, value] of Object.entries(properties)) Object.defineProperty(signal, name, { value });
  return { controller, signal };
}

const never = () => {
  throw new Error('not this time');
};

/** Neither the program's own functions nor its own properties of a signal are asked. */
const LIES: [string, Record<string, unknown>][] = [
  ['addEventListener throws', { addEventListener: never }],
  ['removeEventListener throws', { removeEventListener: never }],
  ['is always aborted, of itself', { aborted: true }],
  ['has another reason, of itself', { reason: new Error('a lie') }],
];

it.each(LIES)('a wait with a signal that %s ends by its real state', async (_, lies) => {
  const world = await init();
  const { controller, signal } = lying(lies);
  const abandon = vi.fn();
  const operation = { advance: () => false, describe: () => 'a test', abandon };
  const waiting = world.members.wait(operation, { signal });
  expect(abandon).not.toHaveBeenCalled();
  const reason = new Error('enough');
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  expect(abandon).toHaveBeenCalledTimes(1);
});

it('a wait with a signal that takes no listener does not begin', async () => {
  const world = await init();
  const { signal } = lying({ constructor: null });
  const abandon = vi.fn();
  const operation = { advance: () => false, describe: () => 'a test', abandon };
  await expect(world.members.wait(operation, { signal })).rejects.toMatchObject({
    code: 'ERR_ARG',
    message: expect.stringContaining('takes no listener'),
  });
  expect(abandon).toHaveBeenCalledTimes(1);
});

const ALL: typeof LIES = [...LIES, ['takes no listener', { constructor: null }]];

it.each(ALL)('leaves no ticket in the line of a lock when its signal %s', async (_, lies) => {
  await runTasks(
    3,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 1);
      if (world.rank === 0) await win.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank === 1) {
        const { controller, signal } = lying(lies);
        const outcome = outcomeOf(win.lock(0, Lock.EXCLUSIVE, 0, { signal }));
        await world.compute(10);
        // Nobody can abort one that takes no listener.
        if (!Object.hasOwn(lies, 'constructor')) controller.abort(new Error('enough'));
        expect(await outcome).toMatch(/^enough$|takes no listener/);
      }
      await world.barrier();
      if (world.rank === 0) await win.unlock(0);
      // Would wait for ever behind a ticket that nobody serves.
      await win.lock(0, Lock.EXCLUSIVE);
      await win.unlock(0);
      await win.free();
      await world.finalize();
    },
    { fabric: 'infinihost-64' },
  );
});

it.each(ALL)('leaves no ticket in the line of a mutex when its signal %s', async (_, lies) => {
  const world = await init();
  const mutex = await Mutex.create(world);
  const first = await mutex.lock();
  const { controller, signal } = lying(lies);
  const outcome = outcomeOf(mutex.lock({ signal }));
  // Nobody can abort one that takes no listener.
  if (!Object.hasOwn(lies, 'constructor')) controller.abort(new Error('enough'));
  expect(await outcome).toMatch(/^enough$|takes no listener/);
  first.release();
  (await mutex.lock()).release();
  await mutex.free();
});

function outcomeOf(waiting: Promise<unknown>): Promise<string> {
  return waiting.then(
    () => 'acquired',
    (error: Error) => error.message,
  );
}

it('a wait that ends early is told why, whatever giving it up throws, and others go on', async () => {
  const world = await init();
  const failing = { advance: () => false, describe: () => 'a test', abandon: never };
  await expect(world.members.wait(failing, { timeout: 10 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
  const thrown = {
    ...failing,
    advance: vi
      .fn()
      .mockReturnValueOnce(false)
      .mockImplementation(() => never()),
  };
  await expect(world.members.wait(thrown)).rejects.toThrow('not this time');
  await world.barrier({ timeout: 60_000 });
});
