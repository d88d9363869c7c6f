/** What is made at the same time on communicators that share ranks has spaces of messages of its own. */
import { describe, expect, test } from 'vitest';
import { begin } from '../../src/bsp/begin-computation.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Rank } from '../../src/collective/group.ts';
import { SPACES, Spaces } from '../../src/collective/message-spaces.ts';
import { Op } from '../../src/datatype/op.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';

const FABRIC = loadFabric('infinihost-64');
const RANKS = 4;
/** Rank 0 names what is made of all, rank 1 what is made of the others. */
const OTHERS = 3;

/** Both communicators, in an order that differs from rank to rank. */
async function both<T>(world: Communicator, make: (comm: Communicator) => Promise<T>): Promise<[T, T | undefined]> {
  const others = await world.split(world.rank === 0 ? Rank.UNDEFINED : 0);
  if (others === undefined) return [await make(world), undefined];
  if (world.rank % 2 === 0) return Promise.all([make(world), make(others)]);
  const [ofOthers, ofAll] = await Promise.all([make(others), make(world)]);
  return [ofAll, ofOthers];
}

/** Each sends each other one a number, and receives what it was sent. */
async function sumsIn(comm: Communicator, mark: number): Promise<number[]> {
  const got: number[] = [];
  for (let step = 1; step < comm.size; step++)
    comm.send(Float64Array.of(mark + comm.rank), (comm.rank + step) % comm.size);
  for (let source = 0; source < comm.size; source++) {
    if (source === comm.rank) continue;
    const number = new Float64Array(1);
    await comm.recv(number, source);
    got.push(number[0] - source);
  }
  return got;
}

describe('made at the same time', () => {
  test('communicators: each has its own messages', async () => {
    const results = await runTasks(
      RANKS,
      async (world) => {
        const [ofAll, ofOthers] = await both(world, (comm) => comm.dup());
        const sums = [sumsIn(ofAll, 100)];
        if (ofOthers !== undefined) sums.unshift(sumsIn(ofOthers, 500));
        return Promise.all(sums);
      },
      { fabric: FABRIC },
    );
    const inAll = new Array<number>(RANKS - 1).fill(100);
    const inOthers = new Array<number>(OTHERS - 1).fill(500);
    expect(results).toEqual([[inAll], ...new Array(OTHERS).fill([inOthers, inAll])]);
  });

  test('windows with locks that ranks serve: each has its own', async () => {
    const results = await runTasks(
      RANKS,
      async (world) => {
        const make = (comm: Communicator) => Window.allocate(comm, Int32Array, 1, { info: { lock: 'two-sided' } });
        const windows = (await both(world, make)).filter((window) => window !== undefined);
        await Promise.all(
          windows.map(async (window, i) => {
            for (let round = 0; round < 5; round++) {
              await window.lock(0, Lock.EXCLUSIVE);
              window.accumulate(Int32Array.of(10 ** (4 * i)), 0, 0, Op.SUM);
              await window.unlock(0);
            }
          }),
        );
        await world.barrier();
        const parts = windows.map(({ local }) => local[0]);
        for (const window of windows) await window.free();
        return parts;
      },
      { fabric: FABRIC },
    );
    expect(results).toEqual([[20], [0, 150_000], [0, 0], [0, 0]]);
  });

  test('BSP computations: each has its own', async () => {
    const results = await runTasks(
      RANKS,
      async (world) => {
        const made = await both(world, (comm) => begin(comm, { counts: 'multicast' }));
        const sums: number[] = [];
        for (const bsp of made) {
          if (bsp === undefined) continue;
          const sum = new Float64Array(bsp.nprocs);
          await bsp.pushReg(sum);
          await bsp.sync();
          for (let to = 0; to < bsp.nprocs; to++) bsp.put(to, Float64Array.of(bsp.nprocs), sum, bsp.pid);
          await bsp.sync();
          sums.push(sum.reduce((a, b) => a + b));
          await bsp.end();
        }
        return sums;
      },
      { fabric: FABRIC },
    );
    expect(results).toEqual([[RANKS ** 2], ...new Array(OTHERS).fill([RANKS ** 2, OTHERS ** 2])]);
  });
});

describe('numbers', () => {
  test('no two ranks say the same, and none twice', () => {
    const said = new Set<number>();
    for (let rank = 0; rank < 3; rank++) {
      const spaces = new Spaces(rank, 3);
      for (let i = 0; i < 100; i++) {
        const first = spaces.next();
        for (let space = first; space < first + SPACES; space++) said.add(space);
      }
    }
    expect(said.size).toBe(300 * SPACES);
    expect(Math.min(...said)).toBeGreaterThanOrEqual(2 * SPACES);
  });

  test('the last one fits into a message, and then there are none', () => {
    const most = 2 ** 31 / (1024 * SPACES);
    const spaces = new Spaces(0, 1024, most - 1);
    expect(spaces.next()).toBeLessThan(2 ** 31);
    expect(() => spaces.next()).toThrow(/rank 0 has named 262144 communicators/);
  });
});
