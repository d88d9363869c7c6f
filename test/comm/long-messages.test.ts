/** Messages that go from memory to memory after a handshake, among ranks of a modelled fabric. */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { RmaError } from '../../src/errors.ts';
import type { Fabric } from '../../src/providers/modelled/fabric-numbers.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';

const NODES = loadFabric('infinihost-64');
/** A space of messages that nothing else has. */
const SPACE = 8;
const EAGER = 1000;
const LENGTHS = [0, 8, 992, 1000, 1008, 8192, 20_000, 16, 100_000, 24, 5000];
const RANKS = 4;

function fabricOf(rendezvousByRead: number, host: Partial<Fabric['host']> = {}): Fabric {
  return { ...NODES, host: { ...NODES.host, eager: EAGER, rendezvousByRead, ...host } };
}

/** What a rank sends to another one, in order. */
function messageOf(source: number, target: number, k: number, lengths = LENGTHS): Uint8Array {
  return Uint8Array.from({ length: lengths[k] }, (_, i) => (31 * source + 17 * target + 7 * k + i) & 0xff);
}

/** All ranks send all lengths to all, at once, and look at what has come. @returns messages that were wrong */
async function exchange(world: Communicator): Promise<number> {
  const channel = world.openChannel(SPACE);
  await world.barrier();
  for (let k = 0; k < LENGTHS.length; k++) {
    for (let target = 0; target < world.size; target++) {
      const message = messageOf(world.rank, target, k);
      if (k % 2 === 0) channel.give(target, message);
      else {
        channel.send(target, message);
        // It was copied.
        message.fill(0);
      }
    }
  }
  let wrong = 0;
  const next = new Array<number>(world.size).fill(0);
  while (next.some((k) => k < LENGTHS.length)) {
    for (let source = 0; source < world.size; source++) {
      for (let message = channel.receive(source); message !== undefined; message = channel.receive(source)) {
        if (Buffer.compare(message, messageOf(source, world.rank, next[source]++)) !== 0) wrong++;
      }
    }
    await world.compute(1);
  }
  await world.barrier();
  return wrong;
}

/**
 * The same of messages that are composed, for listeners that borrow.
 * @param answers who listens sends one for each
 */
async function exchangeComposed(world: Communicator, answers = false): Promise<number> {
  const channel = world.openChannel(SPACE);
  const lengths = [...LENGTHS, 60_000];
  const next = new Array<number>(world.size).fill(0);
  const answered = new Array<number>(world.size).fill(0);
  let wrong = 0;
  channel.listen((source, message) => {
    if (message.byteOffset % 8 !== 0) wrong++;
    if (message.length === 1) answered[source]++;
    else if (Buffer.compare(message, messageOf(source, world.rank, next[source]++, lengths)) !== 0) wrong++;
    else if (answers) channel.send(source, Uint8Array.of(1));
  }, true);
  await world.barrier();
  for (let k = 0; k < lengths.length; k++) {
    for (let target = 0; target < world.size; target++) {
      const message = messageOf(world.rank, target, k, lengths);
      channel.compose(target, message.length, (memory, at) => memory.set(message, at));
    }
  }
  const expected = answers ? lengths.length : 0;
  while (next.some((k) => k < lengths.length) || answered.some((count) => count < expected)) {
    channel.poll();
    await world.compute(1);
  }
  await world.barrier();
  return wrong;
}

/** Counts registrations of a rank's device, from now on. */
function countRegistrations(world: Communicator): { registered: () => number } {
  const { pd } = world.job;
  const register = pd.registerMemory.bind(pd);
  let count = 0;
  pd.registerMemory = (memory, offset, length, access) => {
    count++;
    return register(memory, offset, length, access);
  };
  return { registered: () => count };
}

const run = (main: (world: Communicator) => Promise<number>, options: TaskOptions): Promise<number[]> =>
  runTasks(RANKS, main, options);

/** From now on, a rank's device has room for one registration in `every` of those longer than an eager message. */
function limitRegistrations(world: Communicator, every: number): { refused: number } {
  const { pd } = world.job;
  const register = pd.registerMemory.bind(pd);
  const counts = { refused: 0 };
  let asked = 0;
  pd.registerMemory = (memory, offset, length, access) => {
    if (length > EAGER - 8 && ++asked % every !== 0) {
      counts.refused++;
      throw new RmaError('ERR_VERBS', 'register memory: no room (ENOMEM)');
    }
    return register(memory, offset, length, access);
  };
  return counts;
}

