/**
 * The stripes of a part (stripes.ts) by requests. They are locks that only a device's atomics change, and whose holder
 * is known.
 *
 *   WORD of each stripe   lower half: 0, or 1 + the rank that holds it; upper half: how many ranks stand in line for
 *                         it, and from bit 16 on, how many of them have been overtaken long enough
 *   NUMBER                the number that the next rank in line gets, at any stripe of the part
 *   PLACE of each rank    0, or lower half: 1 + the stripe that it stands in line for; upper half: its number
 *
 * Acquire: compare-and-swap on WORD, from no holder and no rank in line: one round trip if the stripe is free. Requests
 * that are posted behind it share that round trip (a device carries them out after it). Otherwise the rank gets a
 * number, and then adds to PLACE and WORD. Additions succeed whatever the others do, so a rank that asks seldom, or
 * comes late each time, gets into the line all the same; and from then on no newcomer's swap succeeds. A rank that
 * stands in line asks for WORD until no rank holds the stripe, reads all PLACEs, and takes the stripe if it has the
 * lowest number of those that wait for it. It does so by a compare-and-swap that takes it out of the line, too,
 * repeated if only the length of the line has changed. A rank stands in one line of a part at a time, since the tasks
 * of one target run one after the other.
 *
 * Ranks that run go first, for a while (sync/lock/lock-overtaking.ts says why): a rank that finds the stripe free takes
 * it, whatever its number, and a newcomer does so once before it stands in line. A rank that has stood in line for
 * `overtaking` milliseconds adds CLOSER to WORD. While a CLOSER is there, newcomers stand in line, and the line goes by
 * numbers. A rank that takes the stripe or leaves the line takes its own away. Each swap compares the whole word, so a
 * swap that was decided before the addition fails after it. With `overtaking` 0 no newcomer passes, and the line always
 * goes by numbers: first come, first served.
 *
 * Overtaking is bounded: once a rank is in the line and has added CLOSER, those that come later are behind it. Before
 * it are the ranks with a lower number, once each, and the ranks that read the PLACEs before its own was there, once
 * each.
 *
 * A rank that is first and does not take a free stripe for `PATIENCE_MS` (it computes, or is stopped, while it waits in
 * vain) is passed over by one of the others, each time anew. It keeps its number, and is first when it comes back. A
 * rank that gives up takes itself out of the line, by two additions that it need not wait for.
 *
 * A rank that has failed gives nothing back. A rank that stands in line, finds the failed rank's name in WORD and knows
 * that it has failed replaces that name by its own; the failed rank's PLACE counts for nothing. The elements that the
 * dead rank was updating are undefined then: it may have written some of them. (That a rank has failed is known once
 * for all, and a device carries out no request of a process that is gone. If a rank was given up because its host
 * cannot be reached, late writes of it may come.)
 *
 * Order. Additions to PLACE and WORD of one rank take effect in the order of posting. A rank that has found WORD
 * without a holder reads the PLACEs after that: the PLACE of the last holder was taken away before its release.
 *
 * Words are changed by atomics only; the PLACEs are also read by plain reads, of 8 bytes each at a multiple of 8, in
 * any order: each holds what its rank has last made of it, or what it made of it before.
 */
import type { Processor } from '../../verbs/processor.ts';
import { STRIPES } from '../loads/stripes.ts';
import type { Answer } from './answers.ts';
import type { Lock, RemoteWord } from './remote-access.ts';
import type { Hold } from './request-tasks.ts';
import type { RequestTransfer } from './request-transfer.ts';
import type { Scratch } from './scratch.ts';

const NUMBER = STRIPES;
const PLACES = NUMBER + 1;

/** 64-bit words of a part, for `size` ranks. */
export function remoteStripeWords(size: number): number {
  return PLACES + size;
}

/** Milliseconds for which a free stripe is left to the rank that is first in line. */
const PATIENCE_MS = 10;

/** In the upper half of a WORD: a rank of the line has been overtaken long enough. A line is shorter than that. */
const CLOSER = 1 << 16;

/** An answer that is waited for. */
export class Reply {
  there = false;
  lo = 0;
  hi = 0;
  readonly take: Answer = (lo, hi) => {
    this.lo = lo;
    this.hi = hi;
    this.there = true;
  };

  *wait(): Generator<void, this> {
    while (!this.there) yield;
    return this;
  }
}

/**
 * How an `acquire` ended: `at once`, by its first request, so that those posted behind it were carried out under the
 * stripe; `later`; or `left`, without the stripe and without a place in its line.
 */
export type Acquired = 'at once' | 'later' | 'left';

const nothing = (): void => {};

/** A rank in line. */
interface Standing {
  readonly number: number;
  /** What it has added to the upper half of WORD. */
  counts: number;
}

/** What stripes need of the job. */
export interface StripeKeepers {
  /** Milliseconds of the clock that waits go by. */
  now(): number;
  /** The rank of the window that has failed, if that is known; -1 otherwise. Cheap. */
  failed(): number;
  readonly processor: Processor;
  /** Milliseconds for which a rank that stands in line may be overtaken; 0: first come, first served. */
  readonly overtaking: number;
}

export class RemoteStripes {
  readonly #requests: RequestTransfer;
  readonly #me: number;
  readonly #size: number;
  readonly #word: (rank: number, index: number) => RemoteWord;
  readonly #job: StripeKeepers;
  /** Where the PLACEs of a target are read to; one at a time, since the tasks of a target run one after the other. */
  readonly #landings: (Scratch | undefined)[] = [];

  /** @param word of a target's `remoteStripeWords` */
  constructor(
    requests: RequestTransfer,
    rank: number,
    size: number,
    word: (rank: number, index: number) => RemoteWord,
    job: StripeKeepers,
  ) {
    this.#requests = requests;
    this.#me = rank;
    this.#size = size;
    this.#word = word;
    this.#job = job;
  }

