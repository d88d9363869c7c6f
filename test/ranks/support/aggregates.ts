/**
 * Random programs, run with separate operations and with aggregate handles: MPI's rules for the two are the same, so
 * the memory and the results must be.
 */
import {
  type Aggregate,
  Assert,
  type Communicator,
  Datatype,
  Lock,
  Op,
  type TypedArray,
  Window,
  type WindowInfo,
} from 'onesided';
import { Random } from './random.ts';

/** Each rank has so many slots of its own in each part, and all share one more. */
const SLOTS = 20;
const WIDTH = 8;
const ROUNDS = 8;

const TYPES = [
  { array: BigInt64Array, type: Datatype.INT64, of: (n: number): bigint => BigInt(n) },
  { array: Float64Array, type: Datatype.FLOAT64, of: (n: number): number => n },
  { array: Int32Array, type: Datatype.INT32, of: (n: number): number => n },
] as const;

/** What completes the operations of a round. */
const EPOCHS = ['wait', 'flush', 'flushAll', 'unlock', 'unlockAll', 'fence', 'complete'] as const;

export interface AggregatesOptions {
  readonly seed: number;
  readonly info: WindowInfo;
  /** Whether most operations go through handles; the others do not. */
  readonly aggregated: boolean;
}

type Issue = Pick<Aggregate, 'put' | 'get' | 'accumulate'>;

class Program {
  readonly #world: Communicator;
  readonly #win: Window;
  readonly #random: Random;
  readonly #common: Random;
  readonly #options: AggregatesOptions;
  readonly #kind: (typeof TYPES)[number];
  readonly #batches: Aggregate[];
  /** What gets have found, and copies of it that were made when it had to be there. */
  #sinks: TypedArray[] = [];
  readonly results: string[] = [];

  constructor(world: Communicator, win: Window, kind: (typeof TYPES)[number], options: AggregatesOptions) {
    this.#world = world;
    this.#win = win;
    this.#kind = kind;
    this.#options = options;
    this.#random = new Random(options.seed, 1 + world.rank);
    this.#common = new Random(options.seed, 0);
    const limits = Array.from({ length: world.size }, () => this.#random.pick([1, 2, 7, 64, 1000]));
    this.#batches = limits.map((limit, target) => win.aggregate(target, { limit }));
  }

  async round(): Promise<void> {
    const epoch = this.#common.pick(EPOCHS);
    const win = this.#win;
    const all = win.group;
    const targets = Array.from({ length: this.#world.size }, (_, target) => target);
    if (epoch === 'fence') await win.fence(Assert.NO_PRECEDE);
    else if (epoch === 'complete') {
      win.post(all);
      await win.start(all);
    } else if (epoch === 'unlock') for (const target of targets) await win.lock(target, Lock.SHARED);
    else await win.lockAll();
    this.#issue();
    if (epoch === 'wait') {
      for (const batch of this.#batches) await batch.wait();
      // Separate operations are completed by a flush, those of handles are complete here.
      if (!this.#options.aggregated) await win.flushAll();
    } else if (epoch === 'flush') for (const target of targets) await win.flush(target);
    else if (epoch === 'flushAll') await win.flushAll();
    else if (epoch === 'fence') await win.fence(Assert.NO_SUCCEED);
    else if (epoch === 'complete') {
      await win.complete();
      await win.wait();
    } else if (epoch === 'unlock') for (const target of targets) await win.unlock(target);
    else await win.unlockAll();
    this.results.push(...this.#sinks.map((sink) => sink.join()));
    this.#sinks = [];
    if (epoch === 'wait' || epoch.startsWith('flush')) await win.unlockAll();
    await this.#world.barrier();
  }

  /** Each slot of a target meets one kind of operation in an epoch, and only accumulates meet each other. */
  #issue(): void {
    const random = this.#random;
    const { size, rank } = this.#world;
    for (let target = 0; target < size; target++) {
      const first = rank * SLOTS;
      for (let slot = 0; slot < SLOTS; slot++) {
        const disp = (first + slot) * WIDTH;
        const how = random.below(5);
        if (how === 0) continue;
        if (how === 1) this.#to(target).get(this.#sink(), disp);
        else if (how === 2) this.#to(target).put(this.#values(WIDTH), disp);
        else if (how === 3) this.#strided(target, disp);
        else for (let n = random.between(1, 4); n > 0; n--) this.#update(target, disp);
      }
      const shared = size * SLOTS * WIDTH;
      for (let n = random.below(4); n > 0; n--) this.#to(target).accumulate(this.#values(WIDTH), shared, Op.SUM);
    }
  }

  #strided(target: number, disp: number): void {
    const type = Datatype.vector(WIDTH / 2, 1, 2, this.#kind.type);
    if (this.#random.chance(0.5)) this.#to(target).put(this.#values(WIDTH / 2), disp, { target: { type } });
    else this.#to(target).get(this.#sink(), disp, { origin: { type }, target: { type } });
  }

  /** In their order: a replacement is not a sum. */
  #update(target: number, disp: number): void {
    const op = this.#random.pick([Op.SUM, Op.REPLACE, Op.MAX, Op.SUM]);
    this.#to(target).accumulate(this.#values(this.#random.between(1, WIDTH)), disp, op);
  }

  /** A handle, or the window: the same draws in both programs. */
  #to(target: number): Issue {
    const win = this.#win;
    if (this.#random.chance(0.9) && this.#options.aggregated) return this.#batches[target];
    return {
      put: (origin, disp, layout) => win.put(origin, target, disp, layout),
      get: (origin, disp, layout) => win.get(origin, target, disp, layout),
      accumulate: (origin, disp, op, layout) => win.accumulate(origin, target, disp, op, layout),
    };
  }

  #sink(): TypedArray {
    const sink = new this.#kind.array(WIDTH);
    this.#sinks.push(sink);
    return sink;
  }

  #values(length: number): TypedArray {
    const array = new this.#kind.array(length);
    for (let i = 0; i < length; i++) array[i] = this.#kind.of(this.#random.below(1000));
    return array;
  }
}

/** @returns what this rank has in its part in the end, and what its gets have found */
export async function aggregates(world: Communicator, options: AggregatesOptions): Promise<readonly string[]> {
  const kind = new Random(options.seed, 99).pick(TYPES);
  const length = (world.size * SLOTS + 1) * WIDTH;
  const win: Window = await Window.allocate<TypedArray>(world, kind.array, length, { info: options.info });
  const program = new Program(world, win, kind, options);
  for (let round = 0; round < ROUNDS; round++) await program.round();
  const found = [win.local.join(), ...program.results];
  await win.free();
  return found;
}
