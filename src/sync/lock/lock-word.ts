/**
 * A lock word at a target that only a device's atomics touch (dissertation §4.1, §5.1): 64 bits. The lower half says
 * who has it:
 *
 *   0 … size − 1   that rank, exclusively
 *   size           nobody
 *   size + 1       direct: the target's agent, for those that share it; hybrid: the lock is in CPU mode
 *   size + 2       hybrid: the target's agent, for those that share it in network mode
 *
 * It is taken by a compare-and-swap from `size`, and only who holds it changes its lower half then: gives it back by an
 * addition, or, as the manager of a hybrid lock, passes it on by a compare-and-swap. So there is one holder at a time.
 *
 * The upper half is a mark that somebody waits, and has found the word taken again and again, since who takes it back
 * at once leaves it free for less than a microsecond. Who waits like that puts the mark beside the holder, by a
 * compare-and-swap; the addition leaves it there. The holder sees it in the answers to its additions. If it has taken
 * the word back at once for `PATIENCE_MS` with the mark there, it steps aside for twice the longest wait, in which
 * everybody who waits tries. Who takes the word after waiting takes the mark away; others who wait put it back. So
 * where nobody waits for long there is no mark, and it costs nothing. A mark whose rank has given up is taken away by
 * the next one who takes the word, or steps aside.
 */
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { BackOff, MOST_MS } from './lock-back-off.ts';
import type { LockCounts } from './lock-scheme.ts';

/** In the upper half: somebody waits. */
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
  /** A swap that may give the word to somebody was not answered. */
  #deciding = false;
  /** Nobody waits for that answer, and what it says is undone when it comes. */
  #settling = false;
  #resting = false;
  /** What was seen last: who had it, and the upper half. The next swap expects that half. */
  #holder = -1;
  #mark = 0;
  /**
   * Since when this rank has given the word back with a mark and taken it again at once, if it has; and when it gave it
   * back last.
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

  /** Whether a swap is under way: who gives up must know how it ends first. */
  get deciding(): boolean {
    return this.#deciding;
  }

  /** Who had it at the last try; -1 if there was none. */
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
      // Nothing is to be decided if it cannot be asked for.
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
   * Lets others who wait have a turn, if this rank has taken the word back again and again. To be called before it is
   * tried for.
   */
  *giveWay(): Generator<void, void> {
    if (this.#overtaking === undefined) return;
    const now = this.#now();
    // Who comes back late has left them their turn.
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

  /** Milliseconds after which there is something to do that nobody rings for. */
  get due(): number {
    return this.#resting ? this.backOff.left : Number.POSITIVE_INFINITY;
  }

  /** Tries until it is had. */
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
   * Brings steps that nobody waits for any more to an answer, which says whether they have taken the word. At once, if
   * the answer comes: if it were left for later, others could wait for this rank while it waits for them. The next swap
   * waits for it.
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
