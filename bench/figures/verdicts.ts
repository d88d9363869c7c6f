/**
 * What a verdict is worth: why claims do not hold, and where a criterion or a number was chosen with the result in
 * sight.
 * Each figure's note says more.
 */

/**
 * Why a claim does not hold. `program`: our program differs from the paper's, or the paper does not say what it is.
 * `machine`: a number of the machine decides, or does in part, and no source gives it: with another from its range the
 * verdict is another, or nearer to the claim. `model`: it leaves out a part of the machine, or of its software, that
 * decides. `finding`: none of these; the claim is contradicted.
 */
export type WhyNot = 'program' | 'machine' | 'model' | 'finding';

/** By figure: of those that do not hold, and of those whose factor does not. */
const WHY_NOT: Readonly<Record<string, WhyNot>> = {
  'D4.6': 'model',
  'D4.7': 'machine',
  'D5.5': 'machine',
  'D5.8': 'program',
  'D6.7': 'model',
  'D7.1': 'program',
  'D8.4': 'machine',
  'D8.7': 'program',
  'D8.10': 'program',
  'D9.4': 'machine',
  'D10.3': 'finding',
  B3: 'machine',
  B4: 'model',
  B5: 'machine',
  B7: 'finding',
  M1: 'finding',
  M3: 'program',
  N4: 'finding',
  N5: 'machine',
  T1: 'finding',
  T3: 'finding',
  T4: 'machine',
  T5: 'finding',
  T6: 'program',
  'O.1': 'finding',
  'O.2': 'machine',
  'O.3': 'machine',
  'O.4': 'machine',
};

/** Figures with a number that a fabric is fitted to: that number is none of what is claimed. */
const FITTED = ['D6.8', 'D8.3', 'B3', 'B6', 'N3'] as const;

/**
 * Figures whose criterion asks for something else than at their first measurement, or whose program or fabric was
 * changed in a way that such a verdict can depend on.
 */
const CHANGED = [
  ...['D4.1', 'D4.4', 'D4.5', 'D4.6', 'D4.7', 'D4.8', 'D4.9', 'D5.5', 'D5.6', 'D5.7', 'D5.8', 'D5.9', 'D5.10', 'D6.3'],
  ...[
    'D6.4',
    'D6.5',
    'D6.6',
    'D6.7',
    'D6.8',
    'D6.9',
    'D7.1',
    'D7.2',
    'D7.3',
    'D7.4',
    'D7.5',
    'D8.1',
    'D8.3',
    'D8.4',
    'D8.5',
    'D8.7',
  ],
  ...['D8.8', 'D8.9', 'D8.10', 'D9.1', 'D9.2', 'D9.3', 'D9.4', 'D10.1', 'D10.2', 'D10.3', 'B1', 'B2', 'B3', 'B4'],
  ...['B5', 'B6', 'B7', 'B8', 'M1', 'M3', 'T6', 'O.3'],
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
