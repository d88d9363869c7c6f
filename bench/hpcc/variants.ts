/**
 * The ways to carry out the updates on a window of 64-bit words. All run in a lock-all epoch, and none looks more than
 * 1,024 updates ahead: what has been started is completed before buffers are used again.
 */
import { Datatype, Op, type Window } from 'onesided';
import { Bins, LOOK_AHEAD, LOW } from './bins.ts';
import type { Distribution } from './distribution.ts';
import { type Halves, POLYNOMIAL } from './random-stream.ts';
import type { Update } from './verify.ts';

/** Carries out the updates of one rank. */
export interface Updater {
  /** Takes the next `count` numbers of the stream. */
  take(stream: Halves, count: number): void;
  /** Completes everything that was taken. */
  finish(): void;
}

export interface Variant {
  readonly update: Update;
  /** Whether updates are atomic, so that none may get lost. */
  readonly atomic: boolean;
  readonly summary: string;
  updater(window: Window, distribution: Distribution): Updater;
}

export const VARIANTS: Readonly<Record<string, Variant>> = {
  aggregated: {
    update: 'xor',
    atomic: true,
    summary: 'up to 1,024 updates are sorted by rank; each rank gets its own in one accumulate of an indexed datatype',
    updater: aggregated,
  },
  accumulate: {
    update: 'xor',
    atomic: true,
    summary: 'one accumulate an update',
    updater: accumulate,
  },
  'get-modify-put': {
    update: 'xor',
    atomic: false,
    summary: 'one get and one put an update; ranks can overwrite each other',
    updater: getModifyPut,
  },
  'fetch-and-add': {
    update: 'sum',
    atomic: true,
    summary: 'one fetch-and-add an update, with addition in place of exclusive or, as devices can do it',
    updater: fetchAndAdd,
  },
};

function aggregated(window: Window, distribution: Distribution): Updater {
  return new Bins(distribution, (owner, displacements, values) => {
    const type = Datatype.indexedBlock(1, displacements, Datatype.UINT64);
    window.accumulate(values, owner, 0, Op.BXOR, { target: { type, count: 1 } });
    window.flushSync(owner);
  });
}

/** Buffers of one word each for updates under way: those of the last flush are free again. */
class Pipeline {
  readonly halves = new Int32Array(2 * LOOK_AHEAD);
  readonly words = Array.from({ length: LOOK_AHEAD }, (_, i) => new BigUint64Array(this.halves.buffer, 8 * i, 1));
  #used = 0;
  readonly #window: Window;

  constructor(window: Window) {
    this.#window = window;
  }

  /** Puts a value into a free buffer. @returns its index */
  enter(high: number, low: number): number {
    if (this.#used === LOOK_AHEAD) this.flush();
    const at = this.#used++;
    this.halves[2 * at + LOW] = low;
    this.halves[2 * at + 1 - LOW] = high;
    return at;
  }

  flush(): void {
    this.#window.flushAllSync();
    this.#used = 0;
  }
}

function accumulate(window: Window, distribution: Distribution): Updater {
  const pipeline = new Pipeline(window);
  return eachUpdate(
    distribution,
    (owner, displacement, high, low) => {
      window.accumulate(pipeline.words[pipeline.enter(high, low)], owner, displacement, Op.BXOR);
    },
    () => pipeline.flush(),
  );
}

function fetchAndAdd(window: Window, distribution: Distribution): Updater {
  const pipeline = new Pipeline(window);
  const results = new BigUint64Array(LOOK_AHEAD);
  const resultOf = Array.from(results, (_, i) => results.subarray(i, i + 1));
  return eachUpdate(
    distribution,
    (owner, displacement, high, low) => {
      const at = pipeline.enter(high, low);
      window.fetchAndOp(pipeline.words[at], resultOf[at], owner, displacement, Op.SUM);
    },
    () => pipeline.flush(),
  );
}

function getModifyPut(window: Window, distribution: Distribution): Updater {
  const word = new Int32Array(2);
  return eachUpdate(
    distribution,
    (owner, displacement, high, low) => {
      window.get(word, owner, displacement);
      window.flushSync(owner);
      word[LOW] ^= low;
      word[1 - LOW] ^= high;
      window.put(word, owner, displacement);
      window.flushSync(owner);
    },
    () => window.flushAllSync(),
  );
}

type One = (owner: number, displacement: number, high: number, low: number) => void;

function eachUpdate(distribution: Distribution, update: One, finish: () => void): Updater {
  const mask = distribution.words - 1;
  const { shift } = distribution;
  const local = (1 << shift) - 1;
  return {
    take(stream, count) {
      let { high, low } = stream;
      for (let i = 0; i < count; i++) {
        const carry = (high >> 31) & POLYNOMIAL;
        high = (high << 1) | (low >>> 31);
        low = (low << 1) ^ carry;
        const word = low & mask;
        if (shift >= 0) {
          update(word >>> shift, word & local, high, low);
        } else {
          const owner = distribution.owner(word);
          update(owner, word - distribution.first(owner), high, low);
        }
      }
      stream.high = high;
      stream.low = low;
    },
    finish,
  };
}
