/** Messages between two ranks that are on one thread, of all lengths around the chunks that they are cut into. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Rendezvous } from '../../src/message/message-connections.ts';
import { type MessageMemory, Messenger } from '../../src/message/messenger.ts';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import type { CompletionQueue } from '../../src/verbs/completion-queue.ts';
import type { Context } from '../../src/verbs/device.ts';

const contexts: Context[] = [];

afterEach(() => {
  for (const context of contexts.splice(0)) context.close();
});

/** Two ranks that can talk at once. */
function pair(memory: MessageMemory): readonly [Messenger, Messenger] {
  return ranks(2, memory) as unknown as [Messenger, Messenger];
}

function ranks(
  size: number,
  memory: MessageMemory,
  like = (context: Context): Context => context,
): readonly Messenger[] {
  const published = new Map<string, { qpNumber: number; ready: boolean }>();
  const meet = (rank: number): Rendezvous => ({
    publish: (peer, qpNumber, ready) => void published.set(`${rank}:${peer}`, { qpNumber, ready }),
    lookUp: (peer) => published.get(`${peer}:${rank}`),
    callers: () => Array.from({ length: size }, (_, peer) => peer).filter((peer) => peer !== rank),
    hasLeft: () => false,
  });
  return createLocalFabric(size).map((fabric, rank) => {
    const context = openEmulator(fabric);
    contexts.push(context);
    return new Messenger(like(context), context.allocPd(), rank, size, meet(rank), memory);
  });
}

/** As on a device whose queues give one completion at a look, as if the others came meanwhile. */
function oneByOne(context: Context): Context {
  const capabilities = { ...context.capabilities, loadStore: false };
  const createCq = (cqe: number): CompletionQueue => {
    const cq = context.createCq(cqe);
    const poll = cq.poll.bind(cq);
    return Object.assign(cq, { poll: (most: number) => poll(Math.min(most, 1)) });
  };
  return new Proxy(context, {
    get: (of, key) => {
      if (key === 'capabilities') return capabilities;
      if (key === 'createCq') return createCq;
      const value: unknown = Reflect.get(of, key, of);
      return typeof value === 'function' ? value.bind(of) : value;
    },
  });
}

const CHUNK = 64;

describe('messages', () => {
  const lengths = [0, 1, 39, 40, 41, 47, 48, 55, 56, 57, 96, 104, 105, 1000, 5000];

  // Messages of 4 GiB and more are written as long ones; here others are.
  for (const [words, more] of [
    ['whose length takes 32 bits', {}],
    ['whose length takes 64 bits', { long: 0 }],
    ['of both kinds', { long: 100 }],
    ['in pieces of shared memory', { eager: 40, pieces: { bytes: 128, most: 16 } }],
    ['in few pieces of shared memory', { eager: 90, pieces: { bytes: 256, most: 16 } }],
    ['for which there are no pieces', { eager: 40, pieces: { bytes: 128, most: 0 } }],
    ['of both kinds, for which there are no pieces', { long: 100, eager: 40, pieces: { bytes: 128, most: 0 } }],
  ] as const) {
    test(`${words} arrive as they were sent, in order`, () => {
      const [a, b] = pair({ chunk: CHUNK, receives: 4, sends: 2, ...more });
      for (const head of [new Uint8Array(0), Uint8Array.from({ length: 16 }, (_, i) => 200 + i)]) {
        for (const length of lengths)
          a.send(
            1,
            7,
            Uint8Array.from({ length }, (_, i) => i + length),
            head,
          );
        const arrived: Uint8Array[] = [];
        while (arrived.length < lengths.length) {
          a.poll();
          b.poll();
          for (let next = b.receive(0, 7); next !== undefined; next = b.receive(0, 7)) arrived.push(next);
        }
        expect(arrived).toEqual(
          lengths.map((length) => Uint8Array.from([...head, ...Uint8Array.from({ length }, (_, i) => i + length)])),
        );
        while (!a.drained) a.poll();
        expect(a.idle).toBe(true);
      }
    });
  }
});

/** Rounds of polls between the two: in some, the first has sent all of its pieces, and has more to send. */
test.each(Array.from({ length: 24 }, (_, rounds) => rounds))(
  'a message sent behind one that waits for pieces does not take them all (%i rounds)',
  (rounds) => {
    const [a, b] = pair({ chunk: 96, receives: 4, sends: 2, eager: 40, pieces: { bytes: 128, most: 16 } });
    const sent = [2100, 5000, 2049].map((length) => Uint8Array.from({ length }, (_, i) => i + length));
    const came: Uint8Array[] = [];
    const round = (): void => {
      a.poll();
      b.poll();
      for (let next = b.receive(0, 7); next !== undefined; next = b.receive(0, 7)) came.push(next);
    };
    for (const message of sent) {
      a.send(1, 7, message);
      for (let i = 0; i < rounds; i++) round();
    }
    for (let look = 0; look < 1000 && came.length < sent.length; look++) round();
    expect(came).toEqual(sent);
  },
);

test('a rank that computes and holds all pieces holds up no message to another one', () => {
  const memory = { chunk: 96, receives: 4, sends: 2, eager: 40, pieces: { bytes: 128, most: 16 } };
  const [a, computes, c] = ranks(3, memory);
  const message = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i + length);
  a.send(1, 7, message(3000));
  a.send(2, 7, message(5000));
  a.send(2, 7, message(300));
  const came: Uint8Array[] = [];
  for (let look = 0; look < 1000 && came.length < 2; look++) {
    a.poll();
    c.poll();
    for (let next = c.receive(0, 7); next !== undefined; next = c.receive(0, 7)) came.push(next);
  }
  expect(came).toEqual([message(5000), message(300)]);
  for (let look = 0; look < 1000; look++) for (const it of [a, computes]) it.poll();
  expect(computes.receive(0, 7)).toEqual(message(3000));
  expect(a.drained).toBe(true);
});

