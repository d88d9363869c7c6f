/**
 * What a verdict is worth: why claims do not hold, and where a criterion or a number was chosen with the result in
 * sight.
 * Each figure's note says more.
 */

/**
 * Why a claim does not hold. `program`: ours does what the paper's does not, or the other way round. `machine`: so does
 * the machine, in what the paper does not say. `model`: it lacks something. `finding`: none of these; the claim is
 * contradicted.
 */
export type WhyNot = 'program' | 'machine' | 'model' | 'finding';

/** By figure: of those that do not hold, and of those whose factor does not. */
const WHY_NOT: Readonly<Record<string, WhyNot>> = {
  'D4.6': 'model',
  'D4.7': 'machine',
  'D5.5': 'model',
  'D5.8': 'finding',
  'D6.7': 'model',
  'D8.7': 'finding',
  'D8.10': 'finding',
  'D9.4': 'machine',
  'D10.3': 'program',
  B3: 'model',
  B4: 'model',
  B5: 'model',
  B7: 'finding',
  B8: 'finding',
  M1: 'finding',
  M3: 'finding',
  N4: 'finding',
  N5: 'finding',
  T1: 'finding',
  T3: 'finding',
  T4: 'finding',
  T5: 'finding',
  T6: 'finding',
  'O.1': 'finding',
  'O.2': 'finding',
  'O.4': 'finding',
};

/** Figures with a number that a fabric is fitted to: that number is none of what is claimed. */
const FITTED = ['D6.8', 'D8.3', 'B3', 'B6', 'N3'] as const;

/** Figures whose criterion, program or fabric was changed after a first measurement. */
const CHANGED = [
  ...['D4.1', 'D4.6', 'D4.7', 'D5.8', 'D6.7', 'D7.2', 'D7.4', 'D7.5', 'D8.3', 'D8.4', 'D8.5', 'D8.7', 'D8.8', 'D8.9'],
  ...['D8.10', 'D9.3', 'D9.4', 'D10.1', 'B2', 'B4', 'B7', 'M1', 'M3', 'O.3'],
] as const;

export function whyNotOf(id: string): WhyNot | undefined {
  return WHY_NOT[id];
}

/** All that the lists name, for a test. */
export const NAMED: readonly string[] = [...Object.keys(WHY_NOT), ...FITTED, ...CHANGED];

/** As letters behind a verdict. */
export function marksOf(id: string): string {
  const letters = [
    ...((FITTED as readonly string[]).includes(id) ? ['f'] : []),
    ...((CHANGED as readonly string[]).includes(id) ? ['c'] : []),
  ];
  return letters.length === 0 ? '' : ` (${letters.join(', ')})`;
}
