/**
 * What puts and gets of layouts take under each scheme (hint `noncontiguous`), by pieces and bytes of a piece: the grid
 * from which `auto` chooses. Prints a line of JSON for each scheme, from rank 0; microseconds, the least of `ROUNDS`.
 *
 *   onesided run -n 2 build/programs/bench/ranks/layouts.js
 *
 * The other rank waits in the library. bench/device/layouts.sh runs it on a device, in a guest.
 */
import { type Communicator, Datatype, init, Window, type WindowInfo } from 'onesided';

const SCHEMES: readonly NonNullable<WindowInfo['noncontiguous']>[] = ['multi-write', 'pack', 'sgrs', 'auto'];
const PIECES = [2, 3, 4, 8, 16, 64, 128];
const BYTES = [16, 64, 256, 1024];
const ROW = 2048;
/** The first ones compile the loop. */
const WARM_UP = 12;
const ROUNDS = 4;
const CALLS = 4;

async function measure(world: Communicator, noncontiguous: (typeof SCHEMES)[number]): Promise<number[][]> {
  const win = await Window.allocate(world, Uint8Array, Math.max(...PIECES) * ROW, { info: { noncontiguous } });
  const took: number[][] = [];
  await win.lockAll();
  await world.barrier();
  if (world.rank === 0) {
    for (const call of ['put', 'get'] as const) {
      for (const pieces of PIECES) {
        const row: number[] = [];
        took.push(row);
        for (const bytes of BYTES) {
          const layout = { target: { type: Datatype.vector(pieces, bytes, ROW, Datatype.UINT8) } };
          const data = new Uint8Array(pieces * bytes);
          let least = Number.POSITIVE_INFINITY;
          for (let round = -WARM_UP; round < ROUNDS; round++) {
            const begun = performance.now();
            for (let i = 0; i < CALLS; i++) {
              win[call](data, 1, 0, layout);
              win.flushSync(1);
            }
            if (round >= 0) least = Math.min(least, (performance.now() - begun) / CALLS);
          }
          row.push(Math.round(1e4 * least) / 10);
        }
      }
    }
  }
  world.barrierSync();
  await win.unlockAll();
  await win.free();
  return took;
}

const world = await init();
for (const scheme of SCHEMES) {
  const took = await measure(world, scheme);
  if (world.rank !== 0) continue;
  const half = took.length / 2;
  console.log(
    JSON.stringify({ scheme, pieces: PIECES, bytes: BYTES, put: took.slice(0, half), get: took.slice(half) }),
  );
}
await world.finalize();
