/**
 * What the chapter requires, as data: a sentence, its section, and a function that all ranks run together to see that
 * it holds.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Assert,
  type Communicator,
  type Group,
  Op,
  type TypedArray,
  type TypedArrayConstructor,
  Window,
  type WindowInfo,
  type WindowOptions,
} from 'onesided';
import type { BarrierOptions } from 'onesided/fabrics';
import type { Random } from '../support/random.ts';

export interface Requirement {
  /** Of MPI 4.1, chapter 12; or a class of BSPlib's primitives. */
  readonly section: string;
  /** A sentence, unique in its chapter. */
  readonly says: string;
  /** Programs of other suites that test the same: `mpich/putfence1`, `mpi4py/testFence`, `armci/test_acc_overlap`. */
  readonly like: readonly string[];
  /** The fewest ranks on which it says anything. */
  readonly from: number;
  /**
   * Ranks load and store each other's parts, which devices do not offer; or datagrams, which not all of them have:
   * there the library says so.
   */
  readonly needs?: 'shared memory' | 'datagrams';
  /** Absent: there is no test, and `why` says why. */
  readonly run?: (t: Trial) => unknown;
  readonly why?: string;
  /** The barriers that it is about, in a run of its own. */
  readonly barriers?: BarrierOptions;
  /** It is about datagrams that are lost: on modelled fabrics, up to 30 % are. */
  readonly isLossy?: boolean;
}

type Run = (t: Trial) => unknown;

/** What a list of requirements is written with. */
interface Collector {
  readonly requirements: readonly Requirement[];
  /** @param like names of programs, with a space between them */
  requirement(section: string, says: string, like: string, run: Run, from?: number): void;
  /** One that needs shared memory. */
  shared(section: string, says: string, like: string, run: Run, from?: number): void;
  /** One about datagrams that are lost. */
  lossy(section: string, says: string, like: string, run: Run, from?: number): void;
  untested(section: string, says: string, why: string): void;
}

export function collector(): Collector {
  const requirements: Requirement[] = [];
  const add = (one: Requirement): void => {
    if (requirements.some(({ says }) => says === one.says)) throw new Error(`two requirements say: ${one.says}`);
    requirements.push(one);
  };
  const names = (like: string): string[] => like.split(' ').filter(Boolean);
  return {
    requirements,
    requirement: (section, says, like, run, from = 1) => add({ section, says, like: names(like), from, run }),
    shared: (section, says, like, run, from = 1) =>
      add({ section, says, like: names(like), from, needs: 'shared memory', run }),
    lossy: (section, says, like, run, from = 1) =>
      add({ section, says, like: names(like), from, needs: 'datagrams', isLossy: true, run }),
    untested: (section, says, why) => add({ section, says, like: [], from: 1, why }),
  };
}

/** One requirement on trial: the ranks, with a communicator that no other requirement uses. */
export class Trial {
  readonly comm: Communicator;
  /** Different at each rank. */
  readonly random: Random;
  /** The same at all ranks. */
  readonly shared: Random;
  /** Whether a rank may block its thread: not where it is a task among others. */
  readonly blocks: boolean;
  /** Hints of windows that ask for nothing else. */
  readonly info: WindowInfo;
  /** How many times as long as on InfiniBand things may take. */
  readonly slowness: number;

  constructor(comm: Communicator, random: Random, shared: Random, blocks = true, info: WindowInfo = {}, slowness = 1) {
    this.slowness = slowness;
    this.blocks = blocks;
    this.info = info;
    this.comm = comm;
    this.random = random;
    this.shared = shared;
  }

  get rank(): number {
    return this.comm.rank;
  }

  get size(): number {
    return this.comm.size;
  }

  get next(): number {
    return (this.rank + 1) % this.size;
  }

  get previous(): number {
    return (this.rank + this.size - 1) % this.size;
  }

  /** 0, 1, …, size − 1. */
  get ranks(): number[] {
    return Array.from({ length: this.size }, (_, rank) => rank);
  }

  get others(): number[] {
    return this.ranks.filter((rank) => rank !== this.rank);
  }

  barrier(): Promise<void> {
    return this.comm.barrier();
  }

  /** Lets time pass. */
  async pause(milliseconds: number): Promise<void> {
    if (this.blocks) await sleep(milliseconds);
    else await this.comm.compute(1000 * milliseconds);
  }

  /** Allocates a window, lets all ranks use it, and frees it. */
  async window<T extends TypedArray>(
    type: TypedArrayConstructor<T>,
    length: number,
    use: (win: Window<T>) => unknown,
    options?: WindowOptions,
  ): Promise<void> {
    const info = { ...this.info, ...options?.info };
    await this.using(Window.allocate(this.comm, type, length, { ...options, info }), use);
  }

  async using<T extends TypedArray>(made: Promise<Window<T>>, use: (win: Window<T>) => unknown): Promise<void> {
    const win = (await made) as Window<T>;
    await use(win);
    await win.free();
  }
}

/** The call throws an error with this code. */
export function refused(code: string, call: () => unknown): void {
  assert.throws(call, (error) => hasCode(error, code));
}

/** The promise is rejected, or the call throws, with this code. */
export async function refusedLater(code: string, call: () => Promise<unknown>): Promise<void> {
  await assert.rejects(
    async () => await call(),
    (error) => hasCode(error, code),
  );
}

/** Another error goes on as it is: it says more than that it is not the one expected. */
function hasCode(error: unknown, code: string): boolean {
  if (!(error instanceof Error) || (error as { code?: unknown }).code !== code) throw error;
  return true;
}

/** An element read atomically; a passive epoch is open. */
export async function peek(
  win: Window<Float64Array> | Window<Int32Array>,
  target: number,
  disp: number,
): Promise<number> {
  return await peekAt(win as Window<Float64Array>, target, disp);
}

async function peekAt(win: Window<Float64Array>, target: number, disp: number): Promise<number> {
  const Type = win.local.constructor as Float64ArrayConstructor;
  const result = new Type(1);
  win.fetchAndOp(new Type(1), result, target, disp, Op.NO_OP);
  await win.flush(target);
  return result[0];
}

/** 1 + 2 + … + n. */
export function sumTo(n: number): number {
  return (n * (n + 1)) / 2;
}

/** first, first + 1, … */
export const iota = (n: number, first = 0): number[] => Array.from({ length: n }, (_, i) => first + i);

/** A group of these ranks. */
export const members = (t: Trial, ranks: readonly number[]): Group => t.comm.group.include(ranks);

/** Each rank puts its number into its neighbour's first element. */
export async function ring(t: Trial, win: Window<Float64Array>): Promise<void> {
  await win.fence();
  win.put(Float64Array.of(100 + t.rank), t.next, 0);
  await win.fence(Assert.NO_SUCCEED);
  assert.equal(win.local[0], 100 + t.previous);
}
