/**
 * The programs of the dissertation's chapter 8, with puts: columns of a matrix of 4-byte integers go to the same
 * columns of another rank's. All columns together are one layout of as many pieces as the matrix has rows.
 *
 * "In both the Multi-W and SGRS schemes, the layout has to be exchanged between the sender and receiver before data
 * communication" (§8.2). By `sgrs` a put asks its target itself; before one by `multi-write` the program asks, and
 * waits for the answer. Where all ranks put to all others, they do so in pairs, as an all-to-all of long messages does:
 * in step k each rank and the one whose number differs by the bits of k.
 *
 * The layouts that list their pieces are columns cut at irregular places, or the dissertation's own: "the two leading
 * diagonals of a square matrix", of blocks, whose number grows with the matrix.
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
  /** Of columns; of diagonals, what there is. */
  readonly rows: number;
  /** Of a put: a multiple of 4 × rows. */
  readonly bytes: number;
  /** Puts that are issued before the rank waits for them. */
  readonly window: number;
  /** Ranks that put to all others, of those in the job: 1 or all. */
  readonly senders: 'first' | 'all';
  /** So that a layout lists where each piece begins and how long it is: what pieces are like. */
  readonly listed?: 'columns' | 'diagonals';
  /** Each put has a layout of its own, which no rank knows. */
  readonly fresh?: boolean;
}

const ROUNDS = 4;
/** Rows and columns of a block of the diagonals. */
export const BLOCK = 8;
/** Of a request that names a layout, and of its answer: as long as those of `sgrs`. */
const WORDS = 4 + 6;

/** Where pieces begin and how long they are, and the elements of the matrix that they are in. */
interface Listed {
  readonly places: Int32Array;
  readonly lengths: Int32Array;
  readonly span: number;
}

/** Columns of two lengths, in rows of `ROW`, at no regular places. */
function cutColumns(rows: number, columns: number): Listed {
  return {
    places: Int32Array.from({ length: rows }, (_, row) => row * ROW + (row % 3)),
    lengths: Int32Array.from({ length: rows }, (_, row) => columns + (row % 2 === 0 ? 1 : -1)),
    span: rows * ROW,
  };
}

/** Blocks on the diagonal of a square matrix, and on the one above it, which is a block shorter. */
function diagonals(elements: number): Listed {
  const rows = Math.ceil(elements / (2 * BLOCK));
  const begin = (row: number): number => row - (row % BLOCK);
  const last = rows - BLOCK;
  return {
    places: Int32Array.from({ length: rows }, (_, row) => row * rows + begin(row)),
    lengths: Int32Array.from({ length: rows }, (_, row) => (row < last ? 2 * BLOCK : BLOCK)),
    span: rows * rows,
  };
}

/** @returns microseconds of a round: so many puts to each other rank, until all are complete */
export async function vectors(world: Communicator, options: VectorOptions): Promise<number> {
  const { way, rows, bytes, window, senders, listed, fresh = false } = options;
  const { rank, size } = world;
  if ((size & (size - 1)) !== 0) throw new Error(`vectors: ${size} ranks make no pairs at each step`);
  const elements = bytes / 4;
  const columns = elements / rows;
  const { places, lengths, span } = listed === 'diagonals' ? diagonals(elements) : cutColumns(rows, columns);
  const win = await Window.allocate(world, Int32Array, span, {
    info: { noncontiguous: way === 'contiguous' ? 'multi-write' : way },
  });
  const side = () => ({
    type: listed === undefined ? Datatype.vector(rows, columns, ROW, INT) : Datatype.indexed(lengths, places, INT),
  });
  const both = (): TransferLayout => ({ origin: side(), target: side() });
  const layout = both();
  const origin = new Int32Array(span);
  const plain = new Int32Array(elements);
  const puts = (one: number): boolean => senders === 'all' || one === 0;
  const asks = way === 'multi-write';
  const request = new Int32Array(WORDS);
  const heard = new Int32Array(WORDS);
  const put = (target: number): void => {
    if (way === 'contiguous') win.put(plain, target, 0);
    else win.put(origin, target, 0, fresh ? both() : layout);
  };
  /** All puts to a rank, which puts as many to this one or none. */
  const exchange = async (other: number): Promise<void> => {
    for (let i = 0; asks && puts(rank) && i < window; i++) world.send(request, other);
    for (let i = 0; asks && puts(other) && i < window; i++) {
      await world.receive(heard, other);
      world.send(request, other);
    }
    for (let i = 0; puts(rank) && i < window; i++) {
      if (asks) await world.receive(heard, other);
      put(other);
    }
    await win.flush(other);
  };
  await win.lockAll();
  let began = 0;
  for (let round = -1; round < ROUNDS; round++) {
    if (round <= 0) {
      await world.barrier();
      began = world.now();
    }
    for (let step = 1; step < size; step++) await exchange(rank ^ step);
  }
  const took = (world.now() - began) / ROUNDS;
  await world.barrier();
  await win.unlockAll();
  await win.free();
  return took;
}
