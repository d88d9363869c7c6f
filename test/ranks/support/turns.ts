/** How ranks wait for each other without a barrier, and who is next. */
import type { Communicator } from 'onesided';

/**
 * Rank 0 goes on when all others have come to here. Not a barrier of the communicator: those have deadlines to be
 * tested.
 */
export async function othersBeforeZero(world: Communicator): Promise<void> {
  const token = new Uint8Array(1);
  if (world.rank !== 0) return world.send(token, 0);
  for (let source = 1; source < world.size; source++) await world.receive(token, source);
}

export async function zeroBeforeOthers(world: Communicator): Promise<void> {
  const token = new Uint8Array(1);
  if (world.rank !== 0) return world.receive(token, 0);
  for (let target = 1; target < world.size; target++) world.send(token, target);
}

export function next({ rank, size }: Communicator): number {
  return (rank + 1) % size;
}
