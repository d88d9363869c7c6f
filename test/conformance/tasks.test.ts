/**
 * The requirements on tasks of a modelled fabric: once in the order of the ranks, and under schedules and with schemes
 * drawn from the seed of the run (`npm run explore` tries more of them).
 */
import { afterAll, describe, expect, test, vi } from 'vitest';
import { allChapters, standardOf } from '../ranks/conformance/chapters.ts';
import { isNotOnDevices, tryUnder } from '../ranks/support/explorer.ts';
import { schemes } from '../ranks/support/schemes.ts';
import { casesOf } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';
import { writeResults } from './results.ts';

// Against hanging only: layouts on six ranks take minutes where others use the cores.
vi.setConfig({ testTimeout: 900_000 });

/** With the schemes that windows have by themselves; from 4 on, with others (support/explorer.ts). */
const base = 8 * (seedOfRun() % 1_000_000);

type Schedule = readonly [size: number, seed: number, fabric: string];
/** In the gate, one with delays and losses. */
const inGate = ([, seed]: Schedule): boolean => seed === base + 3;

const OF_CHAPTERS = casesOf<Schedule>(
  [
    [2, 0, 'infinihost-64'],
    [4, base + 1, 'infinihost-64'],
    [3, base + 2, 'connectx-16-cores'],
    [3, base + 3, 'infinihost-64'],
    [4, base + 5, 'infinihost-64'],
    [3, base + 6, 'connectx-16-cores/2'],
    [3, base + 1, 'ethernet-10-bus'],
    [4, base + 6, 'ethernet-100-bus'],
    [3, base + 5, 'ethernet-100-switch/2'],
  ],
  inGate,
);
const OF_SCHEMES = casesOf<Schedule>(
  [
    [2, 0, 'infinihost-64'],
    [5, base, 'infinihost-64'],
    [4, base + 1, 'connectx-16-cores'],
    [7, base + 2, 'connectx-16-cores/3'],
    [6, base + 3, 'connectx-16-cores/2'],
    [3, base + 4, 'connectx-16-cores/2'],
    [2, base + 1, 'ethernet-10-bus'],
    [4, base + 6, 'ethernet-100-bus/2'],
    [4, base + 2, 'ethernet-100-switch'],
  ],
  ([size]) => size === 3,
);

for (const [chapter, requirements] of Object.entries(allChapters)) {
  describe(`${chapter}, on tasks`, () => {
    /** By number of ranks, what came of each requirement. */
    const outcomes = new Map<number, (string | undefined)[]>();
    const note = (size: number, number: number, result: string): void => {
      const known = outcomes.get(size) ?? [];
      outcomes.set(size, known);
      if (known[number] === undefined || known[number] === 'passed') known[number] = result;
    };
    afterAll(() => writeResults(chapter, 'tasks', outcomes));
    for (const [number, requirement] of requirements.entries()) {
      if (requirement.run === undefined) continue;
      test(`${standardOf(chapter)}, ${requirement.section}: ${requirement.says}`, async ({ skip }) => {
        for (const [size, seed, fabric] of OF_CHAPTERS) {
          if (size < requirement.from) continue;
          const error = await tryUnder(requirement, { fabric, size, seed });
          const isUnavailable = requirement.needs !== undefined && isNotOnDevices(error);
          note(size, number, error === undefined ? 'passed' : isUnavailable ? 'unavailable' : String(error));
          if (isUnavailable) skip('not available on devices');
          expect(
            error,
            `npm run explore -- --seeds=1 --first=${seed} --chapter=${chapter} --size=${size} --fabric=${fabric} ` +
              `'--only=${requirement.says}'`,
          ).toBeUndefined();
        }
      });
    }
  });
}

for (const [chapter, requirements] of Object.entries(schemes)) {
  describe(`${chapter} by their schemes, on tasks`, () => {
    for (const requirement of requirements) {
      test(requirement.says, async () => {
        for (const [size, seed, fabric] of OF_SCHEMES) {
          expect(
            await tryUnder(requirement, { fabric, size, seed }),
            `npm run explore -- --seeds=1 --first=${seed} --chapter=${chapter} --size=${size} --fabric=${fabric} ` +
              `'--only=${requirement.says}'`,
          ).toBeUndefined();
        }
      });
    }
  });
}
