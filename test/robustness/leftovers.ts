/**
 * What a job could leave behind where names live: /dev/shm. (Processes: see launcher/command.ts.) Other programs have
 * names there, too; those that the library gives to memory begin with its own.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const FOLDER = '/dev/shm';
const OURS = /^onesided/;

export function sharedMemoryNames(): Set<string> {
  try {
    return new Set(readdirSync(FOLDER).filter((name) => OURS.test(name)));
  } catch {
    return new Set();
  }
}

/**
 * The names that are there now and were not before, and that no living process has open or mapped: other jobs on this
 * machine use theirs.
 */
export function abandonedSharedMemory(before: ReadonlySet<string>): string[] {
  const fresh = [...sharedMemoryNames()].filter((name) => !before.has(name));
  if (fresh.length === 0) return [];
  const inUse = namesInUse();
  return fresh.filter((name) => !inUse.has(`${FOLDER}/${name}`) && sharedMemoryNames().has(name));
}

function namesInUse(): Set<string> {
  const names = new Set<string>();
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      for (const [, name] of readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/(\/dev\/shm\/\S+)/g)) names.add(name);
      for (const fd of readdirSync(`/proc/${pid}/fd`)) names.add(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      // It has ended meanwhile, or is another user's.
    }
  }
  return names;
}
