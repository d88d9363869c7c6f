/**
 * The emulator's rings in shared memory at their edges: counts that wrap around, a producer that dies half-way, and
 * many threads at once on the bare structures.
 */
import type { Worker } from 'node:worker_threads';
import { describe, expect, test } from 'vitest';
import { CompletionRing, completionRingBytes, ringCapacity } from '../../src/providers/emulator/completion-ring.ts';
import { NO_RECEIVE, ReceiveRing, receiveRingBytes } from '../../src/providers/emulator/receive-ring.ts';
import { WorkRequestRing, WrField, WrField64 } from '../../src/verbs/work-request-ring.ts';
import { startWorker, workerEnded } from '../support/children.ts';
import { IN_GATE } from '../support/gate.ts';

const [HEAD, TAIL] = [0, 32];
const PROGRAM = new URL('./programs/ring-producer.ts', import.meta.url);

function take(ring: CompletionRing): number[] {
  const ids: number[] = [];
  for (let w = ring.peek(); w >= 0; w = ring.peek()) {
    ids.push(ring.wrId(w));
    ring.next();
  }
  ring.release();
  return ids;
}

/** A completion ring whose counts begin at `start`, as they do after so many completions. */
function completionRing(capacity: number, start: number): { ring: CompletionRing; words: Int32Array } {
  const buffer = new SharedArrayBuffer(completionRingBytes(capacity));
  const words = new Int32Array(buffer);
  words[HEAD] = start;
  words[TAIL] = start;
  return { ring: new CompletionRing(buffer, capacity), words };
}

describe('the completion ring', () => {
  test('has room for the number asked for, a power of two', () => {
    expect([1, 2, 3, 64, 65].map(ringCapacity)).toEqual([1, 2, 4, 64, 128]);
  });

  test('takes its capacity and no more, and records the overrun', () => {
    const { ring } = completionRing(4, 0);
    const push = (id: number): boolean => ring.push(id, 0, 0, 0, 0, 0, 1);
    expect([0, 1, 2, 3].map(push)).toEqual([true, true, true, true]);
    expect(ring.isOverrun).toBe(false);
    expect(push(4)).toBe(false);
    expect(ring.isOverrun).toBe(true);
    expect(take(ring)).toEqual([0, 1, 2, 3]);
    expect(push(5)).toBe(true);
  });

  test('counts the owner’s own completions against the capacity', () => {
    const { ring } = completionRing(4, 0);
    ring.setLocal(3);
    expect(ring.push(1, 0, 0, 0, 0, 0, 1)).toBe(true);
    expect(ring.push(2, 0, 0, 0, 0, 0, 1)).toBe(false);
  });

  for (const start of [-3, 2 ** 31 - 3]) {
    test(`goes on when its counts pass ${start + 3}`, () => {
      const { ring, words } = completionRing(4, start | 0);
      // A ring that has come this far holds the marks of its last round.
      for (let i = 0; i < 4; i++) words[96 + ((start + i) & 3) * 16] = (start + i - 3) | 0;
      const fresh = new CompletionRing(words.buffer, 4);
      expect(take(fresh)).toEqual([]);
      for (let i = 0; i < 20; i++) {
        expect(fresh.push(i, 0, 0, 0, 0, 0, 1)).toBe(true);
        expect(fresh.push(100 + i, 0, 0, 0, 0, 0, 1)).toBe(true);
        expect(take(fresh)).toEqual([i, 100 + i]);
      }
      expect(ring.isOverrun).toBe(false);
    });
  }

  test('gives nothing beyond the claim of a producer that died, and does not wait for it', () => {
    const { ring, words } = completionRing(4, 0);
    ring.push(1, 0, 0, 0, 0, 0, 1);
    // A claim without an entry.
    Atomics.add(words, TAIL, 1);
    expect(ring.push(3, 0, 0, 0, 0, 0, 1)).toBe(true);
    expect(take(ring)).toEqual([1]);
    expect(take(ring)).toEqual([]);
    ring.drop(1);
    expect(ring.push(4, 0, 0, 0, 0, 0, 1)).toBe(true);
    expect(ring.push(5, 0, 0, 0, 0, 0, 1)).toBe(true);
    expect(ring.push(6, 0, 0, 0, 0, 0, 1)).toBe(false);
    expect(ring.isOverrun).toBe(true);
  });

  test('drops the completions of one queue pair', () => {
    const { ring } = completionRing(8, 0);
    for (const [id, qp] of [
      [1, 7],
      [2, 8],
      [3, 7],
      [4, 8],
      [5, 7],
    ]) {
      ring.push(id, 0, 0, 0, 0, 0, qp);
    }
    ring.drop(7);
    expect(take(ring)).toEqual([2, 4]);
    ring.push(6, 0, 0, 0, 0, 0, 7);
    expect(take(ring)).toEqual([6]);
  });

  test('is armed once for each asking, for what was asked for', () => {
    const { ring } = completionRing(4, 0);
    expect(ring.takeArmed(true)).toBe(false);
    ring.arm(2);
    expect(ring.takeArmed(false)).toBe(false);
    expect(ring.takeArmed(true)).toBe(true);
    expect(ring.takeArmed(true)).toBe(false);
    ring.arm(1);
    expect(ring.takeArmed(false)).toBe(true);
  });
});

