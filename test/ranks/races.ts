/** Runs one of the programs with or without a race, by its name. */
import { init } from 'onesided';
import { RACE_CASES, runRaceCase } from './support/races/all-cases.ts';

const world = await init();
const one = RACE_CASES.find(({ name }) => name === process.argv[2]);
if (one === undefined) throw new Error(`there is no program ${process.argv[2]}`);
await runRaceCase(one, world);
await world.finalize();
