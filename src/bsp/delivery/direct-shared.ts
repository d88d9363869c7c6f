/**
 * `hpput` and `hpget` where processes load and store each other's memory: a copy at the call, between the program's
 * array and the variable, if that lies in memory from the library (`Communicator.allocMem`), or is this process's own,
 * and if its owner has ended the superstep before.
 *
 * Which process sees what: a process stores to another's variable before it enters the superstep's barrier, and the
 * owner looks after it has left the barrier (collective/word-barrier.ts orders the two). What a process loads, the
 * owner has stored before the barrier of the superstep before, or since: BSPlib leaves that open.
 */
import type { Communicator } from '../../collective/communicator.ts';
import { FEW, type Part, packBytes, unpackBytes } from '../element-words.ts';
import type { Slot } from '../slot.ts';
import type { Mapped, Variables } from '../variables.ts';
import type { Direct } from './direct-access.ts';

/** A variable: this process's own, or another's as it is mapped here. */
interface Reached {
  readonly u8: Uint8Array;
  readonly f64?: Float64Array | undefined;
}

export class DirectShared implements Direct {
  sent = 0;
  got = 0;
  readonly #comm: Communicator;
  readonly #variables: Variables;
  readonly #hasEnded: (pid: number) => boolean;
  /** What was reached last in the superstep under way. */
  #pid = -1;
  #slot: Slot | undefined;
  #reached: Mapped | undefined;

  /** @param hasEnded whether a process has ended the superstep before the one under way */
  constructor(comm: Communicator, variables: Variables, hasEnded: (pid: number) => boolean) {
    this.#comm = comm;
    this.#variables = variables;
    this.#hasEnded = hasEnded;
  }

  put(pid: number, slot: Slot, at: number, { array, tag, start, count, width }: Part): boolean {
    const there = this.#reach(pid, slot);
    const bytes = count * width;
    if (there === undefined || at + bytes > there.u8.length) return false;
    const { u8, f64 } = there;
    if (f64 !== undefined && count <= FEW && tag === 'Float64Array' && at % 8 === 0)
      copyDoubles(f64, at / 8, array as Float64Array, start, count);
    else packBytes(u8, at, array, start * width, bytes);
    if (pid !== this.#comm.rank) this.sent += bytes;
    return true;
  }

  get(pid: number, slot: Slot, at: number, { array, tag, start, count, width }: Part): boolean {
    const there = this.#reach(pid, slot);
    const bytes = count * width;
    if (there === undefined || at + bytes > there.u8.length) return false;
    if (pid !== this.#comm.rank) this.got += bytes;
    const { u8, f64 } = there;
    if (f64 === undefined || count > FEW || tag !== 'Float64Array' || at % 8 !== 0)
      return unpackBytes(u8, at, array, start * width, bytes);
    copyDoubles(array as Float64Array, start, f64, at / 8, count);
    return true;
  }

  doublesOf(pid: number, slot: Slot): Float64Array | undefined {
    return pid === this.#comm.rank ? undefined : this.#reach(pid, slot)?.f64;
  }

  /** A superstep is over: any process that could be reached may have something to do in it yet. */
  next(): void {
    this.#pid = -1;
    this.#slot = this.#reached = undefined;
  }

  /** A variable at a process; `undefined` if it cannot be reached now. Mostly, the one that was reached before. */
  #reach(pid: number, slot: Slot): Reached | undefined {
    if (pid === this.#comm.rank) return slot;
    if (pid === this.#pid && slot === this.#slot) return this.#reached;
    if (!this.#hasEnded(pid)) return undefined;
    const reached = this.#variables.mappedOf(slot, pid);
    this.#pid = pid;
    this.#slot = slot;
    this.#reached = reached;
    return reached;
  }
}

function copyDoubles(to: Float64Array, at: number, from: Float64Array, start: number, count: number): void {
  for (let k = 0; k < count; k++) to[at + k] = from[start + k];
}
