/**
 * The fence schemes on a network where a put is complete at its origin before it is in the target's memory, under
 * random schedules; and the scheme that is wrong there, "wait for local completion, then a barrier" (dissertation,
 * figure 6.3), which these schedules find out.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as collectives from '../../src/collective/collectives.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { MessageBarrier } from '../../src/collective/message-barrier.ts';
import { sideAt } from '../../src/datatype/layout.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { Origins } from '../../src/job/origins.ts';
import { FenceByRequests } from '../../src/sync/fence/fence-by-requests.ts';
import { FENCE_SCHEMES, type FenceSchemeName, fenceNamed } from '../../src/sync/fence/fence-kinds.ts';
import type { FenceScheme } from '../../src/sync/fence/fence-scheme.ts';
import { RemotePart } from '../../src/transfer/loads/remote-part.ts';
import { regionsBy } from '../../src/transfer/requests/regions.ts';
import type { RemoteWord } from '../../src/transfer/requests/remote-access.ts';
import { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import { OperationQueue } from '../../src/transfer/served/operation-queue.ts';
import { OperationServer } from '../../src/transfer/served/operation-server.ts';
import { GeneratorOperation } from '../../src/wait/operation.ts';
import { randomBelow, SCHEDULES } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { LaggingVerbs } from './lagging-verbs.ts';
import { SlowNetwork } from './slow-network.ts';

/** Those that a window can have on such a network. */
const NAMES = FENCE_SCHEMES.filter((name) => fenceNamed(name).moves !== 'immediately');
type Name = FenceSchemeName | 'wrong';

/** Waits for its own requests only, and trusts the barrier. Nobody tells a target what was put to it. */
class WrongFence extends FenceByRequests {
  readonly #barrier: MessageBarrier;

  constructor(comm: Communicator, requests: RequestTransfer, barrier: MessageBarrier) {
    super(comm, requests, 'a window');
    this.#barrier = barrier;
  }

  protected *steps(): Generator<void, void> {
    this.requests.notifications.takeSent();
    yield* this.completeOwn();
    yield* this.passBarrier(this.#barrier);
  }
}

/**
 * Slots that a rank's part has for each source: epochs take them in turn, so that what comes too early or too late is
 * seen.
 */
const SLOTS = 3;

interface Member {
  readonly fence: FenceScheme;
  put(target: number, slot: number, value: number): void;
  readonly part: Int32Array;
}

class World {
  readonly network: SlowNetwork;
  readonly members: Member[];

  constructor(name: Name, size: number) {
    const network = new SlowNetwork(size);
    this.network = network;
    const kind = name === 'wrong' ? undefined : fenceNamed(name);
    const queues = kind?.moves === 'in the fence';
    // Behind a rank's part, its words of the scheme.
    const words = kind?.deviceWords?.(size) ?? 0;
    const wordsAt = 8 * Math.ceil((SLOTS * size) / 2);
    const parts = Array.from({ length: size }, () => {
      return new Int32Array(new ArrayBuffer(wordsAt + 8 * words), 0, SLOTS * size).fill(-1);
    });
    const verbs = new LaggingVerbs(
      network,
      parts.map((part) => new Uint8Array(part.buffer)),
    );
    const transfers = parts.map((_, rank) => {
      const { context, pd } = verbs.open(rank);
      const requests = new RequestTransfer(context, pd, new Origins(context, pd), size, kind?.notifies === true);
      const all = parts.map((__, target) => target);
      requests.connect(
        all,
        all.map((target) => requests.queuePairFor(target)),
        regionsBy((target) => ({ rkey: target, address: 0 })),
      );
      return requests;
    });
    const side = sideAt(TypeCode.INT32, 1, undefined);
    this.members = parts.map((part, rank) => {
      const requests = transfers[rank];
      const channel = network.channel(rank, 'collectives');
      const comm = {
        rank,
        size,
        begin: (steps: Generator<void, void>, call: string) => new GeneratorOperation(steps, call),
        sumForMe: (counts: Int32Array) => collectives.sumForEach(channel, counts),
        *sumForMeOfAll(counts: Int32Array) {
          yield* collectives.allreduce(channel, counts, 0);
          return counts[rank];
        },
      } as unknown as Communicator;
      const barrier = new MessageBarrier(network.channel(rank, 'barrier'));
      const queue = new OperationQueue(size, undefined);
      const make = (): FenceScheme => {
        if (kind === undefined) return new WrongFence(comm, requests, barrier);
        const view = new RemotePart(part.buffer, 0, part.byteLength);
        const server = new OperationServer(
          () => view,
          undefined as never,
          undefined,
          () => {},
        );
        const channels = Array.from({ length: kind.channels ?? 0 }, (_, i) => network.channel(rank, `fence ${i}`));
        const own = new Int32Array(part.buffer, wordsAt, 2 * words);
        const of = (target: number, index: number): RemoteWord => ({
          rank: target,
          rkey: target,
          address: wordsAt + 8 * index,
        });
        return kind.make({
          comm,
          barrier,
          wire: requests,
          queued: { queue, server },
          channels,
          words: { own, of },
          description: 'a window',
        });
      };
      const put = (target: number, slot: number, value: number): void => {
        const at = 4 * (SLOTS * rank + slot);
        const origin = Int32Array.of(value);
        if (queues) queue.put(origin, side, target, at, side);
        else requests.put(new Uint8Array(origin.buffer), side, target, at, side, true);
      };
      return { fence: make(), put, part };
    });
  }

