/** What searches for races: loaded only in jobs that are searched (docs/decisions/050-races.md). */
export { watchRank } from './job-races.ts';
export { TaskRaces } from './task-races.ts';
