/** One process that sends and receives datagrams: what it takes in, when it asks, and what it answers. */
import { describe, expect, test } from 'vitest';
import type { Chunk } from '../../src/bsp/chunks.ts';
import type { Buffer, CarrierUser } from '../../src/bsp/delivery/carrier-user.ts';
import { DatagramCarrier } from '../../src/bsp/delivery/datagram-carrier.ts';
import { type DatagramPort, HEAD_BYTES, HEAD_WORDS, type Take } from '../../src/bsp/delivery/datagram-port.ts';
import { KeptChunks } from '../../src/bsp/delivery/kept-chunks.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

const COMPUTATION = 99;
const SIZE = 4;
const MOST = 200;
const NACK_AFTER = 1000;

/** A datagram that has left. */
interface Left {
  readonly pid: number;
  readonly at: number;
  readonly words: Int32Array;
}

/** Process 0 of four, on a network that only writes down what leaves. The queue pair of process p is 100 + p. */
class Desk {
  time = 0;
  readonly sent: Left[] = [];
  readonly arrived: { pid: number; bytes: number[] }[] = [];
  readonly carrier: DatagramCarrier;
  /** Datagrams that stay at the adapter. */
  stuck = Number.POSITIVE_INFINITY;
  readonly #port: { given: number; left: number; computation: number };
  readonly #coming: { from: number; bytes: Uint8Array }[] = [];
  /** Receives that are not free. */
  lent = 0;
  readonly #lentBuffers: Buffer[] = [];

  constructor(keeps = false) {
    const head = new Int32Array(MOST / 4);
    const port = {
      ...{ computation: COMPUTATION, given: 0, left: 0, head, isReady: true, most: MOST, entries: 3, buffers: 8 },
      expect: () => {},
      isOf: (qp: number, pid: number) => qp === 100 + pid,
      send: (pid: number, words: number) => {
        this.sent.push({ pid, at: this.time, words: head.slice(0, words) });
        port.given++;
        if (port.given < this.stuck) port.left++;
      },
      poll: (take: Take) => {
        for (const [slot, { from, bytes }] of this.#coming.splice(0).entries()) {
          const memory = new ArrayBuffer(8 + MOST);
          new Uint8Array(memory).set(bytes);
          const data = {
            i32: new Int32Array(memory, HEAD_BYTES, (MOST - HEAD_BYTES) / 4),
            ...{ u8: new Uint8Array(memory, HEAD_BYTES, MOST - HEAD_BYTES), slot },
          };
          if (take(from, { head: new Int32Array(memory, 0, HEAD_WORDS), data }, bytes.length)) this.lent++;
        }
      },
      release: () => void this.lent--,
    };
    this.#port = port;
    const job = { processor: { copy: () => {} } };
    const comm = { rank: 0, size: SIZE, now: () => this.time, job } as unknown as Communicator;
    const user: CarrierUser = {
      tell: () => {},
      arrived: (pid, buffer, bytes) => {
        this.arrived.push({ pid, bytes: [...buffer.u8.subarray(0, bytes)] });
        if (keeps) this.#lentBuffers.push(buffer);
        else this.carrier.release(buffer);
      },
    };
    this.carrier = new DatagramCarrier(comm, user, port as unknown as DatagramPort, NACK_AFTER / 1000);
  }

  /** The counts of a superstep are there. */
  expect(from: readonly number[], to: readonly number[] = [0, 0, 0, 0], most = 0, longest = 0, cycle = 0): void {
    const totals = { senders: 0, packets: 0, most, longest };
    this.carrier.expectPackets(Int32Array.from(from), Int32Array.from(to), totals, cycle);
  }

  /** Datagrams of these words come. */
  come(from: number, ...words: number[]): void {
    this.comeBytes(from, new Uint8Array(Int32Array.from(words).buffer));
  }

  comeBytes(from: number, bytes: Uint8Array): void {
    this.#coming.push({ from, bytes });
    this.carrier.poll();
  }

