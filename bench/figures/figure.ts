/**
 * What a figure is: a claim of the papers, a program that measures it on a modelled fabric, a picture, and a verdict.
 */
import type { WindowInfo } from 'onesided';

export interface Line {
  readonly name: string;
  /** By place on the x axis; `null` where there is none. */
  readonly values: readonly (number | null)[];
  /** The standard deviation of each value, drawn as a bar on both sides; `null` where there is none. */
  readonly deviations?: readonly (number | null)[];
  /** The line of which this is another kind: it has the same colour, and is dashed or pale. */
  readonly like?: string;
  /** Whether the dissertation prints it: it was not measured. */
  readonly printed?: boolean;
}

/** With a value at every place. */
export interface Series extends Line {
  readonly values: readonly number[];
}

export interface Chart {
  readonly kind: 'lines' | 'bars';
  readonly x: {
    readonly name: string;
    readonly places: readonly (string | number)[];
    /** Each place is named in the picture, whether or not there seems to be room. */
    readonly all?: boolean;
  };
  /** With its unit. */
  readonly y: { readonly name: string; readonly logarithmic?: boolean };
  readonly series: readonly Line[];
  /** Something else that was measured in the same runs. */
  readonly beside?: Chart;
  /** What was measured and is not drawn: it is in the figure's data alone. */
  readonly also?: Readonly<Record<string, readonly (number | string | null)[]>>;
}

export interface Outcome {
  readonly chart: Chart;
  /** In words, with numbers. */
  readonly measured: string;
  /** Whether what the claim says holds: who wins, where lines cross, how they grow; numbers, if they are the claim. */
  readonly holds: boolean;
  /** Whether a factor or number that the claim repeats from the paper is met; absent: it repeats none. */
  readonly factor?: boolean;
  /** What else is to be known: what the model has no number for, why a claim does not hold. */
  readonly note?: string;
}

export interface Figure {
  /** As in the list of claims: `D6.7`. */
  readonly id: string;
  readonly claim: string;
  /** Where the paper shows it. */
  readonly source: string;
  readonly caption: string;
  /** What must come out for the claim to hold, decided before it was measured. */
  readonly expected: string;
  /** Files of the schemes that are compared, from the root of the repository. */
  readonly schemes: readonly string[];
  /** It takes minutes: it is measured when `--only` names it, and else keeps what it has. */
  readonly long?: true;
  readonly measure: () => Promise<Outcome>;
  /**
   * Whether it holds, by those runs alone that decide it, or by smaller ones if the note says so; where `measure` takes
   * minutes, for sensitivity.ts.
   */
  readonly verdict?: () => Promise<boolean>;
  /**
   * A part of the criterion that is cheap to measure, and fails. While it fails, the claim cannot hold. For
   * sensitivity.ts, too.
   */
  readonly necessary?: () => Promise<boolean>;
}

/** The dissertation's; the library has more. */
export const FENCES = ['deferred', 'immediate-naive', 'immediate-optimized', 'remote-notify'] as const;
export type Fence = (typeof FENCES)[number];
type LockScheme = NonNullable<WindowInfo['lock']>;
/**
 * Operations a nanosecond that LU's arithmetic is charged at, a process: some such rate SPLASH's own loops, compiled,
 * reach on the testbeds' cores, a Xeon of 2.33 GHz and an Opteron of 1.95 GHz; the dissertation gives none.
 */
export const GFLOPS = 1;
/** When hybrid locks change their mode. */
export const POLICIES = ['every-request', 'threshold:4', 'history', 'never'] as const;
export const FENCE_FILES = FENCES.map((name) => `src/sync/fence/${name}-fence.ts`);
export function lockFile(name: LockScheme): string {
  return `src/sync/lock/${name}-lock.ts`;
}

/** Runs for each of the places, one after the other. */
export async function forEach<P, R>(places: readonly P[], run: (place: P) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const place of places) results.push(await run(place));
  return results;
}

/** Three digits that count, without an exponent below a million: 0.0123, 4.56, 7890. */
export function show(value: number): string {
  const digits = value.toPrecision(3);
  return digits.includes('e') && Math.abs(value) >= 1000 && Math.abs(value) < 1e6 ? `${Number(digits)}` : digits;
}

/** For what a figure's data has besides (`Chart.also`). */
export function rounded(values: readonly number[], digits: number): number[] {
  return values.map((value) => Number(value.toFixed(digits)));
}

export function sizeName(bytes: number): string {
  return bytes < 1024 ? `${bytes}` : bytes < 2 ** 20 ? `${bytes / 1024}K` : `${bytes / 2 ** 20}M`;
}
