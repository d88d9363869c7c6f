/** The fence schemes of this version. Their order gives the numbers by which ranks compare their hints. */
import { deferred } from './deferred-fence.ts';
import type { FenceKind, FencePlace } from './fence-kind.ts';
import { immediate } from './immediate-fence.ts';
import { immediateNaive } from './immediate-naive-fence.ts';
import { immediateOptimized } from './immediate-optimized-fence.ts';
import { notifyAll } from './notify-all-fence.ts';
import { remoteNotify } from './remote-notify-fence.ts';

const FENCES = [immediate, remoteNotify, deferred, immediateNaive, immediateOptimized, notifyAll] as const;

/**
 * Schemes of fences (hint `fence`).
 * - `immediate`: operations are complete when issued, so a barrier suffices.
 * - `remote-notify`: writes with immediate, counted at the target.
 * - `deferred`: operations are queued, then sent and executed in the closing fence.
 * - `immediate-naive`: writes, a finish message to each target, and flags to every rank.
 * - `immediate-optimized`: the same, with a barrier instead of the flags.
 * - `notify-all`: one notification to each rank, after the puts.
 */
export type FenceSchemeName = (typeof FENCES)[number]['name'];

export const FENCE_SCHEMES: readonly FenceSchemeName[] = FENCES.map(({ name }) => name);

export function defaultFence(where: FencePlace): FenceSchemeName {
  return FENCES.find((kind) => kind.isDefault?.(where))!.name;
}

export function fenceNamed(name: FenceSchemeName): FenceKind {
  return FENCES.find((kind) => kind.name === name)!;
}
