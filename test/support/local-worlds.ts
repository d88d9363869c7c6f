/** Ranks of one thread that share memory, as threads do. */
import { Communicator } from '../../src/collective/communicator.ts';
import { controlBytes, formatControl, viewControl } from '../../src/job/control-region.ts';
import { Job } from '../../src/job/job.ts';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';

export async function makeLocalWorlds(size: number): Promise<{ world: Communicator; job: Job }[]> {
  const control = viewControl(new SharedArrayBuffer(controlBytes(size)), size);
  formatControl(control);
  const jobs = createLocalFabric(size).map((fabric, rank) => {
    const membership = {
      ...{ rank, size, control, context: openEmulator(fabric), distant: false, cores: size, watched: true },
      ...{ describe: (other: number) => `rank ${other}`, alive: () => true, leave: () => {} },
    };
    return new Job(membership, 60_000);
  });
  const worlds = await Promise.all(jobs.map((job) => Communicator.world(job, {})));
  return worlds.map((world, rank) => ({ world, job: jobs[rank] }));
}
