/**
 * A lock word at a target that only a device's atomics touch (dissertation §4.1, §5.1): 64 bits of which the lower half says who has it.
 *
 *   0 … size − 1   that rank, exclusively
 *   size           nobody
 *   size + 1       direct: the target's agent, for those that share it; hybrid: the lock is in CPU mode
 *   size + 2       hybrid: the target's agent, for those that share it in network mode
 *
 * Every change is a compare-and-swap from the one state to the other, and only who holds it changes it from anything but `size`; so there is one holder at a time.
 */
import type { RemoteWord, RequestTransfer } from '../../transfer/requests.ts';
import { BackOff } from './back-off.ts';
import type { LockCounts } from './scheme.ts';

export class LockWord {
  readonly free: number;
  readonly requests: RequestTransfer;
  readonly backOff: BackOff;
  readonly #word: RemoteWord;
  readonly #counts: LockCounts;
  /** A swap that may give the word to somebody was not answered. */
  #deciding = false;
  #resting = false;

  constructor(
    requests: RequestTransfer,
    word: RemoteWord,
    size: number,
    now: () => number,
    seed: number,
    counts: LockCounts,
  ) {
    this.requests = requests;
    this.free = size;
    this.#word = word;
    this.#counts = counts;
    this.backOff = new BackOff(now, seed);
  }

  /** Whether a swap is under way: who gives up must know how it ends first. */
  get deciding(): boolean {
    return this.#deciding;
  }

  /** One try. @returns what was there: it has succeeded if that is `from` */
  *swap(from: number, to: number): Generator<void, number> {
    let found = -1;
    this.#counts.swaps++;
    this.#resting = false;
    this.#deciding = true;
    const answer = (lo: number): void => {
      found = lo;
    };
    this.requests.compareSwap(this.#word, from, 0, to, 0, answer, true);
    while (found < 0) yield;
    this.#deciding = false;
    if (found !== from) this.#counts.misses++;
    return found;
  }

  /** Waits until the next try is due. */
  *pause(): Generator<void, void> {
    this.backOff.begin();
    yield* this.rest();
  }

  /** Waits until a wait that has begun is over. */
  *rest(): Generator<void, void> {
    this.#resting = true;
    while (this.backOff.left > 0) yield;
    this.#resting = false;
  }

  /** Milliseconds after which there is something to do that nobody rings for. */
  get due(): number {
    return this.#resting ? this.backOff.left : Number.POSITIVE_INFINITY;
  }

  /** Tries until it is had. */
  *take(from: number, to: number): Generator<void, void> {
    this.backOff.reset();
    while ((yield* this.swap(from, to)) !== from) yield* this.pause();
  }

  /** Gives it back; nobody else can have changed it. Nothing is waited for: what this rank asks for next on the same connection comes after it. */
  give(from: number): void {
    this.#counts.swaps++;
    this.requests.compareSwap(this.#word, from, 0, this.free, 0, () => {});
  }

  /** Brings steps that nobody waits for any more to an answer. At once: if it were left for later, others could wait for this rank while it waits for them. */
  settle(steps: Generator<void, unknown>): boolean {
    let done = false;
    const answered = (function* (word: LockWord): Generator<void, void> {
      while (word.#deciding && !done) {
        if (steps.next().done) done = true;
        else yield;
      }
    })(this);
    try {
      this.requests.finish(answered);
    } catch {
      // A rank or a connection is gone: every later wait says so.
    }
    return done;
  }
}