  /** A packet comes as it should: one word, which is its number. */
  packet(pid: number, step: number, index: number, count: number): void {
    this.come(100 + pid, COMPUTATION, step, pid, index, count, index);
  }

  /** Words that have come of a process, in order. */
  of(pid: number): number[] {
    return this.arrived.filter((one) => one.pid === pid).map(({ bytes }) => bytes[0]);
  }

  /** Everything that is left at the adapter leaves it. */
  leave(): void {
    this.#port.left = this.#port.given;
  }

  get asks(): Left[] {
    return this.sent.filter(({ words }) => words[3] < 0);
  }

  /** Lets time pass until then, as a wait does. */
  until(time: number): void {
    for (let looks = 0; ; looks++) {
      if (looks > 10_000) throw new Error('it looks all the time');
      this.carrier.poll();
      const polling = this.carrier.isPolling();
      if (typeof polling !== 'number' || this.time + 1000 * polling > time) break;
      this.time += 1000 * polling;
    }
    this.time = time;
  }
}

const CHUNK: Chunk = { i32: new Int32Array(0), u8: new Uint8Array(0), at: 0, id: 0 };
/** Sends packets to a process, which all have nothing in them. */
function sendTo(desk: Desk, pid: number, packets: number): void {
  for (let i = 0; i < packets; i++) desk.carrier.sendPacket(pid, [{ chunk: CHUNK, from: 0, bytes: 0 }]);
}

/** Numbers of the packets that were sent again since. */
function again(desk: Desk): number[] {
  const before = desk.sent.length;
  while (desk.carrier.owes) desk.carrier.resend();
  return desk.sent.slice(before).map(({ words }) => words[3]);
}

