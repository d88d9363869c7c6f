/**
 * Runs the programs with and without a race on tasks, under schedules that are drawn from seeds, and prints which were
 * accused. Started with `--import onesided/races`: `node races-tasks.js FABRIC SEEDS`.
 */
import { runTasks } from 'onesided/fabrics';
import { RACE_CASES, runRaceCase } from './support/races/all-cases.ts';

const [fabric = 'connectx-16-cores', seeds = '1'] = process.argv.slice(2);
for (const one of RACE_CASES) {
  for (let seed = 1; seed <= Number(seeds); seed++) {
    let found: readonly unknown[] = [];
    await runTasks(one.size, (world) => runRaceCase(one, world), {
      ...{ fabric, seed, order: 'random' },
      races: {
        report: ({ races }) => {
          found = races;
        },
      },
    });
    console.log(JSON.stringify({ name: one.name, racy: one.racy, seed, found }));
  }
}
