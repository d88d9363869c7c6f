/** The fence schemes of this version. Their order gives the numbers by which ranks compare their hints. */
import { deferred } from './deferred.ts';
import { immediate } from './immediate.ts';
import { immediateNaive } from './immediate-naive.ts';
import { immediateOptimized } from './immediate-optimized.ts';
import type { FenceKind, FencePlace } from './kind.ts';
import { notifyAll } from './notify-all.ts';
import { remoteNotify } from './remote-notify.ts';

const FENCES = [immediate, remoteNotify, deferred, immediateNaive, immediateOptimized, notifyAll] as const;

export type FenceSchemeName = (typeof FENCES)[number]['name'];

export const FENCE_SCHEMES: readonly FenceSchemeName[] = FENCES.map(({ name }) => name);

export function defaultFence(where: FencePlace): FenceSchemeName {
  return FENCES.find((kind) => kind.isDefault?.(where))!.name;
}

export function fenceNamed(name: FenceSchemeName): FenceKind {
  return FENCES.find((kind) => kind.name === name)!;
}
