/** Puts and gets of a window that do not move by one request for each piece: what decides that, and what moves them. */
import type { Side } from '../../datatype/sides.ts';
import type { LayoutStatistics } from '../requests/layout-statistics.ts';
import { type NoncontiguousKind, type NoncontiguousName, needsTarget, noncontiguousNamed } from './layout-kinds.ts';
import { piecesIn } from './layout-words.ts';
import type { Way } from './way.ts';
import type { LayoutCosts } from './way-costs.ts';

/** Moves layouts in one way. */
export interface Mover {
  /** The arguments are those of `RequestTransfer.put` and `get`. */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): void;
}

/** The same, with messages of its own to the other rank's program. */
export interface MessageMover extends Mover {
  /** Its messages begin with a number from 16 × `family` on, one of 16. */
  readonly family: number;
  /** Takes a message of another rank's mover of its family; it begins at a multiple of 8, and nothing of it is kept. */
  take(source: number, message: Uint8Array): void;
}

/** By way, those that a window has; what has none moves by a request for each piece. */
export type Movers = Readonly<Partial<Record<Way, Mover>>>;

function hasMessages(mover: Mover): mover is MessageMover {
  return 'family' in mover;
}

export class NoncontiguousTransfers {
  /** Whether some of them wait until the target's program is in the library. */
  readonly needsTarget: boolean;
  /** Whether it chooses by `costs`. */
  readonly needsCosts: boolean;
  /** What each way takes; undefined before it was measured. */
  costs: LayoutCosts | undefined;
  /** Serves others; absent where their programs ask this rank's for nothing. */
  readonly serve: (() => void) | undefined;
  readonly #kind: NoncontiguousKind;
  readonly #movers: Movers;
  readonly #families: readonly (MessageMover | undefined)[];
  readonly #counts: (() => LayoutStatistics) | undefined;

  constructor(name: NoncontiguousName, movers: Movers, serve?: () => void, counts?: () => LayoutStatistics) {
    this.needsTarget = needsTarget(name);
    this.#kind = noncontiguousNamed(name);
    this.needsCosts = this.#kind.measured === true;
    this.#movers = movers;
    const families: MessageMover[] = [];
    for (const mover of Object.values(movers)) if (hasMessages(mover)) families[mover.family] = mover;
    this.#families = families;
    this.serve = serve;
    this.#counts = counts;
  }

  /** Absent where a helper of the provider's has the other end of each transfer: it counts nothing. */
  get statistics(): LayoutStatistics | undefined {
    return this.#counts?.();
  }

  /** @returns false if it moves by a request for each piece; nothing was done then */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): boolean {
    const pieces = Math.max(piecesIn(from), piecesIn(to));
    if (pieces < 2) return false;
    return this.moveBy(this.#kind.wayOf(puts, from.bytes, pieces, this.costs), puts, origin, from, rank, at, to);
  }

  /** The same, of several pieces, in a way that is given. */
  moveBy(way: Way, puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): boolean {
    const mover = this.#movers[way];
    mover?.move(puts, origin, from, rank, at, to);
    return mover !== undefined;
  }

  /** Takes a message of another rank; nothing of it is kept. */
  take(source: number, message: Uint8Array): void {
    const aligned = message.byteOffset % 8 === 0 ? message : message.slice();
    // It is below 256, in the first or the last byte of its word.
    const what = aligned[0] | aligned[3];
    this.#families[what >> 4]!.take(source, aligned);
  }
}
