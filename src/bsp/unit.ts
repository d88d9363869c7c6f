/**
 * The superstep of a unit: what its processes ask of each other by `uput` and `uget`, and how it ends (Martin and
 * Tiskin 1999, section 2: each unit of a BSP2 machine carries out a BSP computation of its own between two
 * synchronizations of all).
 *
 * It is delivered as supersteps of all are, on a communicator of the unit. The variables are those of the whole
 * computation (`VariableRegistrations`): all processes number them alike, so a number means the same within a unit.
 * They change in `sync` only, never in `usync`.
 *
 * `sync` first ends the superstep of the unit, then the one of all (l + L in the paper). So what was put within a unit
 * is there before anything is read or written for other units. Which process touches what: the owner of a variable
 * places what its unit has put there in its own `usync`, or in the first part of its own `sync`. A process has only one
 * of them under way (`Core.check`), so the two never place at once.
 *
 * In a unit, some processes could call `usync` and others `sync`. Those in `sync` say so by a number, which all of the
 * unit compare (`compare`). So none of them goes on to wait for all while another one waits for the unit. A `usync`
 * says nothing, and costs no more than a `sync` of so many processes.
 */
import type { Communicator } from '../collective/communicator.ts';
import { RmaError } from '../errors.ts';
import { NO_NUMBERS } from './alike.ts';
import type { Delivery } from './delivery/delivery.ts';
import { MessageQueue } from './received-messages.ts';
import type { VariableRegistrations } from './registrations.ts';
import { Step } from './superstep.ts';

/** What a process says in the superstep of its unit that ends with one of all. */
const OF_ALL = Float64Array.of(1);

/** The computation that the unit is a part of (`Core`). */
interface Enclosing {
  readonly comm: Communicator;
  readonly registrations: VariableRegistrations;
  check(call: string): void;
  settleCalls(): void;
  refuseBroken(): void;
  fail(error: unknown): unknown;
}

/** Its processes are those of `comm`, in the order of their numbers. */
export class Unit extends Step {
  /** The unit of each process. */
  readonly uids: Int32Array;
  /** The rank in `comm` of each process of this unit; −1 for the others. */
  readonly ranks: Int32Array;
  /** A superstep of the unit is ending. */
  isEnding = false;
  readonly #core: Enclosing;
  #ofAll = false;

  /**
   * @param uids the unit of each process
   * @param short whether headers are compressed
   */
  constructor(core: Enclosing, comm: Communicator, delivery: Delivery, uids: Int32Array, short: boolean) {
    super(comm, delivery, core.registrations, new MessageQueue(), undefined, short);
    this.uids = uids;
    this.#core = core;
    let rank = 0;
    this.ranks = uids.map((uid) => (uid === uids[core.comm.rank] ? rank++ : -1));
  }

  /**
   * The superstep of the unit ends; or goes on to end, if a wait for that ended early.
   * @param ofAll it is the first part of a `sync`
   */
  beginSync(call: string, ofAll: boolean): void {
    if (this.isEnding && !this.isAwaited && !ofAll && !this.#ofAll) return;
    if (!ofAll) {
      this.#core.check(call);
      this.#core.settleCalls();
    }
    this.#ofAll = ofAll;
    this.isEnding = true;
    try {
      this.delivery.begin(this, ofAll ? OF_ALL : NO_NUMBERS);
    } catch (error) {
      this.isEnding = false;
      throw this.#core.fail(error);
    }
  }

  advance(): boolean {
    try {
      this.#core.refuseBroken();
      if (!this.delivery.advance()) return false;
      this.checkResults();
    } catch (error) {
      this.isEnding = this.isAwaited = false;
      throw this.#core.fail(error);
    }
    this.next();
    this.isEnding = this.isAwaited = false;
    return true;
  }

  describe(): string {
    return `usync() of superstep ${this.step} of a unit (waiting for ${this.delivery.waitsFor()} of the unit)`;
  }

  compare(all: readonly Float64Array[] | undefined): void {
    if (all === undefined) return;
    const other = all.findIndex((numbers) => numbers.length > 0 !== this.#ofAll);
    if (other < 0) return;
    const [mine, its] = this.#ofAll ? ['sync()', 'usync()'] : ['usync()', 'sync()'];
    throw new RmaError(
      'ERR_COLLECTIVE',
      `bsp.${this.#ofAll ? 'sync' : 'usync'}: process ${this.ranks.indexOf(other)} called ${its}, ` +
        `this one ${mine}; all processes of a unit must call the same`,
    );
  }
}
