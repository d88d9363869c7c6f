/**
 * Runs all requirements of the conformance suite, and of the suite of schemes, on tasks, under a schedule that is drawn
 * from a seed, and prints those that are accused of a race, or fail.
 * `node --import onesided/races races-conformance.js SIZE SEED FABRIC`.
 */
import { allChapters } from './conformance/chapters.ts';
import { isNotOnDevices, tryUnder } from './support/explorer.ts';
import { schemes } from './support/schemes.ts';

const [size = '3', seed = '1', fabric = 'infinihost-64'] = process.argv.slice(2);
const schedule = { size: Number(size), seed: Number(seed), fabric };
let tried = 0;
for (const [chapter, requirements] of Object.entries({ ...allChapters, ...schemes })) {
  for (const requirement of requirements) {
    if (requirement.run === undefined || schedule.size < (requirement.from ?? 0)) continue;
    let races: readonly unknown[] = [];
    const error = await tryUnder(requirement, schedule, {
      report: (report) => {
        races = report.races;
      },
    });
    tried++;
    if (isNotOnDevices(error)) continue;
    if (error === undefined && races.length === 0) continue;
    console.log(JSON.stringify({ chapter, says: requirement.says, error: error && String(error), races }));
  }
}
console.log(JSON.stringify({ tried }));
