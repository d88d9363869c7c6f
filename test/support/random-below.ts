/** Numbers 0 … n − 1 from a seed, for schedules of steps. */
export function randomBelow(seed: number): (n: number) => number {
  let state = seed | 0;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 8) % n;
  };
}

/** How many schedules: `ONESIDED_SCHEDULES`, or what takes about a second each. */
export const SCHEDULES = Number(process.env['ONESIDED_SCHEDULES'] ?? 25);
