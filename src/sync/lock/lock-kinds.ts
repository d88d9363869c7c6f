/** The lock schemes of this version. Their order gives the numbers by which ranks compare their hints. */
import { direct } from './direct-lock.ts';
import { hybrid } from './hybrid-lock.ts';
import type { LockKind } from './lock-kind.ts';
import { queue } from './queue-lock.ts';
import { remote } from './remote-lock.ts';
import { twoSided } from './two-sided-lock.ts';

const LOCKS = [queue, remote, twoSided, direct, hybrid] as const;

/**
 * Schemes of locks (hint `lock`).
 * - `queue`: granted in the order of the requests, without an agent, in the target's memory; by requests if memory
 *   cannot be shared.
 * - `remote`: the same, always by requests.
 * - `two-sided`: an agent at the target grants locks and executes the operations issued under them.
 * - `direct`: compare-and-swap by the network, shared locks by an agent.
 * - `hybrid`: the processor's atomics for ranks on the target's node, the network's for the others.
 */
export type LockSchemeName = (typeof LOCKS)[number]['name'];

export const LOCK_SCHEMES: readonly LockSchemeName[] = LOCKS.map(({ name }) => name);

export const DEFAULT_LOCK: LockSchemeName = LOCKS.find(({ isDefault }) => isDefault)!.name;

export function lockNamed(name: LockSchemeName): LockKind {
  return LOCKS.find((kind) => kind.name === name)!;
}
