/** Programs that ask how layouts of several pieces move: what is sent for them, and what it costs processors. */
import { type Communicator, Datatype, type LayoutStatistics, type TransferLayout, Window } from 'onesided';
import { processorUse } from 'onesided/fabrics';

const INT = Datatype.INT32;
/** Elements of a row. */
const ROW = 4096;

export interface SpentOptions {
  readonly noncontiguous: 'multi-write' | 'sgrs';
  readonly rows: number;
  /** Of a put: a multiple of 4 × rows. */
  readonly bytes: number;
  /** Puts that are measured, each with its flush; with none, what the program itself takes. */
  readonly puts: number;
}

/** Puts of rank 0 to rank 1, which waits in a barrier. @returns microseconds that this rank's processor has spent */
export async function spent(world: Communicator, options: SpentOptions): Promise<number> {
  const { noncontiguous, rows, bytes, puts } = options;
  const win = await Window.allocate(world, Int32Array, rows * ROW, { info: { noncontiguous } });
  const side = { type: Datatype.vector(rows, bytes / 4 / rows, ROW, INT) };
  const layout: TransferLayout = { origin: side, target: side };
  const origin = new Int32Array(rows * ROW);
  await win.lockAll();
  const put = async (): Promise<void> => {
    if (world.rank !== 0) return;
    win.put(origin, 1, 0, layout);
    await win.flush(1);
  };
  // Connections are made, and the layout goes over.
  await put();
  await world.barrier();
  const before = processorUse(world).library;
  for (let i = 0; i < puts; i++) await put();
  await world.barrier();
  const took = processorUse(world).library - before;
  await win.unlockAll();
  await win.free();
  return took;
}

export interface ListedOptions {
  readonly pieces: number;
  /** Whether the target's pieces are cut elsewhere than the origin's. */
  readonly other: boolean;
  readonly puts: number;
}

export interface Listed {
  readonly before: LayoutStatistics;
  readonly after: LayoutStatistics;
  /** Whether all bytes are where they belong, and nothing else has changed. */
  readonly right: boolean;
}

/** Elements of a piece, at the origin and at a target that is cut in the same way, or elsewhere. */
const PIECE = 6;
const OTHER = 4;
const GAP = 2;

/** Elements that a layout of `pieces` pieces spans. */
export function spanOf(pieces: number): number {
  return pieces * (PIECE + GAP);
}

/**
 * Puts of rank 0 to rank 1 by `sgrs`, with messages of other kinds between them.
 * @returns what this rank has counted when it had made the window, and in the end
 */
export async function listed(world: Communicator, { pieces, other, puts }: ListedOptions): Promise<Listed> {
  const elements = pieces * PIECE;
  const length = other ? OTHER : PIECE;
  const cut = { type: Datatype.vector(pieces, PIECE, PIECE + GAP, INT) };
  const there = { type: Datatype.vector(elements / length, length, length + GAP, INT) };
  const size = (elements / length) * (length + GAP);
  const win = await Window.allocate(world, Int32Array, size, { info: { noncontiguous: 'sgrs' } });
  const origin = Int32Array.from({ length: spanOf(pieces) }, (_, i) => i + 1);
  const before = win.statistics().layouts!;
  await win.lockAll();
  let right = true;
  const heard = new Int32Array(1);
  for (let i = 0; i < puts; i++) {
    if (world.rank === 0) win.put(origin, 1, 0, { origin: cut, target: there });
    if (world.rank === 0) {
      world.send(Int32Array.of(i), 1);
      await win.flush(1);
    } else {
      await world.receive(heard, 0);
      right &&= heard[0] === i;
    }
  }
  await world.barrier();
  const after = win.statistics().layouts!;
  if (world.rank === 1) {
    const values = origin.filter((_, i) => i % (PIECE + GAP) < PIECE);
    let next = 0;
    right &&= win.local.every((value, i) => value === (i % (length + GAP) < length ? values[next++] : 0));
  }
  await win.unlockAll();
  await win.free();
  return { before, after, right };
}
