/**
 * NAS CG: the smallest eigenvalue of a sparse symmetric matrix by inverse iteration, each step of which is 25
 * iterations of conjugate gradients (NPB 1, §2.3), on a grid of ranks as NPB's MPI version has it, in one of three
 * styles of communication (../link.ts). Verified by NAS' own check of the eigenvalue's estimate, zeta.
 *
 * Each iteration waits for the sums of the one before, so there is little to overlap (the dissertation finds the same,
 * §9.3.3): the non-blocking style posts the part of a product that another rank waits for, and computes the rest.
 */
import { type Communicator, Op } from 'onesided';
import { callsOf } from '../../calls.ts';
import type { Machine } from '../../patterns/machine.ts';
import { median } from '../../statistics.ts';
import { CG_CLASSES, type ClassName, cgIsRight } from '../classes.ts';
import { Links, type StyleName } from '../links.ts';
import type { NasOptions } from '../options.ts';
import { CgGroup, CgPlace } from './group.ts';
import { makeMatrix, type Product, type Range, type Sparse, typescriptProduct } from './matrix.ts';
import { wasmProduct } from './product-wasm.ts';

export interface CgResult {
  readonly class: ClassName;
  readonly style: StyleName;
  readonly n: number;
  readonly iterations: number;
  readonly grid: readonly [rows: number, columns: number];
  /** Of all iterations, of the rank for which they were longest; and of one. */
  readonly microseconds: number;
  readonly each: number;
  /** Of each sample, the first of these; those above are medians. */
  readonly milliseconds: readonly number[];
  /** The estimate of the eigenvalue; NaN without arithmetic. */
  readonly zeta: number;
  /** Of the class, for comparison. */
  readonly expected: number;
  /** 1 if NAS' check fails. */
  readonly errors: number;
}

/** Of conjugate gradients, in a step of inverse iteration. */
const INNER = 25;

/** @param length doubles of all vectors */
function productOf(matrix: Sparse, length: number, { kernel }: NasOptions): Product {
  return kernel === 'wasm' ? wasmProduct(matrix, length) : typescriptProduct(matrix);
}

class Gradients {
  readonly x: Float64Array;
  readonly z: Float64Array;
  readonly #p: Float64Array;
  readonly #q: Float64Array;
  readonly #r: Float64Array;
  /** Of the rows of this rank's block. */
  readonly #sums: Float64Array;
  readonly #group: CgGroup;
  /** Undefined without arithmetic. */
  readonly #matrix: Product | undefined;
  /** Of a row of this rank's block: NPB counts nonzeros · (nonzeros + 1) of the whole row, the columns share them. */
  readonly #perRow: number;
  readonly #charge: (operations: number) => void | Promise<void>;
  readonly #one = new Float64Array(1);
  /** Of a vector, also where there is none. */
  readonly #width: number;

  constructor(
    place: CgPlace,
    group: CgGroup,
    options: NasOptions,
    charge: (operations: number) => void | Promise<void>,
  ) {
    const of = CG_CLASSES[options.class];
    const width = place.columns.end - place.columns.begin;
    const rows = place.rows.end - place.rows.begin;
    if (options.arithmetic)
      this.#matrix = productOf(makeMatrix(of, place.rows, place.columns), 5 * width + rows, options);
    const doubles = (length: number): Float64Array => this.#matrix?.doubles(length) ?? new Float64Array(0);
    [this.x, this.z, this.#p, this.#q, this.#r] = [0, 1, 2, 3, 4].map(() => doubles(width));
    this.#sums = doubles(rows);
    this.#group = group;
    this.#perRow = (2 * of.nonzeros * (of.nonzeros + 1)) / place.grid.columns;
    this.#charge = charge;
    this.#width = width;
  }

  /** Takes the time of so many operations for each element of a vector. */
  #work(each: number): void | Promise<void> {
    return this.#charge(each * this.#width);
  }

