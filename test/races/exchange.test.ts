/** How ranks ask the analysis of races while they run, and what becomes of it when one of the two is gone. */
import { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { exchangeBytes, RaceExchange } from '../../src/races/live/race-exchange.ts';

function exchangeOf(size: number): { memory: SharedArrayBuffer; exchange: RaceExchange } {
  const memory = new SharedArrayBuffer(exchangeBytes(size));
  const exchange = new RaceExchange(memory);
  exchange.format(size);
  return { memory, exchange };
}

/** A thread that asks for `rank` by these numbers, and tells the answer. */
function asks(memory: SharedArrayBuffer, rank: number, numbers: readonly number[]): Promise<string> {
  const path = JSON.stringify(new URL('../../dist/races/live/race-exchange.js', import.meta.url).href);
  const code = `
    const { parentPort, workerData: { memory, rank, numbers } } = require('node:worker_threads');
    import(${path}).then(({ RaceExchange }) =>
      parentPort.postMessage(new RaceExchange(memory).asker(rank)(Float64Array.from(numbers))));`;
  return new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true, workerData: { memory, rank, numbers } });
    worker.once('message', resolve).once('error', reject);
  });
}

describe('a rank that asks', () => {
  test('what was asked when all is over is answered, also if nobody reads the answer', () => {
    const { exchange } = exchangeOf(3);
    exchange.close();
    // As one that was killed while it waited.
    expect(exchange.asker(1)(Float64Array.of(4, 5))).toBe('');
    const asked: unknown[] = [];
    exchange.serve((rank, numbers) => {
      asked.push([rank, [...numbers]]);
      return 'an answer';
    });
    expect(asked).toEqual([[1, [4, 5]]]);
  });

  test('waits no longer when nobody answers any more', async () => {
    const { memory, exchange } = exchangeOf(2);
    const answer = asks(memory, 0, [1, 2, 3]);
    // It has asked.
    const words = new Int32Array(memory);
    while (Atomics.load(words, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    exchange.close();
    expect(await answer).toBe('');
  });

  test('gets its own answer, and of many numbers none is lost', async () => {
    const { memory, exchange } = exchangeOf(3);
    const many = Array.from({ length: 10_000 }, (_, i) => i);
    const asked = [asks(memory, 0, many), asks(memory, 1, [7])];
    const answered = new Set<number>();
    exchange.serve((rank, numbers) => {
      answered.add(rank);
      // The last one to ask comes when the others have been answered.
      if (answered.size === 2) asked.push(asks(memory, 2, [0]));
      if (rank === 2) exchange.close();
      return `${rank}: ${numbers.length} numbers, the last ${numbers.at(-1)}, and ä`;
    });
    // The last one sees that all is over, or its answer, whichever comes first.
    expect((await Promise.all(asked)).slice(0, 2)).toEqual([
      '0: 10000 numbers, the last 9999, and ä',
      '1: 1 numbers, the last 7, and ä',
    ]);
  });

  test('has its place alone', () => {
    const { exchange } = exchangeOf(2);
    expect([exchange.take(1), exchange.take(1), exchange.hasCome(0), exchange.hasCome(1)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });
});
