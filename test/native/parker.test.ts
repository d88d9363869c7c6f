import { closeSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FutexResult } from '../../src/native.ts';
import { addon, mappedWords } from '../support/addon.ts';
import { runProgram, startProgram } from '../support/children.ts';

const native = addon();

describe('a parker', () => {
  it('calls back when the word was changed and woken, as often as it is begun', async () => {
    const { fd, table } = mappedWords(1024);
    let wake: (result: number) => void = () => {};
    const parker = new native.Parker((result) => wake(result));
    for (let round = 0; round < 200; round++) {
      const woken = new Promise<number>((resolve) => (wake = resolve));
      parker.begin(table, 0, round, Number.POSITIVE_INFINITY);
      if (round % 2 === 1) await new Promise(setImmediate);
      Atomics.store(table, 0, round + 1);
      native.futexWake(table, 0, 1);
      expect([FutexResult.WOKEN, FutexResult.CHANGED]).toContain(await woken);
    }
    parker.close();
    closeSync(fd);
  });

  it('has one sleep at a time, and none after it was closed', () => {
    const words = new Int32Array(1);
    const parker = new native.Parker(() => {});
    parker.begin(words, 0, 0, Number.POSITIVE_INFINITY);
    expect(() => parker.begin(words, 0, 0, 1)).toThrow(expect.objectContaining({ code: 'EBUSY' }));
    expect(parker.interrupt()).toBe(true);
    expect(parker.interrupt()).toBe(false);
    parker.begin(words, 0, 0, Number.POSITIVE_INFINITY);
    parker.close();
    parker.close();
    expect(parker.interrupt()).toBe(false);
    expect(() => parker.begin(words, 0, 0, 1)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  });

  it('does not call back for a sleep that was interrupted, even if its end was on its way', async () => {
    const words = new Int32Array(1);
    const results: number[] = [];
    const parker = new native.Parker((result) => results.push(result));
    for (let round = 0; round < 100; round++) {
      // The word differs: the thread reports at once, while this thread is not back in its event loop.
      parker.begin(words, 0, 1, Number.POSITIVE_INFINITY);
      const until = performance.now() + (round % 3);
      while (performance.now() < until);
      expect(parker.interrupt()).toBe(true);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(results).toEqual([]);
    parker.begin(words, 0, 0, 5);
    while (results.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(results).toEqual([FutexResult.TIMED_OUT]);
    parker.close();
  });

  it('survives that the memory it sleeps on is unmapped', async () => {
    const { fd, table } = mappedWords(1024);
    const parker = new native.Parker(() => {});
    parker.begin(table, 0, 0, Number.POSITIVE_INFINITY);
    await new Promise((resolve) => setTimeout(resolve, 20));
    native.memoryUnmap(table.buffer as ArrayBuffer);
    expect(parker.interrupt()).toBe(true);
    parker.close();
    closeSync(fd);
  });

  it('is not fooled by a method called on something else', () => {
    const { begin, interrupt, close } = native.Parker.prototype;
    for (const other of [{}, new Int32Array(1), undefined, new ArrayBuffer(1)]) {
      expect(() => begin.call(other as never, new Int32Array(1), 0, 0, 1)).toThrow();
      expect(() => interrupt.call(other as never)).toThrow();
      expect(() => close.call(other as never)).toThrow();
    }
    expect(() => new native.Parker(undefined as never)).toThrow(TypeError);
    expect(() => (native.Parker as unknown as () => void)()).toThrow();
  });
});

describe('a process with a parker', () => {
  const ending = new URL('./programs/park-and-end.ts', import.meta.url);

  it('stays alive while it sleeps, uses hardly any CPU, and ends when woken', async () => {
    const { fd, table } = mappedWords(1024);
    const child = startProgram(new URL('./programs/park-fd3.ts', import.meta.url), [], [fd]);
    await child.said('asleep');
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(child.process.exitCode).toBeNull();
    Atomics.store(table, 0, 1);
    native.futexWake(table, 0, 1);
    const [result, microseconds] = (await child.said('woken')).split(' ').map(Number);
    expect(result).toBe(FutexResult.WOKEN);
    // 1 % of two seconds.
    expect(microseconds).toBeLessThan(20_000);
    const { code, stderr } = await child.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    closeSync(fd);
  });

  it('can exit during a sleep', async () => {
    expect(await runProgram(ending, ['exit'])).toEqual({ code: 7, signal: null, stdout: '', stderr: '' });
  });

  it('can die of an exception during a sleep', async () => {
    const { code, stdout, stderr } = await runProgram(ending, ['throw']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('on purpose');
  });

  it('ends when the sleep is interrupted or times out', async () => {
    const interrupted = { code: 0, signal: null, stdout: 'interrupted true\n', stderr: '' };
    expect(await runProgram(ending, ['idle'])).toEqual(interrupted);
    expect(await runProgram(ending, ['timeout'])).toEqual({ ...interrupted, stdout: 'woken\n' });
  });
});