test('all parts of a message leave while it is sent, though a rank has fewer sends than parts', () => {
  const [a, b] = pair({ chunk: 96, receives: 40, sends: 2, eager: 40, pieces: { bytes: 128, most: 32 } });
  const message = Uint8Array.from({ length: 30 * 128 }, (_, i) => i);
  a.send(1, 7, Uint8Array.of(1));
  const came = (): Uint8Array | undefined => b.receive(0, 7);
  while (came() === undefined) for (const it of [a, b]) it.poll();
  // What has come here meanwhile waits for the next poll, in its order.
  b.send(0, 7, Uint8Array.of(2));
  b.send(0, 7, Uint8Array.of(3));
  const told: number[] = [];
  a.listen(7, (_, [first]) => void told.push(first));
  a.send(1, 7, message);
  expect(told).toEqual([]);
  for (let look = 0; look < 10; look++) b.poll();
  expect(came()).toEqual(message);
  a.poll();
  expect(told).toEqual([2, 3]);
});

test('all that has come from a rank is taken before the connection with it ends', () => {
  const [a, b] = ranks(2, { chunk: CHUNK, receives: 16, sends: 8 }, oneByOne);
  const came = (): number[] => {
    const all: number[] = [];
    for (let next = b.receive(0, 7); next !== undefined; next = b.receive(0, 7)) all.push(next[0]);
    return all;
  };
  a.send(1, 7, Uint8Array.of(0));
  while (came().length === 0) for (const it of [a, b]) it.poll();
  for (let i = 1; i <= 5; i++) a.send(1, 7, Uint8Array.of(i));
  for (let look = 0; look < 20; look++) a.poll();
  b.poll();
  expect(came()).toEqual([1]);
  b.forget(0);
  b.poll();
  expect(came()).toEqual([2, 3, 4, 5]);
});

test('a listener that throws keeps nobody from what has come with its message', () => {
  const [a, b] = pair({ chunk: CHUNK, receives: 4, sends: 4 });
  let fails = true;
  const told: number[] = [];
  b.listen(8, (_, message) => {
    if (fails) throw new RangeError('no room');
    told.push(message[0]);
  });
  a.send(1, 9, Uint8Array.of(0));
  while (b.receive(0, 9) === undefined) for (const it of [a, b]) it.poll();
  // All of them are there when b looks, and more than it has receives for come after.
  a.send(1, 8, Uint8Array.of(1));
  a.send(1, 9, Uint8Array.of(2));
  a.send(1, 8, Uint8Array.of(3));
  for (let look = 0; look < 20; look++) a.poll();
  expect(() => b.poll()).toThrow('no room');
  expect(b.receive(0, 9)).toEqual(Uint8Array.of(2));
  fails = false;
  for (let i = 0; i < 20; i++) a.send(1, 8, Uint8Array.of(10 + i));
  while (told.length < 20 || !a.drained) for (const it of [a, b]) it.poll();
  expect(told).toEqual(Array.from({ length: 20 }, (_, i) => 10 + i));
});

describe('messages that are composed, for who borrows them', () => {
  const bytesOf = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i * 3 + length);
  /** What is given to a listener of `b`: copies, since the memory is used again; and where it lay. */
  const taken = (b: Messenger, borrows: boolean): { readonly all: Uint8Array[]; readonly buffers: Set<unknown> } => {
    const found = { all: [] as Uint8Array[], buffers: new Set<unknown>() };
    const take = (_: number, message: Uint8Array): void => {
      expect(message.byteOffset % 8).toBe(0);
      found.buffers.add(message.buffer);
      found.all.push(message.slice());
    };
    b.listen(7, take, borrows);
    return found;
  };

  test.each([true, false])('arrive as they were written, among others, in order (borrowed: %s)', (borrows) => {
    const [a, b] = pair({ chunk: CHUNK, receives: 4, sends: 2 });
    const { all, buffers } = taken(b, borrows);
    const lengths = [0, 1, 8, 56, 57, 200, 40, 3, 3, 3, 3, 3, 56];
    for (const [i, length] of lengths.entries()) {
      if (i % 3 === 2) a.send(1, 7, bytesOf(length));
      else a.compose(1, 7, length, (memory, at) => memory.set(bytesOf(length), at));
      // Some find their connection ready and the others a backlog.
      if (i % 4 === 3) for (let look = 0; look < 20; look++) for (const it of [a, b]) it.poll();
    }
    while (all.length < lengths.length) for (const it of [a, b]) it.poll();
    expect(all).toEqual(lengths.map(bytesOf));
    while (!a.drained) for (const it of [a, b]) it.poll();
    // What is borrowed lies where it came in, unless it came in several chunks.
    const several = lengths.filter((length) => length > CHUNK - 8).length;
    expect(buffers.size).toBe(borrows ? several + 1 : lengths.length);
  });

  test('leave nothing behind if they cannot be written', () => {
    const [a, b] = pair({ chunk: CHUNK, receives: 4, sends: 2 });
    const { all } = taken(b, true);
    a.send(1, 7, bytesOf(4));
    while (all.length < 1 || !a.drained) for (const it of [a, b]) it.poll();
    const fail = (): never => {
      throw new RangeError('no such bytes');
    };
    for (let i = 0; i < 5; i++) expect(() => a.compose(1, 7, 8, fail)).toThrow('no such bytes');
    expect(a.drained).toBe(true);
    a.compose(1, 7, 8, (memory, at) => memory.set(bytesOf(8), at));
    while (all.length < 2) for (const it of [a, b]) it.poll();
    expect(all).toEqual([bytesOf(4), bytesOf(8)]);
  });
});
