import { closeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FutexResult } from '../../src/native.ts';
import { addon, mappedWords } from '../support/addon.ts';
import { startProgram } from '../support/children.ts';

const native = addon();

describe('futexWait', () => {
  it('does not sleep when the word has another value', () => {
    const words = new Int32Array(4);
    expect(native.futexWait(words, 2, 1, Number.POSITIVE_INFINITY)).toBe(FutexResult.CHANGED);
  });

  it('ends at its deadline, not before', () => {
    const words = new Int32Array(4);
    const began = performance.now();
    expect(native.futexWait(words, 0, 0, 30)).toBe(FutexResult.TIMED_OUT);
    expect(performance.now() - began).toBeGreaterThanOrEqual(29);
    expect(native.futexWait(words, 0, 0, 0)).toBe(FutexResult.TIMED_OUT);
  });

  it('is ended by a wake in another process', async () => {
    const { fd, table } = mappedWords(1024);
    const child = startProgram(new URL('./programs/wait-fd3.ts', import.meta.url), [], [fd]);
    // The kernel counts the child as soon as it sleeps. It looks at the word and sleeps again.
    let woken = 0;
    while (woken === 0 && child.process.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      woken = native.futexWake(table, 0, 1);
    }
    expect(woken).toBe(1);
    Atomics.store(table, 0, 1);
    native.futexWake(table, 0, 1);
    const { code, stderr } = await child.ended;
    expect({ code, stderr }).toEqual({ code: 10 + FutexResult.WOKEN, stderr: '' });
    closeSync(fd);
  });
});

describe('futexWake', () => {
  it('counts nobody where nobody sleeps', () => {
    expect(native.futexWake(new Int32Array(1), 0, 100)).toBe(0);
    expect(native.futexWake(new Int32Array(1), 0, 0)).toBe(0);
    expect(native.futexWake(new Int32Array(new SharedArrayBuffer(8)), 1, 100)).toBe(0);
  });
});