describe('what comes', () => {
  test('in any order, twice, before the counts and after them, is handed over once and in order', () => {
    const random = new Random(seedOfRun());
    for (let round = 0; round < 200; round++) {
      const desk = new Desk(random.below(2) === 0);
      const counts = [0, 1 + random.below(20), random.below(3), 1 + random.below(9)];
      const coming: [number, number][] = [];
      for (const [pid, count] of counts.entries()) {
        for (let i = 0; i < count; i++) coming.splice(random.below(coming.length + 1), 0, [pid, i]);
      }
      const doubled = coming.flatMap((one) => (random.below(4) === 0 ? [one, one] : [one]));
      const known = random.below(doubled.length);
      for (const [i, [pid, index]] of doubled.entries()) {
        if (i === known) desk.expect(counts);
        desk.packet(pid, 0, index, counts[pid]);
      }
      for (const [pid, count] of counts.entries())
        expect(desk.of(pid)).toEqual(Array.from({ length: count }, (_, i) => i));
      expect(desk.carrier.datagrams).toMatchObject({ duplicates: doubled.length - coming.length, strange: 0, late: 0 });
      // A user that keeps everything leaves half of the receives.
      expect(desk.lent).toBeLessThanOrEqual(4);
      desk.until(1e6);
      expect(desk.asks).toEqual([]);
    }
  });

  test('of a superstep that is over is late', () => {
    const desk = new Desk();
    desk.expect([0, 1, 0, 0]);
    desk.packet(1, 0, 0, 1);
    desk.carrier.delivered();
    desk.packet(1, 0, 0, 1);
    desk.expect([0, 1, 0, 0]);
    desk.packet(1, 0, 0, 1);
    desk.packet(1, 1, 0, 1);
    expect(desk.of(1)).toEqual([0, 0]);
    expect(desk.carrier.datagrams).toMatchObject({ late: 2, duplicates: 0, strange: 0 });
  });

  const [C, S, FROM] = [COMPUTATION, 0, 101];
  const LONG = new Array<number>((MOST - HEAD_BYTES) / 4).fill(1);
  test.each([
    ['nothing', FROM, []],
    ['less than a head', FROM, [C, S, 1, 0]],
    ['a head alone', FROM, [C, S, 1, 0, 2]],
    ['of another computation', FROM, [C + 1, S, 1, 0, 2, 7]],
    ['by a queue pair of nobody', 99, [C, S, 1, 0, 2, 7]],
    ['by the queue pair of another process', 102, [C, S, 1, 0, 2, 7]],
    ['of this process itself', 100, [C, S, 0, 0, 2, 7]],
    ['of a process that there is not', 104, [C, S, 4, 0, 2, 7]],
    ['of a process with a number below 0', 99, [C, S, -1, 0, 2, 7]],
    ['of the next superstep', FROM, [C, S + 1, 1, 0, 2, 7]],
    ['of a superstep far ahead', FROM, [C, 2 ** 30, 1, 0, 2, 7]],
    ['of another number of packets', FROM, [C, S, 1, 0, 3, 7]],
    ['of a number of packets below 0', FROM, [C, S, 1, 0, -2, 7]],
    ['beyond the packets', FROM, [C, S, 1, 2, 2, 7]],
    ['of a process that has nothing for this one', 103, [C, S, 3, 0, 1, 7]],
    ['an ask of a process that has got nothing', FROM, [C, S, 1, -1, 2, -1]],
    ['an ask for another number of packets', 102, [C, S, 2, -1, 6, -1]],
    ['an ask beyond the packets', 102, [C, S, 2, -6, 5, -1]],
    ['an ask far beyond them', 102, [C, S, 2, -(2 ** 31), 5, -1]],
  ] as const)('%s: dropped, whether the counts are there or not', (_, from, words) => {
    const desk = new Desk();
    const given = [...words];
    for (const isThere of [false, true]) {
      if (isThere) desk.expect([0, 2, 0, 0], [0, 0, 5, 0]);
      if (isThere) sendTo(desk, 2, 5);
      const sent = desk.sent.length;
      desk.come(from, ...given);
      expect(again(desk)).toEqual([]);
      expect(desk.sent.length).toBe(sent);
      expect(desk.arrived).toEqual([]);
    }
    // Before the counts, some of it may be right.
    expect(desk.carrier.datagrams.strange + desk.carrier.datagrams.late).toBeGreaterThanOrEqual(1);
    expect(desk.lent).toBe(0);
    desk.packet(1, 0, 0, 2);
    desk.packet(1, 0, 1, 2);
    expect(desk.of(1)).toEqual([0, 1]);
  });

  test('an ask that is no whole words, and a packet of all bytes that there are', () => {
    const desk = new Desk();
    desk.expect([0, 1, 0, 0], [0, 0, 5, 0]);
    sendTo(desk, 2, 5);
    desk.comeBytes(102, new Uint8Array(Int32Array.of(C, S, 2, -1, 5, -1).buffer).subarray(0, HEAD_BYTES + 3));
    expect(again(desk)).toEqual([]);
    expect(desk.carrier.datagrams.strange).toBe(1);
    desk.come(101, C, S, 1, 0, 1, ...LONG);
    expect(desk.arrived[0].bytes.length).toBe(4 * LONG.length);
  });

  test('before the counts, no more is kept than some', () => {
    const desk = new Desk();
    for (let i = 0; i < 5000; i++) desk.packet(1, 0, i, 5000);
    desk.expect([0, 5000, 0, 0]);
    expect(desk.of(1).length).toBe(1024);
    for (let i = 1024; i < 5000; i++) desk.packet(1, 0, i, 5000);
    expect(desk.of(1).length).toBe(5000);
  });
});

