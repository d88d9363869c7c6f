/** MPI 4.1, 12.3: the communication calls. */

import { accumulates } from './accumulate.ts';
import { getAccumulates } from './get-accumulate.ts';
import { putAndGet } from './put-and-get.ts';
import { putLayouts } from './put-layouts.ts';
import { requestCalls } from './request-calls.ts';
import type { Requirement } from './requirement.ts';
import { singleElements } from './single-elements.ts';

export const communication: readonly Requirement[] = [
  ...putAndGet,
  ...putLayouts,
  ...accumulates,
  ...getAccumulates,
  ...singleElements,
  ...requestCalls,
];
