/** Cases that all ranks of a job run together, one after the other; a rank that fails ends the job. */
import { type Communicator, init } from 'onesided';

export type Cases = Record<string, (world: Communicator) => unknown>;

/**
 * Runs all cases, or the one that `--only=NAME` names, or those whose names match `--matching=PATTERN`, and prints the
 * name of each when it has passed, and all of them with their milliseconds at the end, as lines of JSON. The error of a
 * case that fails says which one it was; being thrown, it ends the job with all that the others wait for.
 *
 * With `--list`, prints the names of what it would run, and joins no job.
 */
export async function runCases(cases: Cases): Promise<void> {
  const only = argument('only');
  const matching = new RegExp(argument('matching') ?? '');
  const selected = Object.entries(cases).filter(([name]) => (only ?? name) === name && matching.test(name));
  if (process.argv.includes('--list')) {
    console.log(JSON.stringify(selected.map(([name]) => name)));
    return;
  }
  const world = await init();
  const milliseconds: Record<string, number> = {};
  for (const [name, run] of selected) {
    const began = performance.now();
    try {
      await run(world);
    } catch (cause) {
      throw new Error(`case "${name}" failed on rank ${world.rank} of ${world.size}`, { cause });
    }
    milliseconds[name] = Math.round(performance.now() - began);
    console.log(JSON.stringify({ passed: name }));
  }
  console.log(JSON.stringify({ cases: Object.keys(milliseconds), milliseconds }));
  await world.finalize();
}

/** The value of `--NAME=VALUE`. */
export function argument(name: string): string | undefined {
  const start = `--${name}=`;
  return process.argv.find((text) => text.startsWith(start))?.slice(start.length);
}