describe('asking', () => {
  test('when all should have come, then after twice, four times, eight times as long, and so on', () => {
    const desk = new Desk();
    desk.time = 5000;
    desk.expect([0, 2, 0, 0], undefined, 10, 0, 300);
    desk.until(5000 + 60_000);
    // Ten packets of the busiest process, one every 300 µs at least.
    const first = 5000 + 10 * 300 + NACK_AFTER;
    const waits = [0, 2, 6, 14, 22, 30, 38, 46, 54].map((times) => first + times * NACK_AFTER);
    expect(desk.asks.map(({ at }) => at)).toEqual(waits.filter((at) => at <= 65_000));
    expect(desk.asks.map(({ pid, words }) => [pid, ...words])).toEqual(
      desk.asks.map(() => [1, COMPUTATION, 0, 0, -1, 2, 0b11]),
    );
  });

  test('goes by what supersteps took at least, not by what one with losses took', () => {
    const desk = new Desk();
    const times: number[] = [];
    for (const longest of [0, 4000, 90_000, 90_000]) {
      desk.expect([0, 1, 0, 0], undefined, 20, longest);
      const since = desk.time;
      desk.until(since + 30_000);
      times.push(desk.asks.at(-1)!.at > since ? desk.asks.find(({ at }) => at > since)!.at - since : -1);
      desk.packet(1, times.length - 1, 0, 1);
      desk.carrier.delivered();
    }
    // 4000 µs for 20 packets.
    expect(times).toEqual([0, 4000, 4000, 4000].map((all) => all + NACK_AFTER));
  });

  test('waits while something new comes, and begins anew then', () => {
    const desk = new Desk();
    desk.expect([0, 5, 0, 0]);
    for (let i = 0; i < 4; i++) {
      desk.until(desk.time + 0.9 * NACK_AFTER);
      desk.packet(1, 0, i, 5);
    }
    expect(desk.asks).toEqual([]);
    const last = desk.time;
    desk.until(last + 4 * NACK_AFTER);
    expect(desk.asks.map(({ at }) => at)).toEqual([last + NACK_AFTER, last + 3 * NACK_AFTER]);
    expect([...desk.asks[0].words]).toEqual([COMPUTATION, 0, 0, -5, 5, 1]);
    desk.packet(1, 0, 4, 5);
    expect(desk.carrier.isPolling()).toBe(false);
  });

  test('names what is missing, and asks each process by itself', () => {
    const desk = new Desk();
    desk.expect([0, 70, 0, 3]);
    for (let i = 0; i < 70; i++) if (![2, 33, 34, 69].includes(i)) desk.packet(1, 0, i, 70);
    desk.until(5 * NACK_AFTER);
    const to = (pid: number): number[] => [...desk.asks.find((one) => one.pid === pid)!.words.subarray(HEAD_WORDS)];
    // From packet 2 on.
    expect(desk.asks.find((one) => one.pid === 1)!.words[3]).toBe(-3);
    expect(to(1)).toEqual([1 | (1 << 31), 1, 1 << 3]);
    expect(to(3)).toEqual([0b111]);
  });

  test('waits until its own packets have left, without looking all the time, and then asks all', () => {
    const desk = new Desk();
    desk.stuck = 0;
    desk.expect([0, 1, 0, 1], [0, 0, 3, 0]);
    sendTo(desk, 2, 3);
    desk.until(10 * NACK_AFTER);
    expect(desk.asks).toEqual([]);
    expect(desk.carrier.isPolling()).toBe(false);
    desk.leave();
    desk.until(10 * NACK_AFTER);
    // The first ask waits at the adapter when the second one is given to it.
    expect(desk.asks.map(({ pid, at }) => [pid, at])).toEqual([1, 3].map((pid) => [pid, 10 * NACK_AFTER]));
  });
});

