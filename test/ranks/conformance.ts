/**
 * Puts the requirements of one chapter on trial, all in one job:
 * `--chapter=NAME --results=PREFIX [--after=N] [--only=TEXT] [--info=JSON]`, the last one hints of windows.
 *
 * Each rank appends a line for each requirement to a file of its own, PREFIX.RANK, so that nothing is lost if the job
 * does not come to its end. After each requirement the ranks agree on how it went. One that failed may leave windows
 * and epochs open, but not on the communicator of the next; a rank that waits in it for a rank that has failed comes
 * back by the deadline.
 */
import { appendFileSync } from 'node:fs';
import { init, type WindowInfo } from 'onesided';
import { allChapters } from './conformance/chapters.ts';
import { Trial } from './conformance/requirement.ts';
import { argument } from './support/cases.ts';
import { Random } from './support/random.ts';

/** Against hanging only. */
const DEADLINE_MS = 60_000;
/** The agreement outlasts what the others may wait for. */
const AGREEMENT = { timeout: 140_000 };

const requirements = allChapters[argument('chapter') ?? ''];
const results = `${argument('results')}.`;
const seed = Number(argument('seed') ?? 1);
const only = argument('only');
const info = JSON.parse(argument('info') ?? '{}') as WindowInfo;
const first = Number(argument('after') ?? -1) + 1;
if (requirements === undefined) throw new Error(`there is no chapter ${argument('chapter')}`);

const world = await init({ timeout: DEADLINE_MS });
let failures = 0;
for (const [number, { says, from, run }] of requirements.entries()) {
  if (number < first || run === undefined || world.size < from || !(only === undefined || says.includes(only)))
    continue;
  const began = performance.now();
  const comm = await world.dup(AGREEMENT);
  let error: string | undefined;
  try {
    await run(new Trial(comm, new Random(seed, number, world.rank), new Random(seed, number), true, info));
  } catch (thrown) {
    error = explain(thrown);
  }
  const milliseconds = Math.round(performance.now() - began);
  appendFileSync(`${results}${world.rank}`, `${JSON.stringify({ number, says, milliseconds, error })}\n`);
  const failed = new Int32Array(world.size);
  await world.allgather(Int32Array.of(error === undefined ? 0 : 1), failed, AGREEMENT);
  if (failed.every((flag) => flag === 0)) await comm.finalize(AGREEMENT);
  else failures++;
}
console.log(JSON.stringify({ failures }));
// What failed has left windows in epochs, which finalize would refuse.
if (failures === 0) await world.finalize();
else process.exit(0);

function explain(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const missing = /(\S+) is not a function/.exec(thrown.message);
  if (thrown instanceof TypeError && missing !== null) return `not there yet: ${missing[1]}`;
  const code = 'code' in thrown ? `${thrown.code} ` : '';
  const where = thrown.stack?.split('\n').find((line) => line.includes('/conformance/')) ?? '';
  return `${code}${thrown.message} ${where.trim()}`;
}
