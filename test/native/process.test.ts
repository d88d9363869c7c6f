import { closeSync, mkdtempSync, openSync, readFileSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addon } from '../support/addon.ts';
import { startProgram } from '../support/children.ts';

/** Whether the process runs. A dead one that nobody has collected yet does not. */
function runs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

describe('parentDeathSignal', () => {
  it('ends a process whose parent was killed', async () => {
    const parent = startProgram(new URL('./programs/die-with-parent.ts', import.meta.url), ['parent']);
    const [pid, sawParent] = (await parent.said('child')).split(' ');
    expect(sawParent).toBe('true');
    expect(runs(Number(pid))).toBe(true);
    parent.process.kill('SIGKILL');
    await parent.ended;
    while (runs(Number(pid))) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it('refuses what is no signal', () => {
    const native = addon();
    for (const signal of [-1, 65, 9.5, Number.NaN]) {
      expect(() => native.parentDeathSignal(signal)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    }
  });
});

describe('fileLock', () => {
  it('is held by one descriptor of a directory, until that is closed', () => {
    const native = addon();
    const directory = mkdtempSync(join(tmpdir(), 'onesided-test-'));
    const [first, second] = [openSync(directory, 'r'), openSync(directory, 'r')];
    try {
      expect(native.fileLock(first)).toBe(true);
      expect(native.fileLock(first)).toBe(true);
      expect(native.fileLock(second)).toBe(false);
    } finally {
      closeSync(first);
    }
    expect(native.fileLock(second)).toBe(true);
    closeSync(second);
    expect(() => native.fileLock(second)).toThrow(expect.objectContaining({ code: 'EBADF' }));
    rmdirSync(directory);
  });

  it('refuses what is no descriptor', () => {
    const native = addon();
    for (const fd of [-1, 1.5, Number.NaN, 2 ** 31]) {
      expect(() => native.fileLock(fd)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    }
  });
});
