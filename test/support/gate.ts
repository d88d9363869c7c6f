/**
 * Whether these tests are the gate (test/gate/vitest.config.ts): then files that draw many cases, or start a job for
 * each, take a few that stand for them.
 */
export const IN_GATE = process.env['ONESIDED_TEST_GATE'] === '1';

/** All cases, or in the gate those that stand for them. */
export function casesOf<T>(all: readonly T[], representative: (one: T) => boolean): readonly T[] {
  const chosen = IN_GATE ? all.filter(representative) : all;
  if (chosen.length === 0) throw new Error('no case is left in the gate');
  return chosen;
}