  /** to ← A · from. */
  async #product(from: Float64Array, to: Float64Array): Promise<void> {
    const compute = (rows: Range): void | Promise<void> => {
      this.#matrix?.multiply(from, this.#sums, rows);
      return this.#charge(this.#perRow * (rows.end - rows.begin));
    };
    await this.#group.product(compute, this.#sums, to, this.#width);
  }

  async #sum(mine: number): Promise<number> {
    this.#one[0] = mine;
    await this.#group.sum(this.#one);
    return this.#one[0];
  }

  /** z ≈ A⁻¹ x. @returns how far off, in the norm */
  async solve(): Promise<number> {
    const { x, z } = this;
    const [p, q, r] = [this.#p, this.#q, this.#r];
    z.fill(0);
    r.set(x);
    p.set(x);
    await this.#work(2);
    let rho = await this.#sum(dot(r, r));
    for (let i = 0; i < INNER; i++) {
      await this.#product(p, q);
      await this.#work(2);
      const alpha = rho / (await this.#sum(dot(p, q)));
      addTo(z, alpha, p);
      addTo(r, -alpha, q);
      await this.#work(6);
      const before = rho;
      rho = await this.#sum(dot(r, r));
      const beta = rho / before;
      for (let j = 0; j < p.length; j++) p[j] = r[j] + beta * p[j];
      await this.#work(2);
    }
    await this.#product(z, q);
    for (let j = 0; j < q.length; j++) q[j] = x[j] - q[j];
    await this.#work(3);
    return Math.sqrt(await this.#sum(dot(q, q)));
  }

  /** A step of inverse iteration: x becomes the direction of A⁻¹ x. @returns x · A⁻¹ x before */
  async step(): Promise<number> {
    await this.solve();
    const { x, z } = this;
    const sums = Float64Array.of(dot(x, z), dot(z, z));
    await this.#work(5);
    await this.#group.sum(sums);
    const factor = 1 / Math.sqrt(sums[1]);
    for (let j = 0; j < x.length; j++) x[j] = factor * z[j];
    return sums[0];
  }
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** to ← to + factor · from. */
function addTo(to: Float64Array, factor: number, from: Float64Array): void {
  for (let i = 0; i < to.length; i++) to[i] += factor * from[i];
}

/** Collective. @throws RangeError if the number of ranks is no power of two */
export async function cg(world: Communicator, options: NasOptions, machine: Machine): Promise<CgResult> {
  const { n, shift, zeta: expected, ...usual } = CG_CLASSES[options.class];
  const { iterations = usual.iterations, samples = 1, warmUps = 0, arithmetic, style } = options;
  const calls = callsOf(world, machine.form);
  const place = new CgPlace(n, world.rank, world.size);
  const links = new Links(machine.form, style, options.info);
  const group = await CgGroup.make(world, n, place, links, arithmetic);
  const gradients = new Gradients(place, group, options, (operations) =>
    machine.charge(operations / (1e3 * options.gflops)),
  );
  // A step first that is not timed, as NPB does it: connections are made, and code is compiled.
  gradients.x.fill(1);
  await gradients.step();
  const times: number[] = [];
  let zeta = Number.NaN;
  for (let sample = -warmUps; sample < samples; sample++) {
    gradients.x.fill(1);
    await calls.barrier();
    const began = machine.now();
    for (let iteration = 0; iteration < iterations; iteration++) zeta = shift + 1 / (await gradients.step());
    const slowest = new Float64Array(1);
    await world.allreduce(Float64Array.of(machine.now() - began), slowest, Op.MAX);
    if (sample >= 0) times.push(slowest[0]);
  }
  // NAS checks what rank 0 has found. Here the check is all ranks'.
  const wrong = new Float64Array(1);
  await world.allreduce(Float64Array.of(arithmetic && !cgIsRight(options.class, zeta) ? 1 : 0), wrong, Op.MAX);
  await links.free();
  const { rows, columns } = place.grid;
  return {
    ...{ class: options.class, style, n, iterations, expected },
    microseconds: median(times),
    each: median(times) / iterations,
    milliseconds: times.map((time) => time / 1e3),
    grid: [rows, columns],
    zeta: arithmetic ? zeta : Number.NaN,
    errors: wrong[0],
  };
}
