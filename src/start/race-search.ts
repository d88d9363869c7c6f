/** Whether a rank's program is searched for races: what does it is loaded only then. */
import { workerData } from 'node:worker_threads';
import type { Membership } from '../job/membership.ts';
import {
  RACES_HOSTS_VARIABLE,
  RACES_LIVE_VARIABLE,
  RACES_LOGS_VARIABLE,
  RACES_VARIABLE,
  racesFromEnvironment,
} from '../races/race-request.ts';
import type { JobRaces } from '../races/watch/job-races.ts';
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
