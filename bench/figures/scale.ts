/**
 * True scales: a value's distance on an axis is its size, or its logarithm. Axes end where the data do, so that no
 * decade is empty, and have ticks between those that are labelled.
 */

/** An axis, whose positions are what `of` makes of values. */
export interface Scale {
  readonly of: (value: number) => number;
  /** Positions. */
  readonly min: number;
  readonly max: number;
  /** Positions and labels. */
  readonly major: readonly (readonly [at: number, label: string])[];
  readonly minor: readonly number[];
}

/** The number of a place, which may be a size as `16K`; undefined if it is a name. */
export function numberOf(place: string | number): number | undefined {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([KM]?)$/.exec(String(place)) ?? [];
  return digits === undefined ? undefined : Number(digits) * { '': 1, K: 1024, M: 1024 ** 2 }[unit as '' | 'K' | 'M'];
}

const EPSILON = 1e-9;
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** 1, 2 or 5 times a power of ten: the smallest step with which a length has no more than so many. */
function niceStep(length: number, most: number): number {
  const least = length / most;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((digit) => digit * power >= least * (1 - EPSILON)) ?? 10);
}

/** Multiples of a step within a range. */
function multiples(step: number, from: number, to: number): number[] {
  return range(Math.ceil(from / step - EPSILON), Math.floor(to / step + EPSILON)).map((n) =>
    Number((n * step).toPrecision(12)),
  );
}

const show = (value: number): string =>
  value.toLocaleString('en-US', { maximumSignificantDigits: 4 }).replace('-', '−');

/** Whether places are better seen by their ratios: those that grow by factors. */
function isGeometric(places: readonly number[]): boolean {
  const [least, most] = [Math.min(...places), Math.max(...places)];
  if (least <= 0 || places.length < 2) return false;
  return most / least >= 30 || places.every((place, k) => k === 0 || place / places[k - 1] >= 1.9);
}

/**
 * The scale of the places that were measured; undefined if they are names.
 * @param room how many labels it has room for
 */
export function scaleOfPlaces(places: readonly (string | number)[], room: number): Scale | undefined {
  const numbers = places.map(numberOf);
  if (numbers.some((number) => number === undefined)) return undefined;
  const values = numbers as number[];
  const geometric = isGeometric(values);
  const of = geometric ? Math.log2 : (value: number): number => value;
  const [first, last] = [of(Math.min(...values)), of(Math.max(...values))];
  const pad = 0.03 * (last - first || 1);
  const labelled: (readonly [number, string])[] = [];
  for (const [k, value] of values.entries()) {
    const at = of(value);
    const before = labelled.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY;
    if (at - before >= (0.98 * (last - first)) / room) labelled.push([at, String(places[k])]);
  }
  const powers = geometric ? range(Math.ceil(first), Math.floor(last)) : [];
  const limits = { of, min: first - pad, max: last + pad };
  if (geometric || labelled.length > 0.75 * values.length) {
    return { ...limits, major: labelled, minor: [...new Set([...powers, ...values.map(of)])] };
  }
  const step = niceStep(last - first, Math.min(10, room));
  return {
    ...limits,
    major: multiples(step, first, last).map((value) => [value, show(value)]),
    minor: multiples(step / 5, first, last),
  };
}

/** The scale of what was measured. Linear ones begin at 0, or below. */
export function scaleOfValues(all: readonly number[], logarithmic: boolean): Scale {
  const values = all.filter((value) => Number.isFinite(value) && (!logarithmic || value > 0));
  return logarithmic && values.length > 0 ? decades(values) : linear(values);
}

function linear(values: readonly number[]): Scale {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const step = niceStep(most - least || 1, 6);
  const [min, max] = [Math.floor(least / step + EPSILON) * step, Math.ceil(most / step - EPSILON) * step || step];
  return {
    of: (value) => value,
    min,
    max,
    major: multiples(step, min, max).map((value) => [value, show(value)]),
    minor: multiples(step / 5, min, max),
  };
}

/** Ends at one significant digit beyond the data. */
function decades(values: readonly number[]): Scale {
  const of = Math.log10;
  const unit = (value: number): number => 10 ** Math.floor(of(value) + EPSILON);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const [from, to] = [
    Math.floor(least / unit(least) + EPSILON) * unit(least),
    Math.ceil(most / unit(most) - EPSILON) * unit(most),
  ];
  const end = to > from ? to : from + unit(from);
  const ticks = range(Math.floor(of(from) + EPSILON), Math.floor(of(end) + EPSILON))
    .flatMap((power) => range(1, 9).map((digit) => [digit, digit * 10 ** power] as const))
    .filter(([, value]) => value >= from * (1 - EPSILON) && value <= end * (1 + EPSILON));
  const length = of(end) - of(from);
  const digits = length > 3 ? [1] : length > 0.8 ? [1, 2, 5] : range(1, 9);
  return {
    of,
    min: of(from),
    max: of(end),
    major: ticks
      .filter(([digit]) => digits.includes(digit))
      .map(([, value]) => [of(value), show(Number(value.toPrecision(6)))]),
    minor: ticks.map(([, value]) => of(value)),
  };
}
