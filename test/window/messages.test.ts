/** What errors say of the mistakes that they are for. */
import { expect, it } from 'vitest';
import { type Communicator, Datatype, Lock, Window } from '../../src/index.ts';
import { runTasks } from '../../src/start/tasks.ts';

type Call = (world: Communicator, win: Window<Float64Array>) => unknown;
const TWO = Float64Array.of(1, 2);

const SAID: readonly [what: string, Call, RegExp][] = [
  ['elements, in a window of elements', (_, w) => w.put(TWO, 1, 3), /elements 3 … 4 do not fit into its part of 4 el/],
  ['one element', (_, w) => w.get(TWO.subarray(1), 1, 7), /: element 7 does not fit into its part of 4 elements of 8/],
  [
    'bytes, where they are no whole elements',
    (_, w) => w.put(new Uint8Array(3) as never, 1, 4, { target: { type: Datatype.UINT8, count: 3 } } as never),
    /bytes 32 … 34 do not fit into its part of 32 bytes \(displacement 4, unit 8\)/,
  ],
  ['whose rank', (_, w) => w.put(TWO, 9, 0), /9 is not a rank of the window \(0 … 1, or Rank\.NULL\)/],
  ['a mutex, for two tasks of one rank', (_, w) => w.lock(1, Lock.SHARED), /unlock\(1\) first, or, .*use a Mutex/],
  [
    'that bytes are no integers of 8 bits',
    (_, w) => w.put(new Uint8Array(8) as never, 1, 0, { target: { type: Datatype.BYTE, count: 8 } } as never),
    /8 elements of UINT8, but .* 8 elements of BYTE; Datatype\.BYTE matches Datatype\.BYTE only/,
  ],
];

it.each(SAID)('an error names %s', async (_, call, said) => {
  await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 4);
      if (world.rank === 0) {
        await win.lock(1, Lock.EXCLUSIVE);
        await expect((async () => call(world, win))()).rejects.toThrow(said);
        await win.unlock(1);
      }
      await win.free();
    },
    { fabric: 'infinihost-64' },
  );
});
