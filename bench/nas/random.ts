/**
 * The random numbers of the NAS benchmarks (RNR-94-007, §2.3): x ← a · x modulo 2^46, divided by 2^46. Products of
 * halves of 23 bits are below 2^53, so doubles hold them exactly.
 */

export const SEED = 314159265;
export const MULTIPLIER = 5 ** 13;

const HALF = 2 ** 23;
const MODULUS = 2 ** 46;

/** a · b modulo 2^46, of whole numbers below that. */
export function product(a: number, b: number): number {
  const aHigh = Math.floor(a / HALF);
  const aLow = a - HALF * aHigh;
  const bHigh = Math.floor(b / HALF);
  const bLow = b - HALF * bHigh;
  const middle = aHigh * bLow + aLow * bHigh;
  const sum = HALF * (middle - HALF * Math.floor(middle / HALF)) + aLow * bLow;
  return sum - MODULUS * Math.floor(sum / MODULUS);
}

/** a to the power of `exponent`, modulo 2^46: what `exponent` steps multiply a state with. Logarithmic. */
export function power(a: number, exponent: number): number {
  let [result, square, left] = [1, a, exponent];
  while (left > 0) {
    if (left % 2 === 1) result = product(result, square);
    square = product(square, square);
    left = Math.floor(left / 2);
  }
  return result;
}

/** The number between 0 and 1 that a state stands for. */
export function fraction(state: number): number {
  return state / MODULUS;
}
