/**
 * The two graphs of Martin and Tiskin (1999, section 3) whose nodes depend on their predecessors: a square grid
 * (diamond DAG) and a cube. Blocks are computed as soon as those before them have been, in waves; a unit computes a
 * block of the whole in waves of its own, by its processes.
 *
 * Nodes of the grid are the mean of their two predecessors and a number of their own, those of the cube of three. All
 * do the same operations on a node as one process would, so the bits must be the same, and are compared.
 */
import { type Levels, rootOf } from './levels.ts';

/** Of a node, which all processes can compute. */
const own = (i: number, j: number, k: number): number => ((31 * i + 17 * j + 7 * k) & 15) / 16;
/** Before the first node in any direction. */
const BEFORE = 1;
/** Operations of a node. */
const GRID_OPERATIONS = 3;
const CUBE_OPERATIONS = 5;

/**
 * n × n nodes: rows are divided over the units, and those of a unit over its processes. A process computes its rows
 * from left to right, a block at a time, and gives the last row of it to who has the rows below.
 * @returns wrong nodes among the last ones of the rows
 */
export async function diamond(levels: Levels, n: number): Promise<() => number> {
  const { bsp, q, p, unit, member } = levels;
  const side = n / (q * p);
  if (!Number.isInteger(side)) throw new RangeError(`n must be a multiple of ${q * p}, not ${n}`);
  const wide = n / q;
  const above = new Float64Array(wide).fill(BEFORE);
  bsp.pushReg(above);
  await levels.sync();
  const left = new Float64Array(side).fill(BEFORE);
  const last = new Float64Array(side);
  const firstRow = (unit * p + member) * side;
  for (let wave = 0; wave < 2 * q - 1; wave++) {
    const block = wave - unit;
    const isActive = block >= 0 && block < q;
    for (let step = 0; isActive && step < 2 * p - 1; step++) {
      const part = step - member;
      if (part >= 0 && part < p) {
        const at = part * side;
        last.set(above.subarray(at, at + side));
        for (let i = 0; i < side; i++) {
          let before = left[i];
          for (let j = 0; j < side; j++) {
            before = 0.5 * (before + last[j]) + own(firstRow + i, block * wide + at + j, 0);
            last[j] = before;
          }
          left[i] = before;
        }
        await levels.charge(GRID_OPERATIONS * side * side);
        if (member < p - 1) levels.uput(member + 1, last, above, at);
        else if (unit < q - 1) bsp.put(levels.pid(unit + 1), last, above, at);
      }
      if (step < 2 * p - 2) await levels.usync();
    }
    await levels.sync();
  }
  bsp.popReg(above);
  return () => differences(left, (i) => gridOf(n)[firstRow + i]);
}

/**
 * n × n × n nodes: the units are a square of r × r, the processes of a unit one of k × k. A process has a column of
 * nodes, computes it from the bottom up, and gives faces of each block to its two neighbours.
 * @returns wrong nodes among the topmost
 */
export async function cube(levels: Levels, n: number): Promise<() => number> {
  const { bsp, q, p, unit, member } = levels;
  const [r, k] = [rootOf('the number of units', q, 2), rootOf("a unit's processes", p, 2)];
  const side = n / (r * k);
  if (!Number.isInteger(side)) throw new RangeError(`n must be a multiple of ${r * k}, not ${n}`);
  const [A, B] = [Math.floor(unit / r), unit % r];
  const [a, b] = [Math.floor(member / k), member % k];
  const face = side * side;
  /** What comes from the neighbours before, for the blocks of a unit's wave. */
  const fromA = new Float64Array(k * face).fill(BEFORE);
  const fromB = new Float64Array(k * face).fill(BEFORE);
  for (const one of [fromA, fromB]) bsp.pushReg(one);
  await levels.sync();
  const below = new Float64Array(face).fill(BEFORE);
  const [outA, outB] = [new Float64Array(face), new Float64Array(face)];
  const [i0, j0] = [(A * k + a) * side, (B * k + b) * side];
  for (let wave = 0; wave < 3 * r - 2; wave++) {
    const block = wave - A - B;
    const isActive = block >= 0 && block < r;
    for (let step = 0; isActive && step < 3 * k - 2; step++) {
      const part = step - a - b;
      if (part >= 0 && part < k) {
        const at = part * face;
        outA.set(fromA.subarray(at, at + face));
        outB.set(fromB.subarray(at, at + face));
        fill(outA, outB, below, side, [i0, j0, (block * k + part) * side]);
        await levels.charge(CUBE_OPERATIONS * side * face);
        if (a < k - 1) levels.uput(member + k, outA, fromA, at);
        else if (A < r - 1) bsp.put(levels.pid(unit + r, b), outA, fromA, at);
        if (b < k - 1) levels.uput(member + 1, outB, fromB, at);
        else if (B < r - 1) bsp.put(levels.pid(unit + 1, a * k), outB, fromB, at);
      }
      if (step < 3 * k - 3) await levels.usync();
    }
    await levels.sync();
  }
  for (const one of [fromA, fromB]) bsp.popReg(one);
  return () => {
    const top = cubeOf(n);
    return differences(below, (at) => top[(i0 + Math.floor(at / side)) * n + j0 + (at % side)]);
  };
}

/**
 * A block of nodes. Before, the arrays have the faces of the blocks before it, after that its own last ones: `a` has j
 * and k, `b` i and k, `c` i and j.
 */
function fill(
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  side: number,
  [i0, j0, k0]: readonly [number, number, number],
): void {
  for (let i = 0; i < side; i++) {
    for (let j = 0; j < side; j++) {
      let before = c[i * side + j];
      for (let k = 0; k < side; k++) {
        const ja = j * side + k;
        const ib = i * side + k;
        before = (a[ja] + b[ib] + before) * 0.25 + own(i0 + i, j0 + j, k0 + k);
        a[ja] = before;
        b[ib] = before;
      }
      c[i * side + j] = before;
    }
  }
}

function differences(found: Float64Array, expected: (at: number) => number): number {
  let errors = 0;
  for (let at = 0; at < found.length; at++) if (found[at] !== expected(at)) errors++;
  return errors;
}

/** By one process; kept for the other tasks of this process. */
const grids = new Map<number, Float64Array>();
const cubes = new Map<number, Float64Array>();

/** The last node of each row of a grid. */
function gridOf(n: number): Float64Array {
  const known = grids.get(n);
  if (known !== undefined) return known;
  const row = new Float64Array(n).fill(BEFORE);
  const last = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let before = BEFORE;
    for (let j = 0; j < n; j++) row[j] = before = 0.5 * (before + row[j]) + own(i, j, 0);
    last[i] = before;
  }
  grids.set(n, last);
  return last;
}

/** The topmost nodes of a cube. */
function cubeOf(n: number): Float64Array {
  const known = cubes.get(n);
  if (known !== undefined) return known;
  const faces = Array.from({ length: 3 }, () => new Float64Array(n * n).fill(BEFORE));
  fill(faces[0], faces[1], faces[2], n, [0, 0, 0]);
  cubes.set(n, faces[2]);
  return faces[2];
}
