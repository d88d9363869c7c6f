/**
 * A lock word at a target that only a device's atomics touch (dissertation §4.1, §5.1): 64 bits. The lower half names
 * its holder:
 *
 *   0 … size − 1   that rank, exclusively
 *   size           no holder
 *   size + 1       direct: the target's agent, for those that share it; hybrid: the lock is in CPU mode
 *   size + 2       hybrid: the target's agent, for those that share it in network mode
 *
 * A rank takes the word by a compare-and-swap from `size`. From then on only the holder changes the lower half: it
 * gives the word back by an addition or, as the manager of a hybrid lock, passes it on by a compare-and-swap. So there
 * is one holder at a time.
 *
 * The upper half is a mark. It says that a rank waits and has found the word taken again and again, since a holder that
 * takes the word back at once leaves it free for less than a microsecond. A rank that waits like that puts the mark
 * beside the holder, by a compare-and-swap; the addition leaves the mark there. The holder sees the mark in the answers
 * to its additions. If it has taken the word back at once for `PATIENCE_MS` with the mark there, it steps aside for
 * twice the longest wait, in which every rank that waits tries. A rank that takes the word after waiting takes the mark
 * away; others that wait put it back. So where no rank waits for long there is no mark, and it costs nothing. If the
 * rank that set a mark has given up, the next one that takes the word, or steps aside, takes the mark away.
 */
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { BackOff, MOST_MS } from './lock-back-off.ts';
import type { LockCounts } from './lock-scheme.ts';

/** In the upper half: a rank waits. */
const MARK = 1;
/** Milliseconds for which a rank takes the word back at once though others wait. */
const PATIENCE_MS = 8;

export class LockWord {
  readonly free: number;
  readonly requests: RequestTransfer;
  readonly backOff: BackOff;
  readonly #word: RemoteWord;
  readonly #counts: LockCounts;
  readonly #now: () => number;
  /** A swap that may give the word to a rank was not answered. */
  #deciding = false;
  /** No call waits for that answer any more. What it says is undone when it comes. */
  #settling = false;
  #resting = false;
  /** What was seen last: the holder, and the upper half. The next swap expects that half. */
  #holder = -1;
  #mark = 0;
  /**
   * Since when this rank has taken the word again at once after giving it back with a mark, if it does so; and when it
   * gave the word back last.
   */
  #overtaking: number | undefined;
  #given = 0;
  readonly #onGiven = (_: number, mark: number): void => {
    this.#mark = mark;
    if (mark === 0) this.#overtaking = undefined;
    else if (this.#overtaking === undefined) {
      this.#given = this.#now();
      this.#overtaking = this.#given;
    }
  };

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
    this.#now = now;
    this.backOff = new BackOff(now, seed);
  }

  /** Whether a swap is under way: a rank that gives up must first know how it ends. */
  get deciding(): boolean {
    return this.#deciding;
  }

  /** The holder at the last try; -1 if there was no try. */
  get holder(): number {
    return this.#holder;
  }

  /** One try, whatever the mark. @returns what was there: it has succeeded if that is `from` */
  *swap(from: number, to: number): Generator<void, number> {
    let mark: number;
    let found: number;
    const answer = (lo: number, hi: number): void => {
      found = lo;
      this.#mark = hi;
    };
    while (this.#settling) yield;
    this.#resting = false;
    do {
      mark = this.#mark;
      found = -1;
      this.#counts.atomics++;
      // If the request cannot be posted, there is nothing to decide.
      this.#deciding = false;
      this.requests.remote.compareSwap(
        this.#word,
        from,
        mark,
        to,
        this.#overtaking === undefined ? 0 : mark,
        answer,
        true,
      );
      this.#deciding = true;
      while (found < 0) yield;
    } while (found === from && this.#mark !== mark);
    this.#deciding = false;
    this.#holder = found;
    if (found !== from) {
      this.#counts.misses++;
      this.#overtaking = undefined;
    } else if (this.#overtaking === undefined) this.#mark = 0;
    return found;
  }

  /**
   * Lets others that wait have a turn, if this rank has taken the word back again and again. Call it before a try.
   */
  *giveWay(): Generator<void, void> {
    if (this.#overtaking === undefined) return;
    const now = this.#now();
    // A rank that comes back late has left the others their turn.
    if (now - this.#given > MOST_MS) this.#overtaking = undefined;
    else if (now - this.#overtaking >= PATIENCE_MS) {
      this.backOff.stepAside();
      yield* this.rest();
      this.#overtaking = undefined;
    }
  }

  /** Waits until the next try is due. */
  *pause(): Generator<void, void> {
    if (this.#mark === 0 && this.backOff.isLongest) {
      this.#counts.atomics++;
      this.requests.remote.compareSwap(this.#word, this.#holder, 0, this.#holder, MARK, () => {});
      this.#mark = MARK;
    }
    this.backOff.begin();
    yield* this.rest();
  }

  /** Waits until a wait that has begun is over. */
  *rest(): Generator<void, void> {
    this.#resting = true;
    while (this.backOff.left > 0) yield;
    this.#resting = false;
  }

  /** Milliseconds after which there is something to do for which no bell rings. */
  get due(): number {
    return this.#resting ? this.backOff.left : Number.POSITIVE_INFINITY;
  }

  /** Tries until this rank has it. */
  *take(from: number, to: number): Generator<void, void> {
    yield* this.giveWay();
    this.backOff.reset();
    while ((yield* this.swap(from, to)) !== from) yield* this.pause();
  }

  /** Gives it back. Nothing is waited for: what this rank asks for next on the same connection comes after it. */
  give(from: number): void {
    const difference = this.free - from;
    this.#counts.atomics++;
    if (this.#overtaking !== undefined) this.#given = this.#now();
    this.requests.remote.fetchAdd(this.#word, difference, difference < 0 ? -1 : 0, this.#onGiven);
  }

  /**
   * Brings steps that no call waits for any more to an answer, which says whether they have taken the word. It does so
   * at once, if the answer comes: if it were left for later, others could wait for this rank while it waits for them.
   * The next swap waits for it.
   */
  settle(steps: Generator<void, unknown>, onTaken: () => void, otherwise?: () => void): void {
    this.#settling = true;
    this.requests.settle(this.#answered(steps, onTaken, otherwise));
  }

  *#answered(
    steps: Generator<void, unknown>,
    onTaken: () => void,
    otherwise: (() => void) | undefined,
  ): Generator<void, void> {
    let taken = false;
    try {
      while (this.#deciding && !taken) {
        if (steps.next().done) taken = true;
        else yield;
      }
    } finally {
      this.#settling = false;
      if (taken) onTaken();
      else otherwise?.();
    }
  }
}
