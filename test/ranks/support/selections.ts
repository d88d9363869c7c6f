/**
 * Which cases of a program run, as data: tests say it by the words that cases are given (cases.ts), not by their
 * titles. A word that no case has is refused, and so is a selection that leaves nothing: a case that is renamed cannot
 * drop out of a test without a failure.
 */
import type { FenceSchemeName, ScheduleHint } from './kinds.ts';

/** What is said of a case, by which selections take it. */
export interface Described {
  readonly title: string;
  readonly about: readonly string[];
  /** Of its windows, if other cases have others. */
  readonly fence?: string | undefined;
  readonly schedule?: string | undefined;
  /** How its windows are made. */
  readonly flavor?: string | undefined;
}

interface Words {
  readonly about?: readonly string[];
  readonly fence?: readonly FenceSchemeName[];
  readonly schedule?: readonly ScheduleHint[];
  readonly flavor?: readonly string[];
}

/** Cases that have one of the words in each of the lists given, but for those that `but` says the same of. */
export interface Selection extends Words {
  readonly but?: Words;
}

const LISTS = ['about', 'fence', 'schedule', 'flavor'] as const;

function has(one: Described, list: (typeof LISTS)[number], word: string): boolean {
  const found = one[list];
  return typeof found === 'string' ? found === word : (found?.includes(word) ?? false);
}

/** The cases that have one of the words in each list. Each word must be had by one of them. */
function having<T extends Described>(cases: readonly T[], words: Words): T[] {
  const found = cases.filter((one) => LISTS.every((list) => words[list]?.some((word) => has(one, list, word)) ?? true));
  for (const list of LISTS) {
    for (const word of words[list] ?? []) {
      if (found.some((one) => has(one, list, word))) continue;
      const known = [...new Set(cases.flatMap((one) => one[list] ?? []))].join(', ');
      throw new Error(`no case has ${list} "${word}" in ${JSON.stringify(words)}; ${list}: ${known || 'none'}`);
    }
  }
  return found;
}

/** The cases that a selection takes, in their order. */
export function select<T extends Described>(cases: readonly T[], { but, ...words }: Selection): readonly T[] {
  const found = having(cases, words);
  const left = but === undefined ? found : found.filter((one) => !having(found, but).includes(one));
  if (left.length === 0) throw new Error(`no case is left by ${JSON.stringify({ ...words, but })}`);
  return left;
}