describe('the receive ring', () => {
  for (const start of [0, -3, 2 ** 31 - 3]) {
    test(`keeps order and contents when its counts begin at ${start}`, () => {
      const buffer = new SharedArrayBuffer(receiveRingBytes(4, 2));
      const words = new Int32Array(buffer);
      words[HEAD] = start;
      words[TAIL] = start;
      const [owner, initiator] = [new ReceiveRing(buffer, 4, 2), new ReceiveRing(buffer, 4, 2)];
      expect(initiator.consume()).toBe(NO_RECEIVE);
      for (let i = 0; i < 20; i++) {
        for (let k = 0; k < 4; k++) {
          owner.addSge(2 ** 32 - 1 - k, 1e15 + i, 2 ** 32 - 1);
          if (k % 2) owner.addSge(k, i, k);
          owner.post(1000 * i + k);
        }
        expect(owner.posted).toBe(owner.capacity);
        for (let k = 0; k < 4; k++) {
          expect(initiator.consume()).toBe(3 - k);
          expect([initiator.wrId, initiator.numSge]).toEqual([1000 * i + k, 1 + (k % 2)]);
          expect([initiator.lkeys[0], initiator.addresses[0], initiator.lengths[0]]).toEqual([
            2 ** 32 - 1 - k,
            1e15 + i,
            2 ** 32 - 1,
          ]);
          if (k % 2) expect([initiator.lkeys[1], initiator.addresses[1], initiator.lengths[1]]).toEqual([k, i, k]);
        }
        expect(initiator.consume()).toBe(NO_RECEIVE);
      }
    });
  }

  test('passes its watermark once', () => {
    const ring = new ReceiveRing(new SharedArrayBuffer(receiveRingBytes(8, 1)), 8, 1);
    for (let i = 0; i < 8; i++) ring.post(i);
    ring.setLimit(6);
    const passed = Array.from({ length: 8 }, () => ring.passedLimit(ring.consume()));
    expect(passed).toEqual([false, false, true, false, false, false, false, false]);
    expect([ring.takeLimitReached(), ring.takeLimitReached()]).toEqual([true, false]);
  });
});