describe.each([
  ['the sender writes', 0],
  ['the receiver reads', 1],
])('long messages, where %s', (_, byRead) => {
  test('arrive as they were sent, in order with short ones', async () => {
    expect(await run(exchange, { fabric: fabricOf(byRead) })).toEqual([0, 0, 0, 0]);
  });

  test('whatever order things happen in, with messages lost and data placed late', async () => {
    for (let seed = 1; seed <= 4; seed++) {
      const faults = { delay: 5, loss: 0.02, placement: 20 };
      const options = { fabric: fabricOf(byRead), order: 'random', faults, seed } as const;
      expect(await run(exchange, options), `seed ${seed}`).toEqual([0, 0, 0, 0]);
    }
  });

  test('go in chunks where a device has no room for them, on either side', async () => {
    const main = async (world: Communicator): Promise<number> => {
      const counts = limitRegistrations(world, 1 + (world.rank % 3));
      const wrong = await exchange(world);
      return wrong === 0 && counts.refused === 0 ? -1 : wrong;
    };
    // Those of one in one are never refused.
    expect(await run(main, { fabric: fabricOf(byRead) })).toEqual([-1, 0, 0, -1]);
  });

  test('are written in place and read where they arrive, in memory that is registered once', async () => {
    const main = async (world: Communicator): Promise<number> => {
      const { registered } = countRegistrations(world);
      const channel = world.openChannel(SPACE);
      const places = new Set<unknown>();
      let right = 0;
      const take = (source: number, message: Uint8Array): void => {
        places.add(message.buffer);
        if (Buffer.compare(message, messageOf(source, world.rank, places.size, [0, 60_000])) === 0) right++;
      };
      channel.listen(take, true);
      const target = (world.rank + 1) % RANKS;
      const message = messageOf(world.rank, target, 1, [0, 60_000]);
      for (let k = 0; k < 20; k++) {
        channel.compose(target, message.length, (memory, at) => memory.set(message, at));
        while (right === k) {
          channel.poll();
          await world.compute(1);
        }
        await world.barrier();
      }
      return registered();
    };
    expect(await run(main, { fabric: fabricOf(byRead) })).toEqual([1, 1, 1, 1]);
  });

  test('are composed and borrowed whatever order things happen in, and where a device has no room', async () => {
    for (let seed = 1; seed <= 4; seed++) {
      const faults = { delay: 5, loss: 0.02, placement: 20 };
      const options = { fabric: fabricOf(byRead), order: 'random', faults, seed } as const;
      const main = (world: Communicator): Promise<number> => {
        if (seed > 2) limitRegistrations(world, 1 + ((world.rank + seed) % 3));
        return exchangeComposed(world, seed % 2 === 0);
      };
      expect(await run(main, options), `seed ${seed}`).toEqual([0, 0, 0, 0]);
    }
  });

  test('are kept if who borrows has gone before they are there', async () => {
    const kept: number[] = [];
    for (let after = 1; after <= 40; after++) {
      const main = async (world: Communicator): Promise<number> => {
        const channel = world.openChannel(SPACE);
        const taken: Uint8Array[] = [];
        const borrow = (): (() => void) => channel.listen((_, message) => void taken.push(message.slice()), true);
        const put = (value: number): void =>
          channel.compose(1, 5000, (memory, at) => memory.fill(value, at, at + 5000));
        const stop = borrow();
        await world.barrier();
        if (world.rank === 0) put(7);
        if (world.rank === 1) {
          await world.compute(after);
          stop();
          while (taken.length === 0) {
            const first = channel.receive(0);
            if (first !== undefined) taken.push(first);
            await world.compute(1);
          }
          if (taken[0].buffer.byteLength === 5000 && !kept.includes(after)) kept.push(after);
          borrow();
        }
        await world.barrier();
        // This one may come to the same memory.
        if (world.rank === 0) put(9);
        while (world.rank === 1 && taken.length < 2) {
          channel.poll();
          await world.compute(1);
        }
        await world.barrier();
        return taken.filter((message, k) => message.some((byte) => byte !== 7 + 2 * k)).length;
      };
      expect(await run(main, { fabric: fabricOf(byRead) }), `after ${after} µs`).toEqual([0, 0, 0, 0]);
    }
    expect(kept.length).toBeGreaterThan(0);
  });

  test('take the time of their bytes once, and no copies', async () => {
    const bytes = 2 ** 20;
    const main = async (world: Communicator): Promise<number> => {
      const channel = world.openChannel(SPACE);
      await world.barrier();
      const began = world.now();
      if (world.rank === 0) channel.give(1, new Uint8Array(bytes));
      if (world.rank === 1) while (channel.receive(0) === undefined) await world.compute(1);
      const took = world.now() - began;
      await world.barrier();
      return took;
    };
    const wire = bytes * NODES.link.outGap;
    const [, long] = await run(main, { fabric: fabricOf(byRead) });
    const [, chunks] = await run(main, { fabric: fabricOf(byRead, { eager: 2 ** 31 }) });
    expect(long).toBeGreaterThan(wire);
    expect(long).toBeLessThan(1.05 * wire);
    expect(chunks).toBeGreaterThan(1.5 * wire);
  });

  test('end with an error everywhere when the other side dies', async () => {
    const main = async (world: Communicator): Promise<number> => {
      const channel = world.openChannel(SPACE);
      await world.barrier();
      if (world.rank === 0) channel.give(1, new Uint8Array(2 ** 22));
      await world.compute(10_000);
      await world.barrier();
      return 0;
    };
    const options = { fabric: fabricOf(byRead), faults: { deaths: [{ rank: 1, time: 600 }] } };
    await expect(run(main, options)).rejects.toThrow(/rank 1/);
  });
});

test.each([2, 4, 7, 16])(
  'finalize does not wait for a long message that nobody has received (%i tasks)',
  async (size) => {
    const main = async (world: Communicator): Promise<number> => {
      if (world.rank === 0) for (let peer = 1; peer < size; peer++) world.send(new Float64Array(125_000), peer);
      await world.finalize();
      return world.rank;
    };
    const ranks = await runTasks(size, main, { fabric: 'infinihost-64', seed: 1 });
    expect(ranks).toEqual(Array.from({ length: size }, (_, rank) => rank));
  },
);
