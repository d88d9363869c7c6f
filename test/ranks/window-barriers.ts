/**
 * Windows whose fences close by a barrier that a hint chooses (`barrier`), on processes and threads: what is put in an
 * epoch is there when it has ended, and nothing of the next one.
 */
import assert from 'node:assert/strict';
import { type Communicator, type RmaError, Window, type WindowInfo } from 'onesided';
import { runCases } from './support/cases.ts';

const ROUNDS = 200;

/** In each round, all put to all, each into a place of its own of one of two halves. */
async function fences(world: Communicator, info: WindowInfo, blocks: boolean): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 2 * size, { info });
  const fence = async (): Promise<void> => (blocks ? win.fenceSync() : win.fence());
  await fence();
  for (let round = 1; round <= ROUNDS; round++) {
    const at = size * (round % 2);
    for (let to = 0; to < size; to++) win.put(Float64Array.of(round), to, at + rank);
    await fence();
    for (let from = 0; from < size; from++) assert.equal(win.local[at + from], round, `of rank ${from}`);
  }
  assert.equal(win.getInfo().barrier, info.barrier ?? 'auto');
  assert.equal(win.getInfo().barrier_algorithm, info.barrier_algorithm ?? 'dissemination');
  await win.free();
}

const INFOS: readonly WindowInfo[] = [
  {},
  { barrier: 'words' },
  { barrier: 'messages' },
  { barrier: 'waits' },
  { barrier: 'waits', barrier_algorithm: 'pairwise' },
  { barrier: 'waits', barrier_algorithm: 'gather-broadcast:2', fence: 'remote-notify' },
  { barrier: 'messages', fence: 'immediate-optimized' },
];

/** The same error at all ranks that it concerns, and the next window can be made. */
async function refused(world: Communicator, info: WindowInfo, code: string, message: RegExp): Promise<void> {
  await assert.rejects(Window.allocate(world, Int32Array, 1, { info }), (error: RmaError) => {
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
  await (await Window.allocate(world, Int32Array, 1)).free();
}

await runCases({
  ...Object.fromEntries(
    INFOS.flatMap((info) =>
      [true, false].map((blocks) => [
        `fences ${blocks ? 'that block' : 'that are awaited'} with ${JSON.stringify(info)}`,
        (world: Communicator) => fences(world, info, blocks),
      ]),
    ),
  ),
  'what the device does not offer is refused': (world) =>
    refused(world, { barrier: 'adapter' }, 'ERR_INFO_VALUE', /"adapter" needs a device that offers it; leave it out/),
  'ranks that want different barriers are told': async (world) => {
    const barrier = world.rank === 1 ? 'waits' : 'messages';
    if (world.size > 1) await refused(world, { barrier }, 'ERR_INFO_VALUE', /the hint barrier of rank 1 differs/);
  },
  'ranks that want different algorithms are told': async (world) => {
    const info = { barrier: 'waits', ...(world.rank === 1 && { barrier_algorithm: 'pairwise' }) } as const;
    if (world.size > 1) await refused(world, info, 'ERR_INFO_VALUE', /the hint barrier_algorithm of rank 1 differs/);
  },
});
