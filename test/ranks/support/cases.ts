/** Cases that all ranks of a job run together, one after the other; a rank that fails ends the job. */
import { type Communicator, init } from 'onesided';

export type Cases = Record<string, (world: Communicator) => unknown>;

/**
 * Runs all cases, or the one that `--only=NAME` names, or those whose names match `--matching=PATTERN`, and prints
 * their names as one line of JSON, with the milliseconds each took. The error of a case that fails says which one it
 * was; being thrown, it ends the job with all that the others wait for.
 */
export async function runCases(cases: Cases): Promise<void> {
  const world = await init();
  const only = argument('only');
  const matching = new RegExp(argument('matching') ?? '');
  const milliseconds: Record<string, number> = {};
  for (const [name, run] of Object.entries(cases)) {
    if ((only !== undefined && only !== name) || !matching.test(name)) continue;
    const began = performance.now();
    try {
      await run(world);
    } catch (cause) {
      throw new Error(`case "${name}" failed on rank ${world.rank} of ${world.size}`, { cause });
    }
    milliseconds[name] = Math.round(performance.now() - began);
  }
  console.log(JSON.stringify({ cases: Object.keys(milliseconds), milliseconds }));
  await world.finalize();
}

/** The value of `--NAME=VALUE`. */
export function argument(name: string): string | undefined {
  const start = `--${name}=`;
  return process.argv.find((text) => text.startsWith(start))?.slice(start.length);
}
