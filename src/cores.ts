/**
 * How many cores the ranks of this machine have: those that their scheduler gives them, and no more than a container's
 * quota of processor time lets them use at a time.
 *
 * A quota is kept by the control groups of Linux: in version 2 by `cpu.max` ("max" or microseconds, and the period), in
 * version 1 by `cpu.cfs_quota_us` (−1: none) and `cpu.cfs_period_us`; that of each group above counts, too. In a
 * container the group's own files stand at the root of what is mounted, and the path that the kernel tells may be
 * another one, so the root is always looked at.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { posix } from 'node:path';

/** Reads a file; `undefined` if it cannot be read. */
export type ReadText = (path: string) => string | undefined;

const ROOT = '/sys/fs/cgroup';

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** Cores that ranks of this machine can use at a time; at least 1. */
export function coresHere(): number {
  const quota = process.platform === 'linux' ? cpuQuota() : undefined;
  return usableCores(availableParallelism(), quota);
}

/**
 * A part of a core counts for nothing: ranks that looked on for it would use up what the others need.
 * @param quota in cores
 */
export function usableCores(cores: number, quota: number | undefined): number {
  return Math.max(1, Math.min(cores, Math.floor(quota ?? cores)));
}

/** The processor time that this process may use, in cores; `undefined` if nothing limits it. */
export function cpuQuota(read: ReadText = readText): number | undefined {
  const least = Math.min(...quotas(read));
  return Number.isFinite(least) ? least : undefined;
}

function* quotas(read: ReadText): Generator<number> {
  for (const line of (read('/proc/self/cgroup') ?? '').split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    if (controllers === '') for (const folder of folders(ROOT, path)) yield quotaOf(read(`${folder}/cpu.max`));
    if (!controllers.split(',').includes('cpu')) continue;
    for (const mount of new Set([`${ROOT}/cpu`, `${ROOT}/${controllers}`])) {
      for (const folder of folders(mount, path)) {
        const [used, period] = ['quota', 'period'].map((name) => read(`${folder}/cpu.cfs_${name}_us`)?.trim());
        if (used !== undefined && used !== '-1') yield quotaOf(`${used} ${period ?? ''}`);
      }
    }
  }
}

/** A group's folder, and those of the groups above it up to the root of the mount. */
function folders(mount: string, path: string): string[] {
  const found: string[] = [];
  for (let inside = posix.normalize(path); inside !== '/' && inside !== '.'; inside = posix.dirname(inside)) {
    if (!inside.startsWith('/..')) found.push(mount + inside);
  }
  return [...found, mount];
}

/** Of "microseconds period"; anything else limits nothing. */
function quotaOf(text: string | undefined): number {
  const [used, period] = (text ?? '').trim().split(/\s+/).map(Number);
  return used > 0 && period > 0 ? used / period : Number.POSITIVE_INFINITY;
}
