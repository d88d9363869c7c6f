/** Groups of ranks (MPI 4.1, section 7.3): ordered sets, local, immutable. */
import { argumentRangeError, argumentTypeError, RmaError, readList, show } from '../errors.ts';

/**
 * Special values for ranks that are not the number of a rank. Use the names: a program that computes an index and goes
 * wrong must get an error, and never happen to say "nobody". −1 and −2 are what `rank - 1` at rank 0, `indexOf`, `~i`
 * and `(rank - 2) % size` give, −n what a subtraction of a size gives, and the ends of the 32-bit integers what
 * overflows give. So these two are negative primes of no meaning: far from 0 and from each other, neither a multiple of
 * anything that programs count in nor a bit pattern. They fit into an `Int32Array`, and into V8's small integers, also
 * where pointers are compressed.
 */
export const Rank = Object.freeze({
  /**
   * Stands for no rank (`MPI_PROC_NULL`): communication with this target does nothing. Puts, gets and accumulates still
   * need an epoch; lock, unlock, flush, send and receive simply return. Its value is not −1, which is an `ERR_RANK`.
   */
  NULL: -1_000_000_007,
  /**
   * Stands for an undefined rank or number (`MPI_UNDEFINED`): the value of `group.rank` if the caller is not a member
   * of the group, of `translate` for ranks that are not members of the other group, and of `waitAny` for a list without
   * requests. As the color of `split`, it keeps this rank out of all new communicators. As a target, it is an
   * `ERR_RANK`.
   */
  UNDEFINED: -715_827_883,
});

/** Whatever was given as a rank, in messages. */
export function showRank(rank: unknown): string {
  if (rank === Rank.NULL) return 'Rank.NULL';
  return rank === Rank.UNDEFINED ? 'Rank.UNDEFINED' : show(rank);
}

/** An ordered set of ranks (`MPI_Group`). Groups are immutable, and all their operations are local. */
export class Group {
  /** The members as ranks of the world, indexed by their rank in this group. */
  readonly worldRanks: readonly number[];
  /** The rank of the caller in this group, or `Rank.UNDEFINED` if it is not a member (`MPI_Group_rank`). */
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

  /** The number of members (`MPI_Group_size`). */
  get size(): number {
    return this.worldRanks.length;
  }

  /** Returns the group of the members with these ranks, in this order (`MPI_Group_incl`). Errors: `ERR_RANK`. */
  include(ranks: readonly number[]): Group {
    return this.#make(this.#pick('include', ranks));
  }

  /** Returns the group of all members except those with these ranks (`MPI_Group_excl`). Errors: `ERR_RANK`. */
  exclude(ranks: readonly number[]): Group {
    const out = new Set(this.#pick('exclude', ranks));
    return this.#make(this.worldRanks.filter((rank) => !out.has(rank)));
  }

  /** Returns the group of the members with these ranks, in this order (MPI's name for `include`). */
  incl(ranks: readonly number[]): Group {
    return this.include(ranks);
  }

  /** Returns the group of all members except those with these ranks (MPI's name for `exclude`). */
  excl(ranks: readonly number[]): Group {
    return this.exclude(ranks);
  }

  /**
   * Returns the group of all members of both groups: first those of this group, then the others (`MPI_Group_union`).
   */
  union(other: Group): Group {
    return this.#make([...new Set([...this.worldRanks, ...asGroup('union', other).worldRanks])]);
  }

  /**
   * Returns the group of the ranks that are members of both groups, in the order of this one
   * (`MPI_Group_intersection`).
   */
  intersection(other: Group): Group {
    const theirs = new Set(asGroup('intersection', other).worldRanks);
    return this.#make(this.worldRanks.filter((rank) => theirs.has(rank)));
  }

  /** Returns the group of the members of this group that are not in the other one (`MPI_Group_difference`). */
  difference(other: Group): Group {
    const theirs = new Set(asGroup('difference', other).worldRanks);
    return this.#make(this.worldRanks.filter((rank) => !theirs.has(rank)));
  }

  /**
   * Translates ranks of this group into ranks of `other`, and gives `Rank.UNDEFINED` for those that are not members of
   * it (`MPI_Group_translate_ranks`).
   */
  translate(ranks: readonly number[], other: Group): number[] {
    const theirs = asGroup('translate', other).worldRanks;
    return this.#pick('translate', ranks).map((world) => {
      const rank = theirs.indexOf(world);
      return rank < 0 ? Rank.UNDEFINED : rank;
    });
  }

  /** Translates ranks of this group into ranks of `other` (MPI's name for `translate`). */
  translateRanks(ranks: readonly number[], other: Group): number[] {
    return this.translate(ranks, other);
  }

  /** Returns whether both groups have the same members in the same order (`MPI_IDENT` of `MPI_Group_compare`). */
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
