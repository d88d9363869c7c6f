/**
 * Matrix times vector, and matrix times matrix (Martin and Tiskin 1999, section 3). The units are a grid, the processes
 * of a unit a grid within it. What a unit needs of others it gets once, each process a part; then the processes give
 * the parts to each other. Sums go the other way: first within the unit, then between units.
 *
 * The numbers are small whole ones, so that sums do not depend on their order; results are compared with those of one
 * process.
 */
import { type Levels, rootOf } from './levels.ts';

const a = (i: number, j: number): number => ((7 * i + 13 * j) % 11) - 5;
const b = (i: number, j: number): number => ((5 * i + 3 * j) % 9) - 4;
const x = (j: number): number => (j % 9) - 4;

/**
 * n × n times n. Process (A, a; B, b) has the block of its rows and columns, and of the vector the part of its columns
 * that is the a-th of k, of that the A-th of r; of the result likewise.
 * @returns wrong elements of the result
 */
export async function matrixVector(levels: Levels, n: number): Promise<() => number> {
  const { bsp, q, p, unit, member } = levels;
  const [r, k] = [rootOf('the number of units', q, 2), rootOf("a unit's processes", p, 2)];
  const side = n / (r * k);
  const [most, least] = [side / k, side / (k * r)];
  if (!Number.isInteger(least)) throw new RangeError(`n must be a multiple of ${r * r * k * k}, not ${n}`);
  const [A, B] = [Math.floor(unit / r), unit % r];
  const [c, d] = [Math.floor(member / k), member % k];
  const [i0, j0] = [(A * k + c) * side, (B * k + d) * side];
  const block = new Float64Array(side * side);
  for (let at = 0; at < block.length; at++) block[at] = a(i0 + Math.floor(at / side), j0 + (at % side));
  const mine = Float64Array.from({ length: least }, (_, i) => x(j0 + c * most + A * least + i));
  const [vector, sums] = [new Float64Array(side), new Float64Array(side)];
  const ofUnit = new Float64Array(k * most);
  const ofAll = new Float64Array(r * least);
  const own = [vector, ofUnit, ofAll];
  for (const one of own) bsp.pushReg(one);
  await levels.sync();
  // The vector: to the units of this column, then within them.
  for (let other = 0; other < r; other++) {
    bsp.put(levels.pid(other * r + B, member), mine, vector, c * most + A * least);
  }
  await levels.sync();
  for (let other = 0; other < k; other++) {
    if (other !== c) levels.uput(other * k + d, vector, vector, c * most, most, c * most);
  }
  await levels.usync();
  for (let i = 0; i < side; i++) {
    let sum = 0;
    for (let j = 0; j < side; j++) sum += block[i * side + j] * vector[j];
    sums[i] = sum;
  }
  await levels.charge(2 * side * side);
  // The result: sums within the units of this row, then between them.
  for (let other = 0; other < k; other++) {
    levels.uput(c * k + other, sums, ofUnit, d * most, most, other * most);
  }
  if (k === 1) ofUnit.set(sums);
  await levels.usync();
  const partial = addParts(ofUnit, k);
  await levels.charge((k - 1) * most);
  for (let other = 0; other < r; other++) {
    bsp.put(levels.pid(A * r + other, member), partial, ofAll, B * least, least, other * least);
  }
  await levels.sync();
  const result = addParts(ofAll, r);
  await levels.charge((r - 1) * least);
  for (const one of own) bsp.popReg(one);
  return () => {
    let errors = 0;
    for (let i = 0; i < least; i++) {
      let sum = 0;
      for (let j = 0; j < n; j++) sum += a(i0 + d * most + B * least + i, j) * x(j);
      if (sum !== result[i]) errors++;
    }
    return errors;
  };
}

/**
 * n × n times n × n. The units are a cube of r × r × r, the processes of a unit one of k × k × k; process (A, a; B, b;
 * C, c) multiplies block (A, a; B, b) by block (B, b; C, c). Of the first it has the rows that are the c-th of k, of
 * them the C-th of r; of the second by a and A, of the result by b and B.
 * @returns wrong elements of the result
 */
