/**
 * Layouts that a helper serves beside the target's program (hint `noncontiguous`: `host-assisted`), where the provider
 * has helpers: run on a device. A target that is to be computing looks at its memory only, without a call, until the
 * origin tells it by a write that all is done: if its program had to serve anything, both would wait for ever.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, Datatype, Window } from 'onesided';
import { runCases } from './support/cases.ts';

const info = { noncontiguous: 'host-assisted' } as const;
const [ROWS, ROW] = [700, 16];
/** Pieces of consecutive bytes of many lengths, in any order. */
const COLUMNS = Datatype.vector(ROWS, 8, ROW, Datatype.INT32);
const SHUFFLED = Datatype.indexed(
  Int32Array.from({ length: ROWS }, (_, i) => 1 + ((i * 5) % 8)),
  Int32Array.from({ length: ROWS }, (_, i) => ROW * ((i * 11) % ROWS)),
  Datatype.INT32,
);

/** Waits without a call of the library. */
function compute(word: Int32Array, until: number): void {
  while (Atomics.load(word, 0) !== until);
}

async function whileTheTargetComputes(comm: Communicator): Promise<void> {
  const { rank } = comm;
  const win = await Window.allocate(comm, Int32Array, ROWS * ROW + 1, { info });
  await win.lockAll();
  for (let round = 1; round <= 5; round++) {
    await comm.barrier();
    if (rank === 1) compute(win.local.subarray(ROWS * ROW), round);
    if (rank === 0) {
      const values = Int32Array.from({ length: ROWS * 8 }, (_, i) => i + round);
      const back = new Int32Array(values.length);
      win.put(values, 1, 0, { target: { type: COLUMNS } });
      win.flushSync(1);
      win.get(back, 1, 0, { target: { type: COLUMNS } });
      await win.flush(1);
      assert.deepEqual(back, values);
      win.put(Int32Array.of(round), 1, ROWS * ROW);
      win.flushSync(1);
    }
    assert.equal(win.progress('put', 1 - Math.min(rank, 1)), 'device');
  }
  await win.unlockAll();
  await win.free();
}

/** All ranks at once, to all others, with layouts at both ends, many at a time. */
async function allAtOnce(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const part = ROWS * ROW;
  const win = await Window.allocate(world, Int32Array, part * size, { info });
  const elements = SHUFFLED.elements;
  const type = { type: SHUFFLED };
  await win.lockAll();
  for (let round = 0; round < 3; round++) {
    const sent = Int32Array.from({ length: part }, (_, i) => i * size + rank + round);
    for (let to = 0; to < size; to++) win.put(sent, to, rank * part, { origin: type, target: type });
    await win.flushAll();
    await world.barrier();
    for (let from = 0; from < size; from++) {
      const got = new Int32Array(elements);
      win.get(got, rank, from * part, { target: type });
      await win.flush(rank);
      const expected = new Int32Array(elements);
      win.get(expected, (rank + 1) % size, from * part, { target: type });
      await win.flush((rank + 1) % size);
      assert.deepEqual(got, expected);
      assert.equal(got[0] % size, (from + round) % size);
    }
    await world.barrier();
  }
  await win.unlockAll();
  await win.free();
}

/** Helpers of this process: their threads have a name. */
function threads(): number {
  const names = readdirSync('/proc/self/task').map((id) => {
    try {
      return readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim();
    } catch {
      return '';
    }
  });
  return names.filter((name) => name === 'onesided-helper').length;
}

/** A window's thread ends with it, though nothing was ever asked of it, or just before. */
async function threadsEnd(world: Communicator): Promise<void> {
  const { rank, size } = world;
  assert.equal(threads(), 0);
  for (let i = 0; i < 20; i++) {
    const win = await Window.allocate(world, Int32Array, ROWS * ROW, { info });
    await win.lockAll();
    if (i % 2 === 1) win.put(new Int32Array(ROWS * 8), (rank + 1) % size, 0, { target: { type: COLUMNS } });
    await win.unlockAll();
    // A thread gives itself its name when it has begun.
    while (threads() === 0) await sleep(1);
    assert.equal(threads(), 1);
    await win.free();
    // The kernel wakes who joins a thread shortly before it takes the thread from its list.
    for (let looks = 0; threads() > 0 && looks < 5000; looks++) await sleep(1);
    assert.equal(threads(), 0);
  }
}

await runCases({
  'layouts move while the target computes': whileTheTargetComputes,
  'layouts move between all ranks at once': allAtOnce,
  'the thread of a window ends with it': threadsEnd,
});
