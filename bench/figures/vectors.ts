/**
 * The programs of the dissertation's chapter 8, with puts: columns of a matrix of 4-byte integers go to the same
 * columns of another rank's. All columns together are one layout of as many pieces as the matrix has rows.
 */
import { type Communicator, Datatype, type TransferLayout, Window } from 'onesided';

/** Elements of a row. */
const ROW = 4096;
const INT = Datatype.INT32;

/** Ways of a layout, and the same bytes one after the other. */
export const WAYS = ['multi-write', 'pack', 'sgrs', 'contiguous'] as const;
export type VectorWay = (typeof WAYS)[number];

export interface VectorOptions {
  readonly way: VectorWay;
  readonly rows: number;
  /** Of a put: a multiple of 4 × rows. */
  readonly bytes: number;
  /** Puts that are issued before the rank waits for them. */
  readonly window: number;
  /** Ranks that put to all others, of those in the job: 1 or all. */
  readonly senders: 'first' | 'all';
  /** The columns begin at no regular places, so that a layout lists its pieces. */
  readonly listed?: boolean;
  /** Each put has a layout of its own, which no rank knows. */
  readonly fresh?: boolean;
}

const ROUNDS = 4;

/** @returns microseconds of a round: so many puts to each other rank, until all are complete */
export async function vectors(world: Communicator, options: VectorOptions): Promise<number> {
  const { way, rows, bytes, window, senders, listed = false, fresh = false } = options;
  const { rank, size } = world;
  const elements = bytes / 4;
  const columns = elements / rows;
  const win = await Window.allocate(world, Int32Array, rows * ROW, {
    info: { noncontiguous: way === 'contiguous' ? 'multi-write' : way },
  });
  const places = Int32Array.from({ length: rows }, (_, row) => row * ROW + (row % 3));
  const side = () => ({
    type: listed ? Datatype.indexedBlock(columns, places, INT) : Datatype.vector(rows, columns, ROW, INT),
  });
  const both = (): TransferLayout => ({ origin: side(), target: side() });
  const layout = both();
  const origin = new Int32Array(rows * ROW);
  const plain = new Int32Array(elements);
  const puts = senders === 'all' || rank === 0;
  await win.lockAll();
  let began = 0;
  for (let round = -1; round < ROUNDS; round++) {
    if (round <= 0) {
      await world.barrier();
      began = world.now();
    }
    if (!puts) continue;
    for (let i = 0; i < window; i++) {
      for (let step = 1; step < size; step++) {
        const target = (rank + step) % size;
        if (way === 'contiguous') win.put(plain, target, 0);
        else win.put(origin, target, 0, fresh ? both() : layout);
      }
    }
    await win.flushAll();
  }
  const took = (world.now() - began) / ROUNDS;
  await world.barrier();
  await win.unlockAll();
  await win.free();
  return took;
}