describe('the work request ring', () => {
  test('lays a request out as documented', () => {
    const ring = new WorkRequestRing(3, 2, 40);
    expect([ring.capacity, ring.limit, new WorkRequestRing(9000, 1, 0, 2 ** 31, 0, 16_351).limit]).toEqual([
      4, 4, 16_351,
    ]);
    expect([ring.capacity, ring.slotBytes]).toEqual([4, 128]);
    ring.start();
    ring.rdma(1, 2 ** 53 - 1, 6, 0xfedcba98, 2 ** 52 + 1, 0x89abcdef);
    ring.addSge(0xffffffff, 2 ** 51, 5);
    ring.addSge(2, 3, 2 ** 31 - 5);
    ring.atomic(5, 9, 0, 1, 64, 10, 11, 12, 13);
    ring.complete();
    const view = new DataView(ring.buffer);
    const little = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
    const u32 = (at: number): number => view.getUint32(at, little);
    const f64 = (at: number): number => view.getFloat64(at, little);
    expect([0, 4, 8, 12, 16, 20, 56].map(u32)).toEqual([1, 6, 2, 0, 0x89abcdef, 0xfedcba98, 2 ** 31]);
    expect([f64(24), f64(32)]).toEqual([2 ** 52 + 1, 2 ** 53 - 1]);
    expect([f64(64), u32(72), u32(76)]).toEqual([2 ** 51, 5, 0xffffffff]);
    expect([f64(80), u32(88), u32(92)]).toEqual([3, 2 ** 31 - 5, 2]);
    expect([40, 44, 48, 52].map((at) => u32(128 + at))).toEqual([10, 11, 12, 13]);
    const w = ring.wordsOf(1);
    expect([ring.u32[w + WrField.OPCODE], ring.f64[w / 2 + WrField64.WR_ID]]).toEqual([5, 9]);
  });

  test('goes on when its counts pass 2^31 and 2^32', () => {
    for (const start of [2 ** 31 - 3, -3]) {
      const ring = new WorkRequestRing(4, 1, 0);
      ring.head = ring.tail = ring.next = ring.retired = start | 0;
      for (let i = 0; i < 20; i++) {
        ring.start();
        for (let k = 0; k < 4; k++) ring.send(2, 10 * i + k, 0, 0);
        ring.complete();
        expect(() => {
          ring.start();
          ring.send(2, 0, 0, 0);
        }).toThrow(/full/);
        for (let k = 0; k < 4; k++) {
          expect(ring.f64[ring.wordsOf(ring.head) / 2 + WrField64.WR_ID]).toBe(10 * i + k);
          ring.head = (ring.head + 1) | 0;
          ring.retired = ring.head;
        }
        expect(ring.head).toBe(ring.tail);
      }
    }
  });
});

describe('many threads', () => {
  test('put completions into one ring and take receives from another, each once', async () => {
    const producers = 4;
    const each = IN_GATE ? 4000 : 20_000;
    const capacity = 64;
    const completions = new SharedArrayBuffer(completionRingBytes(capacity));
    const receives = new SharedArrayBuffer(receiveRingBytes(capacity, 1));
    const ring = new CompletionRing(completions, capacity);
    const posted = new ReceiveRing(receives, capacity, 1);
    const workers: Worker[] = Array.from({ length: producers }, (_, i) =>
      startWorker(PROGRAM, { completions, receives, capacity, producer: i + 1, each }),
    );
    const ended = Promise.all(workers.map(workerEnded));
    const isPosted = new Uint8Array(producers * each);
    const counts = new Array<number>(producers).fill(0);
    let next = 0;
    let mixed = 0;
    for (let done = 0; done < producers * each; ) {
      // As many as there is room for completions: a producer that finds none has found a fault.
      while (next < producers * each && next - done < capacity) {
        posted.addSge(next, 8 * next, next % 1000);
        isPosted[next] = 1;
        posted.post(next++);
      }
      let found = 0;
      for (let w = ring.peek(); w >= 0; w = ring.peek(), found++) {
        const producer = ring.qpNum(w) - 1;
        // What the producer took must be what was posted, and it counts its own.
        const id = ring.wrId(w);
        if (isPosted[id]-- !== 1 || ring.byteLen(w) !== id % 1000 || ring.immData(w) !== counts[producer]++) mixed++;
        ring.next();
      }
      ring.release();
      done += found;
      if (found === 0) await new Promise(setImmediate);
    }
    expect(mixed).toBe(0);
    expect(counts).toEqual(new Array(producers).fill(each));
    expect([ring.isOverrun, posted.posted]).toEqual([false, 0]);
    expect(await ended).toEqual(new Array(producers).fill(0));
  });
});
