/** What a run of RandomAccess comes to. */
import type { Variant } from './variants.ts';
import { UPDATES_PER_WORD } from './verify.ts';

/** Share of wrong words that HPCC allows. */
const ALLOWED = 0.01;

export interface Result {
  readonly variant: string;
  readonly ranks: number;
  readonly words: number;
  readonly updates: number;
  readonly seconds: number;
  /** Updates per second, in 10^9. */
  readonly gups: number;
  /** Words that were wrong after the updates had been undone. */
  readonly errors: number;
  readonly errorFraction: number;
  readonly verified: boolean;
}

/** Atomic updates lose none, so for them not one error is allowed. */
export function resultOf(
  variant: string,
  { atomic }: Pick<Variant, 'atomic'>,
  run: { readonly ranks: number; readonly words: number; readonly seconds: number; readonly errors: number },
): Result {
  const { ranks, words, seconds, errors } = run;
  const updates = UPDATES_PER_WORD * words;
  return {
    variant,
    ranks,
    words,
    updates,
    seconds,
    gups: updates / seconds / 1e9,
    errors,
    errorFraction: errors / words,
    verified: errors <= (atomic ? 0 : ALLOWED * words),
  };
}

/** For people. */
export function describe({
  variant,
  ranks,
  words,
  updates,
  seconds,
  gups,
  errors,
  errorFraction,
  verified,
}: Result): string {
  return (
    `RandomAccess ${variant}: ${gups.toFixed(4)} GUP/s (${(gups / ranks).toFixed(4)} a rank), ` +
    `${seconds.toFixed(3)} s for ` +
    `${updates} updates of ${words} words on ${ranks} ${ranks === 1 ? 'rank' : 'ranks'}\n` +
    `${verified ? 'verified' : 'NOT VERIFIED'}: ${errors} wrong words of ${words} ` +
    `(${(100 * errorFraction).toFixed(4)} %)`
  );
}
