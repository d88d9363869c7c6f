/** Whether a rank's program is searched for races: what does it is loaded only then. */
import { workerData } from 'node:worker_threads';
import { argumentTypeError, reading, show } from '../errors.ts';
import type { Membership } from '../job/membership.ts';
import { refuseUnknown } from '../options.ts';
import {
  RACES_HOSTS_VARIABLE,
  RACES_LIVE_VARIABLE,
  RACES_LOGS_VARIABLE,
  RACES_VARIABLE,
  racesFromEnvironment,
} from '../races/race-request.ts';
import type { JobRaces } from '../races/watch/job-races.ts';
import type { RaceOptions, TaskRaces } from '../races/watch/task-races.ts';
import type { ThreadInvitation } from './thread.ts';

/** Throws for what the environment asks in words that there are not. Errors: `ERR_ARG`. */
export function checkRaces(): void {
  racesFromEnvironment(process.env);
}

export async function racesOfRank({ rank, size }: Membership): Promise<JobRaces | undefined> {
  const { env } = process;
  const request = racesFromEnvironment(env);
  if (request === undefined) return undefined;
  const invitation = (workerData as { onesided?: ThreadInvitation } | null)?.onesided;
  const live = invitation?.races ?? env[RACES_LIVE_VARIABLE];
  const folder = env[RACES_LOGS_VARIABLE];
  const hosts = env[RACES_HOSTS_VARIABLE]?.split(',').map(Number);
  // Programs that this one starts are no ranks of its job.
  for (const name of Object.keys(env)) if (name.startsWith(RACES_VARIABLE)) delete env[name];
  const { watchRank } = await import('../races/watch/race-watches.ts');
  return watchRank(rank, size, request, { folder, live, hosts });
}

function checkRaceOptions(call: string, options: Readonly<Record<string, unknown>>): void {
  const check = (name: string, what: string, isRight: (value: unknown) => boolean): void => {
    const value = options[name];
    if (value !== undefined && !isRight(value))
      throw argumentTypeError(`${call}: races: ${name} must be ${what}, not ${show(value)}`);
  };
  for (const name of ['strict', 'throw']) check(name, 'true or false', (value) => typeof value === 'boolean');
  for (const name of ['file', 'picture']) check(name, 'the name of a file', (value) => typeof value === 'string');
  check('report', 'a function', (value) => typeof value === 'function');
  check('memory', 'a number of bytes from 2^20 on', (value) => typeof value === 'number' && value >= 2 ** 20);
}

/** Searches tasks, if their options ask for it. Errors: `ERR_ARG`. */
export async function racesOfTasks(
  call: string,
  size: number,
  races: boolean | RaceOptions | undefined,
): Promise<TaskRaces | undefined> {
  if (races === undefined || races === false) return undefined;
  if (races !== true && (typeof races !== 'object' || races === null))
    throw argumentTypeError(`${call}: races must be true, false or { strict, throw, … }, not ${show(races)}`);
  const options = races === true ? {} : reading(call, 'races', () => ({ ...races }));
  refuseUnknown(call, 'races', options, ['strict', 'throw', 'memory', 'file', 'picture', 'report']);
  checkRaceOptions(call, options);
  const { TaskRaces } = await import('../races/watch/race-watches.ts');
  return new TaskRaces(size, options);
}