describe('answering', () => {
  const ask = (desk: Desk, pid: number, from: number, count: number, ...bits: number[]): void =>
    desk.come(100 + pid, COMPUTATION, 0, pid, -1 - from, count, ...bits);

  test('sends what an ask names, each once, and nothing that there is not', () => {
    const desk = new Desk();
    desk.expect([0, 0, 0, 0], [0, 0, 40, 0]);
    sendTo(desk, 2, 40);
    ask(desk, 2, 0, 40, 0b1001, 0b110);
    ask(desk, 2, 0, 40, 0b1001, 0b110);
    expect(again(desk)).toEqual([0, 3, 33, 34]);
    expect(desk.carrier.datagrams).toMatchObject({ packets: 40, resent: 4, answers: 1 });
    desk.time += NACK_AFTER;
    ask(desk, 2, 30, 40, -1, -1, -1);
    expect(again(desk)).toEqual([30, 31, 32, 33, 34, 35, 36, 37, 38, 39]);
  });

  test('one ask of a process in nackAfter, whatever it asks', () => {
    const desk = new Desk();
    desk.expect([0, 0, 0, 0], [0, 10, 10, 0]);
    sendTo(desk, 1, 10);
    sendTo(desk, 2, 10);
    let resent = 0;
    for (let i = 0; i < 100; i++) {
      desk.time += NACK_AFTER / 10;
      ask(desk, 2, 0, 10, -1);
      resent += again(desk).length;
    }
    expect(resent).toBe(100);
    // Others are answered all the same.
    ask(desk, 1, 0, 10, 1);
    expect(again(desk)).toEqual([0]);
  });

  test('nothing that has not left yet', () => {
    const desk = new Desk();
    desk.expect([0, 0, 0, 0], [0, 0, 8, 0]);
    desk.stuck = 4;
    sendTo(desk, 2, 6);
    // Three have left, three are at the adapter, two were not given to it.
    ask(desk, 2, 0, 8, -1);
    expect(again(desk)).toEqual([0, 1, 2]);
    expect(desk.carrier.isSilent).toBe(false);
    desk.time += NACK_AFTER;
    ask(desk, 2, 0, 8, -1);
    expect(again(desk)).toEqual([]);
    desk.leave();
    expect(desk.carrier.isSilent).toBe(true);
    ask(desk, 2, 0, 8, 0b1000_1000);
    expect(again(desk)).toEqual([3]);
  });

  test('nothing before it has its own counts, or has sent anything: neither is strange, or late', () => {
    const desk = new Desk();
    ask(desk, 2, 0, 4, -1);
    expect(again(desk)).toEqual([]);
    desk.expect([0, 0, 0, 0], [0, 0, 4, 0]);
    ask(desk, 2, 0, 4, -1);
    expect(again(desk)).toEqual([]);
    expect(desk.carrier.datagrams).toMatchObject({ strange: 0, late: 0, answers: 0 });
    sendTo(desk, 2, 4);
    ask(desk, 2, 0, 4, 1);
    expect(again(desk)).toEqual([0]);
  });

  test('until the counts of the next superstep are there, and not for an older one', () => {
    const desk = new Desk();
    desk.expect([0, 0, 0, 0], [0, 0, 2, 0]);
    sendTo(desk, 2, 2);
    desk.carrier.delivered();
    ask(desk, 2, 0, 2, 1);
    expect(again(desk)).toEqual([0]);
    desk.time += NACK_AFTER;
    ask(desk, 2, 1, 2, 1);
    expect(desk.carrier.owes).toBe(true);
    desk.expect([0, 0, 0, 0], [0, 0, 2, 0]);
    expect(desk.carrier.owes).toBe(false);
    sendTo(desk, 2, 2);
    desk.time += NACK_AFTER;
    ask(desk, 2, 0, 2, 1);
    expect(again(desk)).toEqual([]);
    expect(desk.carrier.datagrams).toMatchObject({ late: 1, resent: 1 });
  });
});

test('chunks stay for another superstep', () => {
  const pool = () => {
    const free = { taken: 0, recycled: 0 };
    return Object.assign(free, {
      take: () => ({ ...CHUNK, id: free.taken++ }),
      recycle: () => {
        free.recycled++;
        free.taken = 0;
      },
      bytes: 5,
    });
  };
  const [even, odd] = [pool(), pool()];
  const kept = new KeptChunks(even, odd);
  kept.take();
  kept.take();
  kept.recycle();
  expect([even.taken, odd.taken]).toEqual([2, 0]);
  kept.take();
  expect([even.taken, odd.taken, kept.bytes]).toEqual([2, 1, 10]);
  kept.recycle();
  expect([even.taken, odd.taken]).toEqual([0, 1]);
});
