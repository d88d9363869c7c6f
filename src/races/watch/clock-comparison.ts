/** Compares the clocks of a job's hosts, by messages between the first rank of each and rank 0. */
import type { Communicator } from '../../collective/communicator.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import { type ClockSample, writeClock } from '../logs/host-clock.ts';
import { now } from '../logs/race-log-writer.ts';
import { replace } from './window-watch.ts';

/** Round trips; the shortest counts. */
const ROUNDS = 100;
/** No message of the program's has it, as far as we know. */
const TAG = 2 ** 31 - 58;
const GO = 0;
/** Of a rank whose wait has ended early: the other one need not wait for it. */
const GIVEN_UP = -1;

/**
 * The steps of a comparison. Each is a rank whose first word is awaited, and gets that word: other ranks may take long
 * to come. When both are there, neither does anything else until the comparison is over.
 */
type Steps = Generator<number, void, number>;

/** Messages of which the search is not told: they order nothing of the program's. */
class Post {
  readonly #world: Communicator;
  readonly #word = new Float64Array(1);
  /** The methods of the object's own tell of what they do. */
  readonly #methods: Communicator;

  constructor(world: Communicator) {
    this.#world = world;
    this.#methods = Object.getPrototypeOf(world) as Communicator;
  }

  send(word: number, to: number): void {
    this.#methods.send.call(this.#world, Float64Array.of(word), to, { tag: TAG });
  }

  receive(from: number, wait?: WaitOptions): number {
    this.#methods.receiveSync.call(this.#world, this.#word, from, { ...wait, tag: TAG });
    return this.#word[0];
  }

  async hear(from: number, wait: WaitOptions | undefined): Promise<number> {
    await this.#methods.receive.call(this.#world, this.#word, from, { ...wait, tag: TAG });
    return this.#word[0];
  }
}

export class ClockComparison {
  readonly #rank: number;
  /** By rank: the first one of its host. */
  readonly #firstOf: readonly number[];
  readonly #folder: string;
  readonly #samples: ClockSample[] = [];
  #isOver = false;

  constructor(rank: number, firstOf: readonly number[], folder: string) {
    this.#rank = rank;
    this.#firstOf = firstOf;
    this.#folder = folder;
  }

  /** The world is there: compares now, and before the world is finalized. */
  async begin(world: Communicator): Promise<void> {
    const post = new Post(world);
    await this.#compare(post, undefined);
    const { finalize, finalizeSync } = world;
    replace(world, 'finalize', async (...args) => {
      const [wait] = args as Parameters<typeof finalize>;
      if (this.#isFirstTime()) await this.#compare(post, wait);
      await finalize.call(world, wait);
    });
    replace(world, 'finalizeSync', (...args) => {
      const [wait] = args as Parameters<typeof finalizeSync>;
      if (this.#isFirstTime()) this.#compareSync(post, wait);
      finalizeSync.call(world, wait);
    });
  }

  #isFirstTime(): boolean {
    const isOver = this.#isOver;
    this.#isOver = true;
    return !isOver;
  }

  /** If it cannot be done, since a rank is gone, say, whoever waits for that rank next is told so. */
  async #compare(post: Post, wait: WaitOptions | undefined): Promise<void> {
    const steps = this.#steps(post);
    try {
      for (let step = steps.next(); step.done !== true; ) {
        const heard = await post.hear(step.value, wait).catch(() => GIVEN_UP);
        step = steps.next(heard);
      }
    } catch {
      // As above.
    }
  }

  #compareSync(post: Post, wait: WaitOptions | undefined): void {
    const steps = this.#steps(post);
    const hear = (from: number): number => {
      try {
        return post.receive(from, wait);
      } catch {
        return GIVEN_UP;
      }
    };
    try {
      for (let step = steps.next(); step.done !== true; ) step = steps.next(hear(step.value));
    } catch {
      // As above.
    }
  }

  *#steps(post: Post): Steps {
    const firsts = [...new Set(this.#firstOf)];
    if (this.#rank === 0) for (const rank of firsts.slice(1)) yield* this.#sayTheTime(post, rank);
    else if (firsts.includes(this.#rank)) yield* this.#compareWithRank0(post);
  }

  *#sayTheTime(post: Post, rank: number): Steps {
    const there = yield rank;
    post.send(there, rank);
    if (there === GIVEN_UP) return;
    for (let i = 0; i < ROUNDS && post.receive(rank) !== GIVEN_UP; i++) post.send(now(), rank);
  }

  *#compareWithRank0(post: Post): Steps {
    post.send(GO, 0);
    if ((yield 0) === GIVEN_UP) {
      post.send(GIVEN_UP, 0);
      return;
    }
    let best: ClockSample | undefined;
    for (let i = 0; i < ROUNDS; i++) {
      const asked = now();
      post.send(GO, 0);
      const theirs = post.receive(0);
      const within = (now() - asked) / 2;
      const at = asked + within;
      if (best === undefined || within < best.within) best = { at, ahead: at - theirs, within };
    }
    this.#samples.push(best!);
    writeClock(this.#folder, this.#rank, this.#samples);
  }
}