  /**
   * Every rank puts to some ranks in every epoch, and looks at its part when it has closed it.
   * @param choose numbers 0 … n − 1: what happens next
   */
  run(epochs: number, choose: (n: number) => number, asserts: boolean): void {
    const { network, members } = this;
    const puts = (rank: number, epoch: number, target: number): boolean => (rank * 7 + epoch * 3 + target * 5) % 4 < 2;
    const drivers = members.map((member, rank) => this.#program(member, rank, epochs, asserts, puts));
    const left = new Set(drivers);
    for (let steps = 0; left.size > 0; steps++) {
      if (steps > 200_000) throw new Error('ranks wait for ever');
      if (network.busy && choose(3) > 0) {
        network.deliver(choose);
        continue;
      }
      const running = [...left];
      const driver = running[choose(running.length)];
      if (driver.next().done) left.delete(driver);
    }
  }

  *#program(
    { fence, part, put }: Member,
    rank: number,
    epochs: number,
    asserts: boolean,
    puts: (rank: number, epoch: number, target: number) => boolean,
  ): Generator<void, void> {
    const size = this.members.length;
    const fenced = function* (precedes: boolean, succeeds: boolean): Generator<void, void> {
      fence.begin(precedes, succeeds);
      // Begun again, it is the same fence.
      fence.begin(precedes, succeeds);
      while (!fence.advance()) yield;
    };
    const at = (source: number, epoch: number): number => part[SLOTS * source + (epoch % SLOTS)];
    yield* fenced(false, true);
    for (let epoch = 0; epoch < epochs; epoch++) {
      for (let target = 0; target < size; target++) if (puts(rank, epoch, target)) put(target, epoch % SLOTS, epoch);
      yield;
      // Nobody is in the next epoch: this rank has not opened it.
      for (let source = 0; source < size; source++) {
        if (at(source, epoch + 1) > epoch)
          throw new Error(`rank ${source} has put before rank ${rank} opened the epoch`);
      }
      yield* fenced(true, !asserts);
      for (let source = 0; source < size; source++) {
        if (!puts(source, epoch, rank) || at(source, epoch) === epoch) continue;
        throw new Error(`the put of rank ${source} in epoch ${epoch} has not arrived at rank ${rank} after its fence`);
      }
      if (asserts) yield* fenced(false, true);
    }
  }
}

describe('fences where puts are complete before they have arrived', () => {
  for (const name of NAMES) {
    test(`${name}: all puts are there after the fence, and none before the epoch is open, whatever comes first`, () => {
      const property = fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        fc.integer(),
        (size, asserts, seed) => {
          new World(name, size).run(8, randomBelow(seed), asserts);
        },
      );
      fc.assert(property, { numRuns: SCHEDULES, seed: seedOfRun() });
    });
  }

  test('local completion and a barrier are not enough: a put arrives after the barrier is over (figure 6.3)', () => {
    // Rank 0 puts to rank 1. Everything arrives as soon as it can, except that the placement of the put takes longer
    // than the barrier.
    const { network, members } = new World('wrong', 2);
    const [origin, target] = members;
    origin.put(1, 0, 42);
    for (const { fence } of members) fence.begin(true, true);
    const done = [false, false];
    while (done.includes(false)) {
      for (const [rank, { fence }] of members.entries()) done[rank] ||= fence.advance();
      while (network.deliverFirst((connection) => !connection.startsWith('placement')));
    }
    expect(target.part[0], 'both ranks have left the fence, and the put is not there').toBe(-1);
    while (network.deliverFirst(() => true));
    expect(target.part[0], 'it comes later').toBe(42);
  });

  test('the random schedules find that out, too', () => {
    const found = Array.from({ length: 40 }, (_, seed) => seed).filter((seed) => {
      try {
        new World('wrong', 4).run(8, randomBelow(seed), true);
        return false;
      } catch (error) {
        expect((error as Error).message).toMatch(/has not arrived/);
        return true;
      }
    });
    expect(found.length).toBeGreaterThan(0);
  });

  test('what is asserted is skipped', () => {
    const sent = (name: Name, precedes: boolean, succeeds: boolean) => {
      const { network, members } = new World(name, 4);
      for (const { fence } of members) fence.begin(precedes, succeeds);
      let messages = 0;
      const done = new Set<number>();
      while (done.size < 4) {
        for (const [rank, { fence }] of members.entries()) if (fence.advance()) done.add(rank);
        while (network.deliverFirst(() => true)) messages++;
      }
      return messages;
    };
    for (const name of NAMES) {
      const all = sent(name, true, true);
      expect(sent(name, false, false), `${name}: neither half`).toBe(0);
      const closing = sent(name, true, false);
      expect(closing, `${name}: closes only`).toBeGreaterThan(0);
      if (name === 'notify-all') {
        expect([sent(name, false, true), closing]).toEqual([all, all]);
        continue;
      }
      expect(sent(name, false, true), `${name}: opens only`).toBeLessThan(all);
      if (name === 'deferred') {
        expect([sent(name, false, true), closing]).toEqual([0, all]);
      } else expect(closing + sent(name, false, true)).toBe(all);
    }
    // A flag to each of three others, and the completion that the sender sees; against two rounds of messages.
    expect(sent('immediate-naive', false, true)).toBeGreaterThan(sent('immediate-optimized', false, true));
  });
});
