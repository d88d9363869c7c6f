/**
 * Where ranks write what they tell: a folder of the temporary directory. Whoever makes it removes it; if that was
 * killed, the next one does.
 */
import { lstatSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';

const NAME = /^onesided-races-(.+)-(\d+)-[^-]+$/;

/** A new one. */
export function makeLogFolder(): string {
  removeAbandoned();
  return mkdtempSync(join(tmpdir(), `onesided-races-${processSpace()}-${process.pid}-`));
}

/** Where numbers of processes mean the same: containers and hosts may share a temporary directory. */
function processSpace(): string {
  const host = hostname().replace(/[^\w.]/g, '_');
  try {
    return `${host}-${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`;
  } catch {
    // No Linux.
    return host;
  }
}

/** Those whose process is no more. What cannot be removed stays. */
function removeAbandoned(): void {
  const space = processSpace();
  for (const name of namesIn(tmpdir())) {
    const [, ofSpace, pid] = NAME.exec(name) ?? [];
    if (ofSpace !== space || isAlive(Number(pid))) continue;
    const folder = join(tmpdir(), name);
    try {
      const { uid } = lstatSync(folder);
      if (uid === process.getuid?.()) rmSync(folder, { recursive: true, force: true });
    } catch {
      // Another one was quicker.
    }
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