export async function matrixMatrix(levels: Levels, n: number): Promise<() => number> {
  const { bsp, q, p, unit, member } = levels;
  const [r, k] = [rootOf('the number of units', q, 3), rootOf("a unit's processes", p, 3)];
  const side = n / (r * k);
  const most = (side / k) * side;
  const least = most / r;
  if (!Number.isInteger(side / (k * r))) throw new RangeError(`n must be a multiple of ${(r * k) ** 2}, not ${n}`);
  const of = (number: number, root: number): readonly [number, number, number] => [
    Math.floor(number / root ** 2),
    Math.floor(number / root) % root,
    number % root,
  ];
  const numberOf = ([i, j, l]: readonly number[], root: number): number => (i * root + j) * root + l;
  const [big, small] = [of(unit, r), of(member, k)];
  const first = (dimension: number): number => (big[dimension] * k + small[dimension]) * side;
  /** Whoever is at the same place but for one dimension. */
  const along = (place: readonly number[], dimension: number, at: number, root: number): number =>
    numberOf(place.with(dimension, at), root);
  const factors = [new Float64Array(side * side), new Float64Array(side * side)];
  const product = new Float64Array(side * side);
  const [ofUnit, ofAll] = [new Float64Array(k * most), new Float64Array(r * least)];
  const own = [...factors, ofUnit, ofAll];
  for (const one of own) bsp.pushReg(one);
  /** The part of a block that this process has, and its rows, by the dimension that the block does not have. */
  const startOf = (dimension: number): number => small[dimension] * most + big[dimension] * least;
  const mine = [
    [a, 0, 1, 2],
    [b, 1, 2, 0],
  ] as const;
  const parts = mine.map(([matrix, rows, columns, without]) =>
    Float64Array.from({ length: least }, (_, at) => {
      const place = startOf(without) + at;
      return matrix(first(rows) + Math.floor(place / side), first(columns) + (place % side));
    }),
  );
  await levels.sync();
  for (const [f, [, , , without]] of mine.entries()) {
    for (let other = 0; other < r; other++) {
      bsp.put(levels.pid(along(big, without, other, r), member), parts[f], factors[f], startOf(without));
    }
  }
  await levels.sync();
  for (const [f, [, , , without]] of mine.entries()) {
    const from = small[without] * most;
    for (let other = 0; other < k; other++) {
      if (other !== small[without]) {
        levels.uput(along(small, without, other, k), factors[f], factors[f], from, most, from);
      }
    }
  }
  await levels.usync();
  multiply(factors[0], factors[1], product, side);
  await levels.charge(2 * side ** 3);
  for (let other = 0; other < k; other++) {
    levels.uput(along(small, 1, other, k), product, ofUnit, small[1] * most, most, other * most);
  }
  if (k === 1) ofUnit.set(product);
  await levels.usync();
  const partial = addParts(ofUnit, k);
  await levels.charge((k - 1) * most);
  for (let other = 0; other < r; other++) {
    bsp.put(levels.pid(along(big, 1, other, r), member), partial, ofAll, big[1] * least, least, other * least);
  }
  await levels.sync();
  const result = addParts(ofAll, r);
  await levels.charge((r - 1) * least);
  for (const one of own) bsp.popReg(one);
  return () => {
    let errors = 0;
    for (let at = 0; at < least; at++) {
      const place = startOf(1) + at;
      const [i, j] = [first(0) + Math.floor(place / side), first(2) + (place % side)];
      let sum = 0;
      for (let l = 0; l < n; l++) sum += a(i, l) * b(l, j);
      if (sum !== result[at]) errors++;
    }
    return errors;
  };
}

function multiply(x: Float64Array, y: Float64Array, z: Float64Array, side: number): void {
  for (let i = 0; i < side; i++) {
    for (let l = 0; l < side; l++) {
      const factor = x[i * side + l];
      for (let j = 0, at = i * side, from = l * side; j < side; j++, at++, from++) z[at] += factor * y[from];
    }
  }
}

/** The sum of so many parts of one length. */
function addParts(parts: Float64Array, count: number): Float64Array {
  const length = parts.length / count;
  const sum = parts.slice(0, length);
  for (let part = 1; part < count; part++) {
    for (let i = 0; i < length; i++) sum[i] += parts[part * length + i];
  }
  return sum;
}
