/**
 * Arithmetic that is not done, for measurements on modelled fabrics, where it takes the time that it is charged: every
 * block is fetched and copied as with the others, and holds nothing of worth. Nothing can be verified.
 */
import type { Kernel } from './kernel.ts';

export function noKernel(length: number): Kernel {
  const nothing = (): void => {};
  return { memory: new Float64Array(length), update: nothing, solve: nothing, turn: nothing };
}
