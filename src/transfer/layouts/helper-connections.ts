/**
 * A rank's helper, and its connections to the helpers of the others (src/verbs/helper.ts). All are made with the
 * window: a rank that asks must not have to wait until the other's program is in the library. Its own ends are
 * connections of `SecondConnections`, whose completions come to the queue of the window's requests.
 *
 * Memory for each other rank: four queue pairs, eight requests at the helper, four here.
 */
import type { Context } from '../../verbs/device.ts';
import { HELPER_GROUPS, type Helper, helperRequestBytes } from '../../verbs/helper.ts';
import type { MemoryRegion, ProtectionDomain } from '../../verbs/memory.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import type { Scratch } from '../requests/scratch.ts';
import type { SecondConnection } from '../requests/second-connections.ts';

/** Numbers of a rank's queue pairs that another one needs: of its helper's two, and its program's two. */
export const HELPER_NUMBERS = 4;

/** What this rank's program has to do with another's helper. */
export interface HelperEnd {
  readonly control: SecondConnection;
  readonly data: SecondConnection;
}

export class HelperConnections {
  /** Pieces of a message at most. */
  readonly entries: number;
  readonly requests: RequestTransfer;
  readonly #helper: Helper;
  readonly #ends: HelperEnd[] = [];
  /** Numbers for each rank, in their order. */
  readonly #numbers: Float64Array;
  readonly #scratches: Scratch[] = [];
  readonly #me: number;

  /** Errors: `ERR_VERBS` (no room for it); nothing is left then but connections that close with the window. */
  constructor(
    context: Context,
    pd: ProtectionDomain,
    region: MemoryRegion | undefined,
    requests: RequestTransfer,
    size: number,
    me: number,
  ) {
    const { second } = requests;
    this.requests = requests;
    this.#me = me;
    this.#numbers = new Float64Array(HELPER_NUMBERS * size);
    this.#helper = context.makeHelper!(pd, region, size - 1);
    this.entries = Math.min(this.#helper.entries, second.entries);
    try {
      for (let rank = 0; rank < size; rank++) {
        if (rank === me) continue;
        const lane = this.#helper.addLane();
        const end = { control: second.make(rank, 1), data: second.make(rank) };
        this.#ends[rank] = end;
        this.#scratches[rank] = requests.remote.scratch(HELPER_GROUPS * this.requestBytes);
        const numbers = [lane.control, lane.data, end.control.queuePair.number, end.data.queuePair.number];
        this.#numbers.set(numbers, HELPER_NUMBERS * rank);
      }
    } catch (error) {
      this.#helper.close();
      throw error;
    }
  }

  /** Bytes that a request may have. */
  get requestBytes(): number {
    return helperRequestBytes(this.entries);
  }

  numbersFor(rank: number): Float64Array {
    return this.#numbers.subarray(HELPER_NUMBERS * rank, HELPER_NUMBERS * (rank + 1));
  }

  endTo(rank: number): HelperEnd {
    return this.#ends[rank];
  }

  /** Where requests to a rank are written. */
  memoryFor(rank: number): Scratch {
    return this.#scratches[rank];
  }

  /** @param theirs what each rank's `numbersFor` gives for this one; afterwards all must wait for each other */
  start(members: readonly number[], theirs: (rank: number) => ArrayLike<number>): void {
    const { second } = this.requests;
    let lane = 0;
    for (const [rank, member] of members.entries()) {
      if (rank === this.#me) continue;
      const [helperControl, helperData, control, data] = Array.from(theirs(rank));
      this.#helper.connect(lane++, { member, qpNumber: control }, { member, qpNumber: data });
      second.connect(this.#ends[rank].control, helperControl);
      second.connect(this.#ends[rank].data, helperData);
    }
    this.#helper.start();
  }

  close(): void {
    this.#helper.close();
  }
}
