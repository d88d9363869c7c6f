/**
 * Updates of elements that their owner carries out (`QueuePair.wrUpdate`): one request, and one round trip, where the
 * long way (`RequestUpdates`) takes two or three. They are for consecutive elements, up to 4 KiB: of a type that a
 * device has no atomic for, within one stripe; and 64-bit integers, which the owner updates by its processor's atomics.
 * Those agree with the device's, so there is no stripe, and none of what follows.
 *
 * The owner takes the stripe if no rank has it or stands in line for it, by the same swap of the same word as an
 * initiator's first request of the long way (remote-stripes.ts), and gives it back behind the update. So the two ways,
 * and that of neighbours (near-memory.ts), may meet at an element. If the stripe is taken, the owner does nothing, and
 * the update goes the long way, which waits in the line.
 *
 * Order. MPI promises that accumulates of one rank to one element are carried out in the order of the calls. Updates
 * are posted ahead of their turn (request-tasks.ts), many at once, so one may be refused and the next one not. That is
 * what rounds are for: a refusal ends the round, and the owner refuses all that comes with the old one. Once this rank
 * has seen the refusal, it posts none until those that it had posted have had their turn, each the long way, and then
 * begins the next round.
 *
 * The lock need not be a stripe's: an operation that is the only one under a window's lock travels with that
 * (sync/lock/deferred-lock.ts).
 */
import { DATA_SIZES } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import { STRIPE_BYTES, stripeAt } from '../loads/stripes.ts';
import { ByRank } from './by-rank.ts';
import type { RemoteRegion } from './regions.ts';
import type { Lock } from './remote-access.ts';
import type { RemoteStripes } from './remote-stripes.ts';
import type { Ahead } from './request-tasks.ts';
import type { RequestTransfer } from './request-transfer.ts';
import type { Scratch } from './scratch.ts';

/** Before the elements: whether it was carried out. */
const STATUS = 8;
const DONE = 0;
/** In place of an operation: compare and swap. */
const SWAP_ELEMENT = 255;
const FETCHES = 2 ** 16;
const ROUND = 2 ** 24;
const ROUNDS = 256;

/** What an update does, and with what. */
export interface OwnerUpdate {
  /** The number of the operation; without one, compare and swap. */
  readonly op?: number;
  readonly fetches: boolean;
  /** Writes what it is made with to byte `at` of the part: elements; or the new one, and behind it the expected one. */
  fill(part: RemotePart, at: number): void;
  /** Takes what was there, if that is fetched, from byte `at` of the part. */
  take(part: RemotePart, at: number): void;
}

const NO_LOCK: Lock = { word: { rkey: 0, address: 0 }, holder: 1 };

/** Of a target. */
interface Target {
  round: number;
}

export class OwnerUpdates {
  readonly #requests: RequestTransfer;
  readonly #stripes: RemoteStripes;
  readonly #targets = new ByRank((): Target => ({ round: 0 }));

  constructor(requests: RequestTransfer, stripes: RemoteStripes) {
    this.#requests = requests;
    this.#stripes = stripes;
  }

  /**
   * An update of the elements at byte `at` of a region; `undefined` if these go the long way only.
   * @param lock that of their stripe, if they are of a type that goes by stripes; or another one, which the owner takes
   * for the update if it is free
   */
  ahead(
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    lock: 'stripe' | 'none' | Lock,
    update: OwnerUpdate,
  ): Ahead | undefined {
    const { type, base, elementSize, high } = to;
    if (type !== undefined || high === 0 || high > STRIPE_BYTES || DATA_SIZES[base] !== elementSize) return undefined;
    if ((region.address + at) % elementSize !== 0) return undefined;
    if (lock === 'stripe' && stripeAt(at) !== stripeAt(at + high - 1)) return undefined;
    const target = this.#targets.of(rank);
    const { remote } = this.#requests;
    const { op = SWAP_ELEMENT, fetches } = update;
    const bytes = STATUS + (op === SWAP_ELEMENT ? 2 : 1) * high;
    let scratch: Scratch | undefined;
    let round = 0;
    return {
      post: () => {
        const memory = remote.scratch(bytes);
        try {
          update.fill(memory.part, STATUS);
          ({ round } = target);
          const word = { rank, rkey: region.rkey, address: region.address + at };
          const does = op + to.base * 2 ** 8 + (fetches ? FETCHES : 0) + round * ROUND;
          remote.update(word, does, this.#lockAt(lock, rank, at), memory, bytes);
        } catch (error) {
          memory.free();
          throw error;
        }
        scratch = memory;
      },
      isOver: () => scratch!.left.count === 0,
      end: () => {
        const { part } = scratch!;
        try {
          if (part.place.getUint32(0, true) === DONE) {
            if (fetches) update.take(part, STATUS);
            return true;
          }
        } finally {
          scratch!.free();
        }
        if (round === target.round) target.round = (round + 1) % ROUNDS;
        return false;
      },
    };
  }

  #lockAt(lock: 'stripe' | 'none' | Lock, rank: number, at: number): Lock {
    if (lock === 'stripe') return this.#stripes.lockOf(rank, stripeAt(at));
    return lock === 'none' ? NO_LOCK : lock;
  }
}
