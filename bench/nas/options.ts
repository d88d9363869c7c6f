/** What both kernels are told. */
import type { WindowInfo } from 'onesided';
import type { ClassName } from './classes.ts';
import type { StyleName } from './links.ts';

/** The arithmetic in WebAssembly, or in plain TypeScript: the same results, bit by bit. */
export const KERNEL_NAMES = ['wasm', 'typescript'] as const;
export type KernelName = (typeof KERNEL_NAMES)[number];

export interface NasOptions {
  readonly class: ClassName;
  readonly style: StyleName;
  /** Operations a nanosecond that the arithmetic of a rank is charged at, where time is virtual. */
  readonly gflops: number;
  readonly info: WindowInfo;
  /**
   * False: all messages are sent and all time is charged, but nothing is computed and nothing verified. For large
   * classes on modelled fabrics.
   */
  readonly arithmetic: boolean;
  /** `typescript`, if absent. */
  readonly kernel?: KernelName;
  /** How often all iterations are timed; 1, if absent. */
  readonly samples?: number;
  /** How often they are run before, and not timed: code is compiled then; none, if absent. */
  readonly warmUps?: number;
  /** Instead of the class's number, for which alone the check has its number. */
  readonly iterations?: number;
}
