/** Groups of ranks (MPI 4.1, section 7.3): ordered sets, local, immutable. */
import { argumentRangeError, argumentTypeError, RmaError, readList, show } from '../errors.ts';

/**
 * Values that stand for no rank. Use the names: a program that computes an index and goes wrong must get an error, and never happen to say "nobody". −1 and −2 are
 * what `rank - 1` at rank 0, `indexOf`, `~i` and `(rank - 2) % size` give, −n what a subtraction of a size gives, and the ends of the 32-bit integers what overflows give. So these two
 * are negative primes of no meaning: far from 0 and from each other, neither a multiple of anything that programs count in nor a bit pattern. They fit into an `Int32Array`,
 * and into V8's small integers, also where pointers are compressed.
 */
export const Rank = Object.freeze({
  /**
   * Nobody (`MPI_PROC_NULL`). A communication call with this target does nothing, within an epoch; a lock, unlock or flush of it and a message to or from it
   * do nothing. −1 is not it, and is refused with `ERR_RANK`.
   */
  NULL: -1_000_000_007,
  /**
   * No rank or no number (`MPI_UNDEFINED`): `group.rank` when the caller is not in the group, what `translate` gives for those who are not, and what `waitAny` gives for a list without requests. As a
   * color, it keeps this rank out of what `split` makes. As a target it is refused with `ERR_RANK`.
   */
  UNDEFINED: -715_827_883,
});

/** Whatever was given as a rank, in messages. */
export function showRank(rank: unknown): string {
  if (rank === Rank.NULL) return 'Rank.NULL';
  return rank === Rank.UNDEFINED ? 'Rank.UNDEFINED' : show(rank);
}

export class Group {
  /** Ranks in the job's world, by rank in this group. */
  readonly worldRanks: readonly number[];
  /** The caller's rank in this group, or `Rank.UNDEFINED`. */
  readonly rank: number;
  #self: number;

  /** @internal Groups come from `communicator.group` and from each other. */
  constructor(worldRanks: readonly number[], self: number) {
    // A frozen list is shared: in a job of very many tasks, each has a group of all.
    this.worldRanks = Object.isFrozen(worldRanks) ? worldRanks : Object.freeze([...worldRanks]);
    this.#self = self;
    const rank = worldRanks[self] === self ? self : worldRanks.indexOf(self);
    this.rank = rank < 0 ? Rank.UNDEFINED : rank;
  }

  /** @internal Whether `value` is a group; runs no code of the caller's. */
  static is(value: unknown): value is Group {
    return typeof value === 'object' && value !== null && #self in value;
  }

  get size(): number {
    return this.worldRanks.length;
  }

  /** The members with these ranks, in this order (`MPI_Group_incl`). */
  include(ranks: readonly number[]): Group {
    return this.#make(this.#pick('include', ranks));
  }

  /** All members but these (`MPI_Group_excl`). */
  exclude(ranks: readonly number[]): Group {
    const out = new Set(this.#pick('exclude', ranks));
    return this.#make(this.worldRanks.filter((rank) => !out.has(rank)));
  }

  /** MPI's name for `include`. */
  incl(ranks: readonly number[]): Group {
    return this.include(ranks);
  }

  /** MPI's name for `exclude`. */
  excl(ranks: readonly number[]): Group {
    return this.exclude(ranks);
  }

  /** This group's members, then the other's that are not in this one. */
  union(other: Group): Group {
    return this.#make([...new Set([...this.worldRanks, ...asGroup('union', other).worldRanks])]);
  }

  /** The members of both, in this group's order. */
  intersection(other: Group): Group {
    const theirs = new Set(asGroup('intersection', other).worldRanks);
    return this.#make(this.worldRanks.filter((rank) => theirs.has(rank)));
  }

  /** This group's members that are not in the other. */
  difference(other: Group): Group {
    const theirs = new Set(asGroup('difference', other).worldRanks);
    return this.#make(this.worldRanks.filter((rank) => !theirs.has(rank)));
  }

  /** Ranks of this group as ranks in `other`; `Rank.UNDEFINED` where a member is not in it (`MPI_Group_translate_ranks`). */
  translate(ranks: readonly number[], other: Group): number[] {
    const theirs = asGroup('translate', other).worldRanks;
    return this.#pick('translate', ranks).map((world) => {
      const rank = theirs.indexOf(world);
      return rank < 0 ? Rank.UNDEFINED : rank;
    });
  }

  /** MPI's name for `translate`. */
  translateRanks(ranks: readonly number[], other: Group): number[] {
    return this.translate(ranks, other);
  }

  /** Whether both have the same members in the same order (`MPI_IDENT`). */
  equals(other: Group): boolean {
    const theirs = asGroup('equals', other).worldRanks;
    return theirs.length === this.size && this.worldRanks.every((rank, i) => rank === theirs[i]);
  }

  #make(worldRanks: readonly number[]): Group {
    return new Group(worldRanks, this.#self);
  }

  #pick(call: string, ranks: readonly number[]): number[] {
    const list = readList(`group.${call}`, 'the list of ranks', ranks) as number[];
    const picked = list.map((rank) => {
      if (!Number.isInteger(rank) || rank < 0 || rank >= this.size) {
        throw argumentRangeError(
          `group.${call}: ${showRank(rank)} is not a rank of a group of ${this.size}`,
          'ERR_RANK',
        );
      }
      return this.worldRanks[rank];
    });
    if (new Set(picked).size < picked.length)
      throw new RmaError('ERR_RANK', `group.${call}: [${list}] contains a rank twice`);
    return picked;
  }
}

function asGroup(call: string, value: unknown): Group {
  if (Group.is(value)) return value;
  throw argumentTypeError(`group.${call}: the other group must be a Group, not ${show(value)}`, 'ERR_GROUP');
}
