/** Columns of one array: bytes that lie between each other, and are not the same. */
import assert from 'node:assert/strict';
import { type Communicator, Datatype, Op, Window } from 'onesided';

const ROWS = 6;
const WIDTH = 5;

/** Calls from columns of an array to others of it: all of them are right, whatever is debugged. */
export async function columns(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const column = { type: Datatype.vector(ROWS, 1, WIDTH, Datatype.INT32) };
  const both = { origin: column, target: column };
  const win = await Window.allocate(world, Int32Array, ROWS * WIDTH);
  const at = (array: Int32Array, j: number): Int32Array => array.subarray(j, j + (ROWS - 1) * WIDTH + 1);
  const seen = (array: Int32Array, j: number): number[] => Array.from({ length: ROWS }, (_, i) => array[i * WIDTH + j]);
  const of = (value: number): number[] => Array(ROWS).fill(value);
  const fill = (array: Int32Array): Int32Array => array.map((_, i) => 100 * (i % WIDTH));
  win.local.set(fill(win.local));
  await world.barrier();

  // The own part: columns 0 and 1 to 2 and 3, and 4 is got into 0.
  await win.lockAll();
  win.put(at(win.local, 0), rank, 2, both);
  win.accumulate(at(win.local, 1), rank, 3, Op.SUM, both);
  await win.flush(rank);
  win.get(at(win.local, 0), rank, 4, both);
  await win.flush(rank);
  await win.unlockAll();
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((j) => seen(win.local, j)),
    [of(400), of(100), of(0), of(400), of(400)],
  );
  await world.barrier();

  // An array: origin and result are columns of it, and several gets go into columns at a time.
  const next = (rank + 1) % size;
  const mine = fill(new Int32Array(ROWS * WIDTH));
  await win.lockAll();
  const fetch = { origin: column, result: column, target: column };
  win.getAccumulate(at(mine, 1), at(mine, 3), next, 2, Op.SUM, fetch);
  await win.flush(next);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((j) => seen(mine, j)),
    [of(0), of(100), of(200), of(0), of(400)],
  );
  win.get(at(mine, 0), next, 0, both);
  win.get(at(mine, 4), next, 1, both);
  win.put(at(mine, 2), next, 3, both);
  await win.flush(next);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((j) => seen(mine, j)),
    [of(400), of(100), of(200), of(0), of(100)],
  );

  // The same column, or one that reaches into it.
  const refused = { code: 'ERR_BUFFER', message: /result overlaps origin/ };
  assert.throws(() => win.getAccumulate(at(mine, 1), at(mine, 1), next, 2, Op.SUM, fetch), refused);
  assert.throws(() => win.put(at(win.local, 1), rank, 1, both), {
    code: 'ERR_RMA_CONFLICT',
    message: /the origin overlaps the target bytes 4 … 7$/,
  });
  await win.unlockAll();
  await world.barrier();
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((j) => seen(win.local, j)),
    [of(400), of(100), of(100), of(200), of(400)],
  );
  await win.free();
}
