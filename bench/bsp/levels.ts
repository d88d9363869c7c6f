/**
 * Machines of two levels as programs see them (Martin and Tiskin 1999): q units of p processes, each process being
 * member 0 … p − 1 of its unit. The programs for the paper's five algorithms are written once, for two levels. On a
 * flat machine each process is a unit of its own (p = 1), and what units do within themselves is nothing.
 *
 * A flat program knows nothing of the nodes it runs on: its processes lie on them at random, as the paper assumes
 * (section 2), or in their order, where neighbours mostly share a node.
 */
import type { Communicator, TypedArray } from 'onesided';
import { type Bsp, type Bsp2, type BspOptions, begin } from 'onesided/bsp';
import type { Machine } from '../patterns/machine.ts';

export interface LevelsOptions extends Omit<BspOptions, 'units'> {
  readonly levels: 'flat' | 'two';
  /** Of a flat program. */
  readonly placement: 'random' | 'in-order';
  /** Processes of a unit; 0: those of a host, or of a fabric's node. */
  readonly unit: number;
  /** Million operations a second that the arithmetic is charged at, where time is virtual. */
  readonly mflops: number;
}

export class Levels {
  readonly bsp: Bsp;
  /** Units, and processes of each. */
  readonly q: number;
  readonly p: number;
  /** This process's place. */
  readonly unit: number;
  readonly member: number;
  readonly machine: Machine;
  readonly #two: Bsp2 | undefined;
  readonly #mflops: number;

  private constructor(bsp: Bsp, two: Bsp2 | undefined, machine: Machine, mflops: number) {
    this.bsp = bsp;
    this.#two = two;
    this.machine = machine;
    this.#mflops = mflops;
    this.q = two?.units ?? bsp.nprocs;
    this.p = bsp.nprocs / this.q;
    this.unit = two?.uid ?? bsp.pid;
    this.member = two?.pidsOf().indexOf(bsp.pid) ?? 0;
    for (let uid = 0; uid < this.q; uid++) {
      if (two === undefined || two.pidsOf(uid).length === this.p) continue;
      throw new RangeError(
        `${bsp.nprocs} processes are no units of one size: unit ${uid} has ${two.pidsOf(uid).length}`,
      );
    }
  }

  /** Collective. Errors: `RangeError` where units differ in size. */
  static async begin(world: Communicator, options: LevelsOptions, machine: Machine): Promise<Levels> {
    const { levels, placement, unit, mflops, ...given } = options;
    if (levels === 'two') {
      const two = await begin(world, { ...given, units: unit === 0 ? 'hosts' : unit });
      return new Levels(two, two, machine, mflops);
    }
    const comm = placement === 'random' ? (await world.split(0, shuffled(world.size)[world.rank]))! : world;
    return new Levels(await begin(comm, given), undefined, machine, mflops);
  }

  /** A process by its place. */
  pid(unit: number, member = 0): number {
    return this.#two === undefined ? unit : this.#two.pidsOf(unit)[member];
  }

  /** To a member of this unit. Nothing where a process is a unit: it has what it would put. */
  uput(member: number, source: TypedArray, variable: TypedArray, offset = 0, count?: number, start = 0): void {
    this.#two?.uput(this.pid(this.unit, member), source, variable, offset, count, start);
  }

  async sync(): Promise<void> {
    if (this.machine.form === 'sync') this.bsp.syncSync();
    else await this.bsp.sync();
  }

  async usync(): Promise<void> {
    if (this.#two === undefined) return;
    if (this.machine.form === 'sync') this.#two.usyncSync();
    else await this.#two.usync();
  }

  /** The time of operations that were just carried out. */
  async charge(operations: number): Promise<void> {
    await this.machine.charge(operations / this.#mflops);
  }
}

/** Numbers from 0 on in an order that looks random, the same at all processes (Fisher and Yates). */
function shuffled(n: number): number[] {
  const order = Array.from({ length: n }, (_, i) => i);
  let state = 12345;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    const j = (state >>> 8) % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** A whole root of a number. Errors: `RangeError`, which says of what. */
export function rootOf(what: string, n: number, degree: number): number {
  const root = Math.round(n ** (1 / degree));
  if (root ** degree === n) return root;
  throw new RangeError(`${what} must be ${degree === 2 ? 'a square' : 'a cube'}, not ${n}`);
}
