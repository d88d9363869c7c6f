/**
 * `hpput` and `hpget` where processes load and store each other's memory: a copy at the call, between the program's
 * array and the variable, if that lies in memory from the library (`Communicator.allocMem`), or is this process's own,
 * and if its owner has ended the superstep before.
 *
 * Who sees what: a process stores to another's variable before it enters the superstep's barrier, and the owner looks
 * after it has left it (comm/barrier.ts orders the two). What a process loads, the owner has stored before the barrier
 * of the superstep before, or since: BSPlib leaves that open.
 */
import type { Communicator } from '../../comm/communicator.ts';
import { type Part, packBytes, unpackBytes } from '../elements.ts';
import type { Slot } from '../registrations.ts';
import type { Variables } from '../variables.ts';
import type { Direct } from './direct.ts';

export class DirectShared implements Direct {
  sent = 0;
  got = 0;
  readonly #comm: Communicator;
  readonly #variables: Variables;
  readonly #hasEnded: (pid: number) => boolean;

  /** @param hasEnded whether a process has ended the superstep before the one under way */
  constructor(comm: Communicator, variables: Variables, hasEnded: (pid: number) => boolean) {
    this.#comm = comm;
    this.#variables = variables;
    this.#hasEnded = hasEnded;
  }

  put(pid: number, slot: Slot, at: number, { array, start, count, width }: Part): boolean {
    const view = this.#viewOf(pid, slot);
    const bytes = count * width;
    if (view === undefined || at + bytes > view.length) return false;
    packBytes(view, at, array, start * width, bytes);
    if (pid !== this.#comm.rank) this.sent += bytes;
    return true;
  }

  get(pid: number, slot: Slot, at: number, { array, start, count, width }: Part): boolean {
    const view = this.#viewOf(pid, slot);
    const bytes = count * width;
    if (view === undefined || at + bytes > view.length) return false;
    if (pid !== this.#comm.rank) this.got += bytes;
    return unpackBytes(view, at, array, start * width, bytes);
  }

  /** The bytes of a variable at a process; `undefined` if they cannot be reached now. */
  #viewOf(pid: number, slot: Slot): Uint8Array | undefined {
    if (pid === this.#comm.rank) return slot.u8;
    return this.#hasEnded(pid) ? this.#variables.viewOf(slot, pid) : undefined;
  }
}
