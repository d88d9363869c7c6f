/**
 * Turns a chapter's requirements into tests. One job for each kind and number of ranks puts all of them on trial; each
 * is a test of its own, so that one that fails hides no other. The results are kept for `npm run conformance`, which
 * writes docs/conformance.md from them.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import type { WindowInfo } from 'onesided';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { allChapters, standardOf } from '../ranks/conformance/chapters.ts';
import type { Requirement } from '../ranks/conformance/requirement.ts';
import { IN_GATE } from '../support/gate.ts';
import { RANK_KINDS, type RankKind, runRanks, seedOfRun } from '../support/ranks.ts';
import { FOLDER, writeResults } from './results.ts';

/** Ranks of one sort, on which chapters are put on trial. */
export interface Ranks {
  /** For the names of tests and results. */
  readonly name: string;
  readonly kind: RankKind;
  readonly sizes: readonly number[];
  readonly env?: Readonly<Record<string, string>>;
  /** Hints of windows that ask for nothing else. */
  readonly info?: WindowInfo;
}

const SIZES = [2, 3, 4, 7];
const ALL_RANKS: readonly Ranks[] = [
  ...RANK_KINDS.map((kind) => ({ name: kind, kind, sizes: SIZES })),
  // The ways that windows take on a device across a network.
  ...RANK_KINDS.filter((kind) => kind === 'processes').map((kind) => ({
    name: 'requests',
    kind,
    sizes: [2, 3],
    env: { ONESIDED_DEBUG: 'requests' },
  })),
  // The same, and neighbours besides: as if on two hosts.
  ...RANK_KINDS.filter((kind) => kind === 'processes').map((kind) => ({
    name: 'neighbours',
    kind,
    sizes: [4],
    env: { ONESIDED_DEBUG: 'requests,neighbours' },
  })),
];
/** What stands for them in the gate. */
const GATE_RANKS: readonly Ranks[] = RANK_KINDS.map((kind, i) => ({ name: kind, kind, sizes: [3 - i] }));
/** What the library says of what is not to be had on a device. */
const NOT_ON_DEVICES =
  /cannot load and store its memory|is behind a device|needs a provider whose requests|needs a device with datagrams/;
/** A chapter takes that long on an emulated processor beside other work: this ends a hang. */
const JOB_SECONDS = 600;
/** Jobs that end early are begun again after the requirement that ended them. */
const MOST_JOBS = 6;

/** A line that a rank has written about a requirement. */
interface Line {
  readonly number: number;
  readonly error?: string;
}

type Outcome = 'passed' | 'unavailable' | { readonly error: string };

function linesOf(file: string): Line[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);
}

/** What came of each requirement that applies to so many ranks, by its number. */
async function putOnTrial(
  chapter: string,
  { name, kind, env, info = {} }: Ranks,
  size: number,
): Promise<Map<number, Outcome>> {
  const asked = [...allChapters[chapter].entries()].flatMap(([number, { run, from }]) =>
    run === undefined || size < from ? [] : [number],
  );
  const outcomes = new Map<number, Outcome>();
  mkdirSync(FOLDER, { recursive: true });
  let after = -1;
  for (let job = 0; job < MOST_JOBS && outcomes.size < asked.length; job++) {
    const results = `${FOLDER}${chapter}-${name}-${size}.ranks`;
    const files = Array.from({ length: size }, (_, rank) => `${results}.${rank}`);
    for (const file of files) rmSync(file, { force: true });
    const args = [`--chapter=${chapter}`, `--results=${results}`, `--after=${after}`, `--seed=${seedOfRun()}`];
    args.push(`--info=${JSON.stringify(info)}`);
    let ending = 'a rank ended without a result';
    try {
      await runRanks('conformance', { kind, size, args, timeout: JOB_SECONDS, ...(env && { env }) });
    } catch (error) {
      ending = (error as Error).message;
    }
    const ranks = files.map(linesOf);
    for (const file of files) rmSync(file, { force: true });
    for (const number of asked) {
      if (number <= after) continue;
      const lines = ranks.map((rank) => rank.find((line) => line.number === number));
      // What needs shared memory is refused on devices, what needs datagrams on libfabric, and nothing else anywhere.
      const { needs } = allChapters[chapter][number];
      const isAvailable =
        env === undefined || needs === undefined || (needs === 'datagrams' && env['ONESIDED_PROVIDER'] !== 'libfabric');
      // A rank that has only waited in vain for another says the least.
      const complaint = lines.findIndex((line) => line?.error?.startsWith('ERR_RMA_TIMEOUT') === false);
      const wrong = complaint >= 0 ? complaint : lines.findIndex((line) => line?.error !== undefined);
      const isRefused = lines.some((line) => NOT_ON_DEVICES.test(line?.error ?? ''));
      if (!isAvailable && isRefused) outcomes.set(number, 'unavailable');
      else if (wrong >= 0) outcomes.set(number, { error: `rank ${wrong}: ${lines[wrong]!.error}` });
      else if (lines.every((line) => line !== undefined)) {
        outcomes.set(number, isAvailable ? 'passed' : { error: 'passed, though no memory is shared' });
      } else {
        outcomes.set(number, { error: `the job ended here: ${ending}` });
        after = number;
        break;
      }
    }
  }
  return outcomes;
}

/** The tests of a chapter, by kind and number of ranks. */
export function testChapter(chapter: string, sorts = IN_GATE ? GATE_RANKS : ALL_RANKS): void {
  const requirements = allChapters[chapter];
  const sections: [string, [number, Requirement][]][] = [];
  for (const [number, requirement] of requirements.entries()) {
    if (requirement.run === undefined) continue;
    const { section } = requirement;
    if (sections.at(-1)?.[0] !== section) sections.push([section, []]);
    sections.at(-1)![1].push([number, requirement]);
  }
  for (const sort of sorts) {
    const { name } = sort;
    for (const size of sort.sizes) {
      describe(`on ${size} ranks as ${name}`, () => {
        let outcomes = new Map<number, Outcome>();
        beforeAll(
          async () => {
            outcomes = await putOnTrial(chapter, sort, size);
          },
          MOST_JOBS * JOB_SECONDS * 1000,
        );
        afterAll(() => {
          const all = requirements.map((_, number) => {
            const outcome = outcomes.get(number);
            return typeof outcome === 'object' ? outcome.error : outcome;
          });
          writeResults(chapter, name, new Map([[size, all]]));
        });
        for (const [section, members] of sections) {
          for (const [number, { says, from }] of members) {
            if (size < from) continue;
            test(`${standardOf(chapter)}, ${section}: ${says}`, ({ skip }) => {
              const outcome = outcomes.get(number);
              if (outcome === 'unavailable') skip('not available on devices');
              if (outcome === 'passed') return;
              throw new Error(
                (outcome as { error: string } | undefined)?.error ??
                  'was not tested: earlier requirements ended too many jobs',
              );
            });
          }
        }
      });
    }
  }
}
