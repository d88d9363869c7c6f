/**
 * Where epochs were opened, with `ONESIDED_DEBUG=epochs`: the error names the function that has opened the one that is
 * open, not another one.
 */
import assert from 'node:assert/strict';
import { type Communicator, Lock, Window } from 'onesided';
import { runCases } from './support/cases.ts';

async function locks(world: Communicator): Promise<void> {
  const win = await Window.allocate(world, Int32Array, 1);
  const keepOpen = (): void => win.lockSync(0, Lock.SHARED);
  const openAndClose = (): void => {
    win.lockSync(1, Lock.SHARED);
    win.unlockSync(1);
  };
  keepOpen();
  openAndClose();
  await assert.rejects(world.finalize(), (error: Error) => {
    assert.match(error.message, /holds the lock of rank 0;.*The lock of rank 0 was taken\n.*keepOpen/s);
    assert.doesNotMatch(error.message, /openAndClose/);
    return true;
  });
  await win.unlock(0);
  await win.free();
}

async function calls(world: Communicator): Promise<void> {
  const win = await Window.allocate(world, Int32Array, 1);
  const { group } = world;
  const opening: Record<string, readonly [open: () => Promise<void>, close: () => Promise<void>]> = {
    lockAll: [async () => win.lockAll(), () => win.unlockAll()],
    start: [
      async () => {
        await win.post(group);
        await win.start(group);
      },
      async () => {
        await win.complete();
        await win.wait();
      },
    ],
    post: [async () => win.post(group.include([])), () => win.wait()],
  };
  for (const [call, [open, close]] of Object.entries(opening)) {
    await open();
    await assert.rejects(
      world.finalize(),
      new RegExp(`The ${call} epoch was opened\n.*window-openings`, 's'),
      `${call} is named`,
    );
    await close();
  }
  await win.free();
}

await runCases({
  'a lock names the call that opened it, not another one': locks,
  'each kind of epoch names the call that opened it': calls,
});
