/** MPI 4.1, 12.2: windows are made, described, and freed. */

import { dynamicWindows } from './dynamic-windows.ts';
import { makingWindows } from './making-windows.ts';
import type { Requirement } from './requirement.ts';
import { sharedWindows } from './shared-windows.ts';
import { windowAttributes } from './window-attributes.ts';

export const initialization: readonly Requirement[] = [
  ...makingWindows,
  ...sharedWindows,
  ...dynamicWindows,
  ...windowAttributes,
];
