/**
 * All figures, in the order of their measuring: the longest first, so that no core is left alone with one at the end.
 */

import { chapter4 } from './chapter-4.ts';
import { chapter5 } from './chapter-5.ts';
import { chapter6 } from './chapter-6.ts';
import { chapter7 } from './chapter-7.ts';
import { chapter10 } from './chapter-10.ts';
import type { Figure } from './figure.ts';

const LONGEST = ['D5.10', 'D5.9', 'D7.5'];

export const FIGURES: readonly Figure[] = [...chapter4, ...chapter5, ...chapter6, ...chapter7, ...chapter10].sort(
  (a, b) => LONGEST.indexOf(b.id) - LONGEST.indexOf(a.id),
);
