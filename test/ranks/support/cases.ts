/** Cases that all ranks of a job run together, one after the other; a rank that fails ends the job. */
import { type Communicator, init, type WindowInfo } from 'onesided';
import { type Described, type Selection, select } from './selections.ts';

type Run = (world: Communicator) => unknown;

/** A sentence, the words by which tests select it, and what all ranks run. */
export interface Case extends Described {
  readonly run: Run;
}

/** By sentences, where tests do not select. */
export type Cases = Record<string, Run>;

/** A case that tests select by some words. */
export function caseOf(title: string, run: Run, about: readonly string[] = [], more: Partial<Described> = {}): Case {
  return { title, about, run, ...more };
}

/** The same case for windows with each of these hints, which its title then names. */
export function each<I extends WindowInfo>(
  infos: readonly I[],
  title: string,
  run: (world: Communicator, info: I) => unknown,
  about: readonly string[] = [],
): readonly Case[] {
  return infos.map((info) => {
    const hints = Object.entries(info).map(([key, value]) => `${key} ${value}`);
    const { fence, schedule } = info;
    return caseOf(`${title} (${hints.join(', ')})`, (world) => run(world, info), about, { fence, schedule });
  });
}

/**
 * Runs all cases, or those that `--cases=JSON` selects, or the one that `--only=TITLE` names, and prints the title of
 * each when it has passed, and all of them with their milliseconds at the end, as lines of JSON. The error of a case
 * that fails says which one it was; being thrown, it ends the job with all that the others wait for.
 *
 * With `--list`, prints what it would run, and joins no job.
 */
export async function runCases(given: readonly Case[] | Cases): Promise<void> {
  const cases = Array.isArray(given)
    ? (given as readonly Case[])
    : Object.entries(given as Cases).map(([title, run]) => caseOf(title, run));
  const titles = new Set(cases.map(({ title }) => title));
  if (titles.size < cases.length) throw new Error('two cases have one title');
  const only = argument('only');
  if (only !== undefined && !titles.has(only)) throw new Error(`no case has the title "${only}"`);
  const selection = JSON.parse(argument('cases') ?? '{}') as Selection;
  const selected = select(only === undefined ? cases : cases.filter(({ title }) => title === only), selection);
  if (process.argv.includes('--list')) {
    console.log(JSON.stringify(selected));
    return;
  }
  const world = await init();
  const milliseconds: Record<string, number> = {};
  for (const { title, run } of selected) {
    const began = performance.now();
    try {
      await run(world);
    } catch (cause) {
      throw new Error(`case "${title}" failed on rank ${world.rank} of ${world.size}`, { cause });
    }
    milliseconds[title] = Math.round(performance.now() - began);
    console.log(JSON.stringify({ passed: title }));
  }
  console.log(JSON.stringify({ cases: Object.keys(milliseconds), milliseconds }));
  await world.finalize();
}

/** The value of `--NAME=VALUE`. */
export function argument(name: string): string | undefined {
  const start = `--${name}=`;
  return process.argv.find((text) => text.startsWith(start))?.slice(start.length);
}