  /** Takes a free stripe for which no rank stands in line, by this rank's processor. @returns whether it could */
  takenHere(target: number, stripe: number): boolean {
    return this.#requests.remote.swappedHere(this.#word(target, stripe), 0, 0, this.#me + 1, 0);
  }

  /** The word of a stripe, and what it is while this rank has it: for updates by the owner. */
  lockOf(target: number, stripe: number): Lock {
    return { word: this.#word(target, stripe), holder: this.#me + 1 };
  }

  /**
   * Ends when this rank holds the stripe, or has left since `hold.leaving` came first.
   * @param postBehind posts requests to the target right behind the first one
   */
  *acquire(target: number, stripe: number, hold: Hold, postBehind = nothing): Generator<void, Acquired> {
    const word = this.#word(target, stripe);
    const swap = this.#swap(word, 0, 0, 0);
    postBehind();
    const first = yield* swap.wait();
    if (first.lo === 0 && first.hi === 0) return 'at once';
    if (hold.leaving) return 'left';
    if (this.#job.overtaking > 0 && first.lo === 0 && first.hi < CLOSER) {
      const again = yield* this.#swap(word, 0, first.hi, first.hi).wait();
      if (again.lo === 0 && again.hi === first.hi) return 'later';
      if (hold.leaving) return 'left';
    }
    const { lo: number } = yield* this.#add(this.#word(target, NUMBER), 1, 0).wait();
    if (hold.leaving) return 'left';
    const place = this.#word(target, PLACES + this.#me);
    this.#add(place, stripe + 1, number);
    const added = this.#add(word, 0, 1);
    const standing: Standing = { number, counts: 1 };
    let taken = false;
    try {
      const seen = yield* added.wait();
      // It is what was there before this rank was added.
      seen.hi++;
      taken = yield* this.#waitInLine(target, stripe, standing, seen, hold);
    } finally {
      this.#subtract(place, stripe + 1, number);
      if (!taken) this.#subtract(word, 0, standing.counts);
    }
    return taken ? 'later' : 'left';
  }

  /** @param seen what was in WORD last. @returns whether it has the stripe, and is counted in the line no more */
  *#waitInLine(target: number, stripe: number, standing: Standing, seen: Reply, hold: Hold): Generator<void, boolean> {
    const word = this.#word(target, stripe);
    const { overtaking } = this.#job;
    const since = this.#job.now();
    let first = -1;
    let freeSince = 0;
    for (let found = seen; !hold.leaving; ) {
      const holder = found.lo - 1;
      if (holder >= 0 && holder !== this.#job.failed()) first = -1;
      else {
        const isOpen = overtaking > 0 && found.hi < CLOSER;
        const next = isOpen ? this.#me : yield* this.#firstInLine(target, stripe, standing.number);
        const now = this.#job.now();
        if (next !== first) freeSince = now;
        first = next;
        if (next === this.#me || now - freeSince > PATIENCE_MS) {
          const { lo, hi } = found;
          found = yield* this.#swap(word, lo, hi, hi - standing.counts).wait();
          if (found.lo === lo && found.hi === hi) return true;
          if (standing.counts > 1 || overtaking === 0 || now - since < overtaking) continue;
        }
      }
      const closes = overtaking > 0 && standing.counts === 1 && this.#job.now() - since >= overtaking;
      if (closes) standing.counts += CLOSER;
      // Asked at once, so that an answer is always on its way, which wakes the rank that waits.
      found = yield* this.#add(word, 0, closes ? CLOSER : 0, !closes).wait();
      if (closes) found.hi += CLOSER;
    }
    return false;
  }

  /** Gives back what was acquired, behind all that was posted to the target before. */
  release(target: number, stripe: number): void {
    this.#subtract(this.#word(target, stripe), this.#me + 1, 0);
  }

  /** The rank with the lowest number of those that wait for the stripe, this one included. */
  *#firstInLine(target: number, stripe: number, number: number): Generator<void, number> {
    const scratch = (this.#landings[target] ??= this.#requests.remote.scratch(8 * this.#size));
    const { rkey, address } = this.#word(target, PLACES);
    // It changes nothing, as all requests that a waiting rank repeats.
    this.#job.processor.asks();
    yield* this.#requests.remote.read(target, 0, scratch.region, 0, 8 * this.#size, { rkey, address }, scratch.left);
    const places = new Uint32Array(scratch.memory.buffer, 0, 2 * this.#size);
    const failed = this.#job.failed();
    let first = this.#me;
    let lowest = number;
    for (let rank = 0; rank < this.#size; rank++) {
      if (places[2 * rank] !== stripe + 1 || rank === failed) continue;
      const other = places[2 * rank + 1];
      // Numbers go round.
      if (((other - lowest) | 0) >= 0) continue;
      first = rank;
      lowest = other;
    }
    return first;
  }

  /** From (`lo`, `hi`) to this rank as the holder, and `line` in the upper half. */
  #swap(word: RemoteWord, lo: number, hi: number, line: number): Reply {
    const reply = new Reply();
    this.#requests.remote.compareSwap(word, lo, hi, this.#me + 1, line, reply.take, true);
    return reply;
  }

  #add(word: RemoteWord, lo: number, hi: number, again = false): Reply {
    const reply = new Reply();
    this.#requests.remote.fetchAdd(word, lo, hi, reply.take, again);
    return reply;
  }

  /** Both halves, from halves that are at least as large: nothing is borrowed. */
  #subtract(word: RemoteWord, lo: number, hi: number): void {
    // The two's complement of 64 bits.
    this.#requests.remote.fetchAdd(word, -lo, lo === 0 ? -hi : ~hi);
  }
}
