/** Puts and gets of a window that do not move by one request for each piece: who decides, and who carries them out. */
import type { Side } from '../../datatype/layout.ts';
import { type NoncontiguousName, noncontiguousNamed, type Way } from './kinds.ts';
import { piecesIn } from './layout-words.ts';
import type { PackedTransfers } from './pack.ts';

/** Calls that do not wait, from one look at messages to the next; a power of two. */
const TURNS = 16;

export class NoncontiguousTransfers {
  readonly #wayOf: (bytes: number, pieces: number) => Way;
  readonly #packed: PackedTransfers;
  readonly #poll: () => void;
  #turns = 0;

  /** @param poll brings messages in */
  constructor(name: NoncontiguousName, packed: PackedTransfers, poll: () => void) {
    this.#wayOf = noncontiguousNamed(name).wayOf;
    this.#packed = packed;
    this.#poll = poll;
  }

  /** @returns false if it is to move by a request for each piece; nothing was done then */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): boolean {
    const pieces = Math.max(piecesIn(from), piecesIn(to));
    if (pieces < 2 || this.#wayOf(from.bytes, pieces) === 'multi-write') return false;
    this.#packed.move(puts, origin, from, rank, at, to);
    return true;
  }

  /** Serves others in calls that never wait, now and then. */
  turn(): void {
    this.#turns = (this.#turns + 1) & (TURNS - 1);
    if (this.#turns === 0) this.#poll();
  }
}
