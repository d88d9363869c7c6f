/**
 * A BSP2 computation: its processes lie in units, which communicate and synchronize among themselves more cheaply
 * (Martin and Tiskin 1999, section 2: `bsp_uid`, `bsp_units`, `bsp_usync`, `bsp_uput`, `bsp_uget`).
 */

import type { TypedArray } from '../datatype/base-types.ts';
import { argumentRangeError, RmaError, show } from '../errors.ts';
import type { WaitOptions } from '../wait/operation.ts';
import { Bsp } from './bsp.ts';
import type { Core } from './computation.ts';
import { endSuperstep, endSuperstepSync } from './ending.ts';
import type { Unit } from './unit.ts';

/**
 * One process of a BSP2 computation, begun with the option `units`. Besides what all processes do together, those of
 * one unit have supersteps of their own, as many as each unit likes between two calls of `sync`: what is put and got by
 * `uput` and `uget` takes effect when `usync` ends them. `sync` ends the superstep of the unit first, then the one of
 * all processes; what was put within the unit is there before any `get` reads and any `put` writes.
 *
 * Variables are registered by all processes, with `pushReg` and `sync`; `usync` does not touch registrations.
 */
export class Bsp2 extends Bsp {
  /** The number of this process's unit, 0 … `units` − 1 (`bsp_uid`), in the order of their first processes. */
  readonly uid: number;
  /** The number of units, q (`bsp_units`). */
  readonly units: number;
  readonly #core: Core;
  readonly #unit: Unit;
  readonly #pids: readonly (readonly number[])[];
  /** The unit's communicator has been given back. */
  #isFreed = false;

  /** @internal Made by `begin`. */
  constructor(core: Core, unit: Unit) {
    super(core);
    this.#core = core;
    this.#unit = unit;
    this.uid = unit.uids[this.pid];
    const pids: number[][] = [];
    unit.uids.forEach((uid, pid) => {
      if (pids[uid] === undefined) pids[uid] = [];
      pids[uid].push(pid);
    });
    this.#pids = pids.map((each) => Object.freeze(each));
    this.units = pids.length;
  }

  /** The processes of a unit, in order; of this one's if absent. Errors: `RangeError`. */
  pidsOf(uid: number = this.uid): readonly number[] {
    const pids = this.#pids[uid];
    if (pids !== undefined) return pids;
    throw argumentRangeError(`bsp.pidsOf: ${show(uid)} is not the number of a unit (0 … ${this.units - 1})`, 'ERR_ARG');
  }

  /** The number of supersteps of this unit that have ended, those that `sync` has ended among them. */
  get unitSuperstep(): number {
    return this.#unit.step;
  }

  override get bufferBytes(): number {
    return super.bufferBytes + this.#unit.bytes;
  }

  /**
   * Ends the superstep of the unit, and waits until all its processes have done so and everything that they have put
   * to and got from each other is in place (`bsp_usync`). Others are not waited for. If a timeout or an abort signal
   * ends the wait, the next call of `usync` continues the same one.
   *
   * Errors: `ERR_COLLECTIVE` at all processes of the unit if some of them call `sync` or `end` instead; otherwise those
   * of `sync`. After any but `ERR_RMA_TIMEOUT`, the computation cannot go on.
   * Cost: that of `sync` for a computation of the unit's processes.
   */
  usync(options?: WaitOptions): Promise<void> {
    return endSuperstep('bsp.usync', this.#unit, options);
  }

  /** Ends the superstep of the unit and blocks this thread until everything is in place; otherwise as `usync`. */
  usyncSync(options?: WaitOptions): void {
    endSuperstepSync(this.comm.job, 'bsp.usync', this.#unit, options);
  }

  /**
   * Copies elements into the variable of a process of this unit (`bsp_uput`). They are read now, and written when the
   * superstep of the unit ends.
   * @param pid a process of this unit, by the same number as for `put`
   * Other parameters, errors and cost: those of `put`; `ERR_RANK` also for a process of another unit.
   */
  uput(
    pid: number,
    source: TypedArray,
    variable: TypedArray,
    offset = 0,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    const slot = this.#core.named('bsp.uput', 'source', pid, source, start, count, variable, offset);
    const { part } = this.#core;
    const rank = this.#rankOf('bsp.uput', pid);
    if (part.count > 0) this.#unit.outgoing.put(rank, slot, offset * slot.width, part);
  }

  /**
   * Copies elements from the variable of a process of this unit (`bsp_uget`). They are read when the superstep of the
   * unit ends, before any `uput` of it is written, and are in `destination` after `usync`.
   * @param pid a process of this unit, by the same number as for `get`
   * Other parameters, errors and cost: those of `get`; `ERR_RANK` also for a process of another unit.
   */
  uget(
    pid: number,
    variable: TypedArray,
    offset: number,
    destination: TypedArray,
    count: number | undefined = undefined,
    start = 0,
  ): void {
    const slot = this.#core.named('bsp.uget', 'destination', pid, destination, start, count, variable, offset);
    const { part } = this.#core;
    const rank = this.#rankOf('bsp.uget', pid);
    if (part.count > 0) this.#unit.outgoing.get(rank, slot.id, offset * slot.width, part);
  }

  override async end(options?: WaitOptions): Promise<void> {
    await super.end(options);
    if (this.#isFreed) return;
    this.#isFreed = true;
    await this.#unit.comm.finalize(options);
  }

  override endSync(options?: WaitOptions): void {
    super.endSync(options);
    if (this.#isFreed) return;
    this.#isFreed = true;
    this.#unit.comm.finalizeSync(options);
  }

  /** @param pid a process */
  #rankOf(call: string, pid: number): number {
    const rank = this.#unit.ranks[pid];
    if (rank >= 0) return rank;
    throw new RmaError(
      'ERR_RANK',
      `${call}: process ${pid} is in unit ${this.#unit.uids[pid]}, this one in unit ${this.uid}; ` +
        `use ${call.replace('.u', '.')} for processes of other units`,
    );
  }
}
