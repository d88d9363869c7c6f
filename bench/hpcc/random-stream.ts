/**
 * HPCC's stream of pseudo-random 64-bit numbers: the powers of x in GF(2)[x] modulo x^64 + x^2 + x + 1. A number's bits
 * are the polynomial's coefficients, so the next one is a shift to the left, and an exclusive or with 7 when x^64 falls
 * out at the top.
 *
 * Numbers are pairs of 32-bit halves, because a `BigInt` in a loop costs an allocation. Halves are signed where only
 * their bits matter.
 */

/** What x^64 is congruent to: x^2 + x + 1. */
export const POLYNOMIAL = 7;

/** Where the stream begins again (HPCC's `PERIOD`), in halves: 1317624576693539401. */
const PERIOD_HIGH = 0x12492492;
const PERIOD_LOW = 0x49249249;

export interface Halves {
  high: number;
  low: number;
}

/** Replaces `value` by the next number of the stream. */
export function step(value: Halves): void {
  const { high, low } = value;
  value.high = (high << 1) | (low >>> 31);
  value.low = (low << 1) ^ ((high >> 31) & POLYNOMIAL);
}

/**
 * The stream's number at `position`: x^position. Found by repeated squaring from the position's highest bit, as
 * squaring a polynomial over GF(2) only spreads its bits: bit i goes to 2i.
 * @param position a safe integer; negative ones count back from the end of the period
 */
export function startOf(position: number): Halves {
  const exponent = moduloPeriod(position);
  const result: Halves = { high: 0, low: 1 };
  for (let bit = 63; bit >= 0; bit--) {
    square(result);
    const half = bit >= 32 ? exponent.high : exponent.low;
    if ((half >>> (bit & 31)) & 1) step(result);
  }
  return result;
}

/** `position` modulo the period, which is larger than any safe integer: only negative positions change. */
function moduloPeriod(position: number): Halves {
  if (!Number.isSafeInteger(position))
    throw new RangeError(`the stream has positions that are safe integers, not ${position}`);
  const distance = Math.abs(position);
  const high = Math.floor(distance / 2 ** 32);
  const low = distance % 2 ** 32;
  if (position >= 0) return { high, low };
  const borrow = low > PERIOD_LOW ? 1 : 0;
  return { high: PERIOD_HIGH - high - borrow, low: (PERIOD_LOW - low) >>> 0 };
}

/** SQUARES[i] = x^(2i) for i < 64, high half before low half. */
const SQUARES = new Int32Array(128);
for (let i = 0, power: Halves = { high: 0, low: 1 }; i < 64; i++) {
  SQUARES[2 * i] = power.high;
  SQUARES[2 * i + 1] = power.low;
  step(power);
  step(power);
}

function square(value: Halves): void {
  let high = 0;
  let low = 0;
  for (let i = 0; i < 64; i++) {
    const half = i >= 32 ? value.high : value.low;
    if ((half >>> (i & 31)) & 1) {
      high ^= SQUARES[2 * i];
      low ^= SQUARES[2 * i + 1];
    }
  }
  value.high = high;
  value.low = low;
}
