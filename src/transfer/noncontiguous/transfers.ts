/** Puts and gets of a window that do not move by one request for each piece: who decides, and who carries them out. */
import type { Side } from '../../datatype/layout.ts';
import { type NoncontiguousName, needsTarget, noncontiguousNamed, type Way } from './kinds.ts';
import { piecesIn } from './layout-words.ts';
import type { PackedTransfers } from './pack.ts';
import { FIRST_SGRS, type SgrsTransfers } from './sgrs.ts';

/** Calls that do not wait, from one look at messages to the next; a power of two. */
const TURNS = 16;

export class NoncontiguousTransfers {
  /** Whether some of them wait until the target's program is in the library. */
  readonly needsTarget: boolean;
  readonly #wayOf: (puts: boolean, bytes: number, pieces: number) => Way;
  readonly #packed: PackedTransfers;
  readonly #sgrs: SgrsTransfers | undefined;
  readonly #poll: () => void;
  #turns = 0;

  /**
   * @param sgrs absent where no layout goes so
   * @param poll brings messages in
   */
  constructor(name: NoncontiguousName, packed: PackedTransfers, sgrs: SgrsTransfers | undefined, poll: () => void) {
    this.needsTarget = needsTarget(name);
    this.#wayOf = noncontiguousNamed(name).wayOf;
    this.#packed = packed;
    this.#sgrs = sgrs;
    this.#poll = poll;
  }

  /** @returns false if it is to move by a request for each piece; nothing was done then */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): boolean {
    const pieces = Math.max(piecesIn(from), piecesIn(to));
    if (pieces < 2) return false;
    const way = this.#wayOf(puts, from.bytes, pieces);
    if (way === 'multi-write') return false;
    if (way === 'sgrs' && this.#sgrs !== undefined) this.#sgrs.move(puts, origin, from, rank, at, to);
    else this.#packed.move(puts, origin, from, rank, at, to);
    return true;
  }

  /** Takes a message of another rank. */
  take(source: number, message: Uint8Array): void {
    // Messages begin at a multiple of 8 of a buffer of their own.
    const aligned = message.byteOffset % 8 === 0 ? message : message.slice();
    const what = new Int32Array(aligned.buffer, aligned.byteOffset, 1)[0];
    if (what < FIRST_SGRS) this.#packed.take(source, aligned);
    else this.#sgrs!.take(source, aligned);
  }

  /** Serves others in calls that never wait, now and then. */
  turn(): void {
    this.#turns = (this.#turns + 1) & (TURNS - 1);
    if (this.#turns === 0) this.#poll();
  }
}
