/** All programs with a race, and without. */
import { type Communicator, Window } from 'onesided';
import { ATOMIC_CASES, MISC_CASES } from './atomic-cases.ts';
import { BSP_CASES } from './bsp-cases.ts';
import { CONFLICT_CASES } from './conflict-cases.ts';
import type { RaceCase } from './race-case.ts';
import { SYNC_CASES } from './sync-cases.ts';

export const RACE_CASES: readonly RaceCase[] = [
  ...ATOMIC_CASES,
  ...BSP_CASES,
  ...CONFLICT_CASES,
  ...MISC_CASES,
  ...SYNC_CASES,
];

export async function runRaceCase({ run, name }: RaceCase, world: Communicator): Promise<void> {
  const win = await Window.allocate(world, Int32Array, 10, { name });
  for (let i = 0; i < win.local.length; i++) win.local[i] = 0;
  await world.barrier();
  await run({ world, win, value: Int32Array.of(1), value2: Int32Array.of(2) });
  await world.barrier();
  await win.free();
}
