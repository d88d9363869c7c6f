/**
 * The lock schemes under random schedules: processors interrupted between atomic operations, messages and atomics that
 * arrive in any order that connections allow.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DirectGate, DirectLock } from '../../src/sync/lock/direct-lock.ts';
import { CPU, HYBRID_WORDS, HybridGate, NETWORK, setUpHybrid } from '../../src/sync/lock/hybrid-gate.ts';
import { HybridLock } from '../../src/sync/lock/hybrid-lock.ts';
import { type Gate, LockAgent, NO_GATE } from '../../src/sync/lock/lock-agent.ts';
import { MigrationPolicy } from '../../src/sync/lock/lock-migration.ts';
import { type LockCounts, noLocks, type TargetLock } from '../../src/sync/lock/lock-scheme.ts';
import { LockWord } from '../../src/sync/lock/lock-word.ts';
import { OneWordLock } from '../../src/sync/lock/one-word-lock.ts';
import { QueueLock, queueLockWords } from '../../src/sync/lock/queue-lock.ts';
import { RemoteLock } from '../../src/sync/lock/remote-lock.ts';
import { TwoSidedLock } from '../../src/sync/lock/two-sided-lock.ts';
import type { RemoteWord } from '../../src/transfer/requests/remote-access.ts';
import type { Context } from '../../src/verbs/device.ts';
import { REAL_PROCESSOR } from '../../src/verbs/processor.ts';
import type { Operation } from '../../src/wait/operation.ts';
import { randomBelow, SCHEDULES } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { type Actor, interleave } from './preemption.ts';
import { SlowNetwork } from './slow-network.ts';

const SCHEMES = {
  remote: {},
  'remote, overtaking': { overtakingMs: 0.3 },
  'two-sided': {},
  direct: {},
  'hybrid, every request': { migration: 'every-request', mode: CPU },
  'hybrid, threshold 2': { migration: 'threshold:2', mode: NETWORK },
  'hybrid, history': { migration: 'history', mode: CPU },
  'hybrid, never, network': { migration: 'never', mode: NETWORK },
  'hybrid, overtaking, never': { migration: 'never', mode: CPU, overtakingMs: 0.3 },
  'hybrid, overtaking, every request': { migration: 'every-request', mode: CPU, overtakingMs: 0.3 },
  'hybrid, one word, never': { migration: 'never', mode: CPU, Lock: OneWordLock },
  'hybrid, one word, every request': { migration: 'every-request', mode: CPU, Lock: OneWordLock },
  'hybrid, one word, threshold 2': { migration: 'threshold:2', mode: NETWORK, Lock: OneWordLock },
} as const;
type SchemeName = keyof typeof SCHEMES;

/**
 * Steps of all ranks and of the network together, after which somebody is taken to wait for ever: some hundred times
 * what it takes.
 */
const PATIENCE = 400_000;

/** Who is in the critical sections, seen by nobody but the test. */
class Sections {
  readonly #holders: Map<number, boolean>[];

  constructor(size: number) {
    this.#holders = Array.from({ length: size }, () => new Map<number, boolean>());
  }

  enter(rank: number, target: number, exclusive: boolean): void {
    const holders = this.#holders[target];
    for (const [other, alone] of holders) {
      if (exclusive || alone) throw new Error(`rank ${rank} has met rank ${other} under the lock of rank ${target}`);
    }
    holders.set(rank, exclusive);
  }

  leave(rank: number, target: number): void {
    this.#holders[target].delete(rank);
  }
}

/**
 * A rank that locks, stays for a while, unlocks; that sometimes only tries, or gives up; and that serves others all the
 * while.
 */
class Rank implements Actor {
  left: number;
  readonly rank: number;
  readonly agent: LockAgent | undefined;
  readonly #locks: readonly TargetLock[];
  readonly #world: World;
  #doing: 'nothing' | 'waiting' | 'inside' = 'nothing';
  #operation: Operation | undefined;
  #attempt = false;
  #target = 0;
  #exclusive = false;
  #stay = 0;

  constructor(rank: number, rounds: number, locks: readonly TargetLock[], agent: LockAgent | undefined, world: World) {
    this.rank = rank;
    this.left = rounds;
    this.agent = agent;
    this.#locks = locks;
    this.#world = world;
  }

  ready(): boolean {
    return !this.#world.settled();
  }

  step(): void {
    this.#world.count();
    const { below } = this.#world;
    // A rank that computes serves nobody for a while.
    if (below(3) === 0) this.agent?.advance();
    if (this.#doing === 'nothing') this.#begin();
    else if (this.#doing === 'waiting') this.#wait();
    else if (this.#stay-- <= 0) this.#end();
  }

  get idle(): boolean {
    return this.left === 0 && this.#doing === 'nothing';
  }

  #begin(): void {
    if (this.left === 0) return;
    const { below, targets } = this.#world;
    this.#target = below(targets);
    this.#exclusive = below(3) > 0;
    const lock = this.#locks[this.#target];
    if (lock.tryAcquire(this.#exclusive)) {
      this.#enter();
      return;
    }
    this.#attempt = !this.#exclusive && lock.attempt !== undefined && below(4) === 0;
    this.#operation = this.#attempt ? lock.attempt!(false) : lock.acquire(this.#exclusive);
    this.#doing = 'waiting';
  }

  #wait(): void {
    const operation = this.#operation!;
    if (operation.advance()) {
      if (this.#attempt && (operation as unknown as { acquired: boolean }).acquired !== true) this.#doing = 'nothing';
      else this.#enter();
      return;
    }
    if (this.#world.below(25) !== 0) return;
    operation.abandon?.();
    this.#doing = 'nothing';
  }

  #enter(): void {
    this.#world.sections.enter(this.rank, this.#target, this.#exclusive);
    this.#doing = 'inside';
    this.#stay = this.#world.below(4);
  }

  #end(): void {
    this.#world.sections.leave(this.rank, this.#target);
    this.#locks[this.#target].release(this.#exclusive);
    this.#doing = 'nothing';
    this.left--;
  }
}

/** Ranks, their locks, and the network between them. */
class World {
  readonly ranks: Rank[] = [];
  readonly counts: LockCounts[] = [];
  readonly sections: Sections;
  readonly below: (n: number) => number;
  readonly targets: number;
  readonly network: SlowNetwork;
  readonly #check: (target: number) => void;
  readonly #stepMs: number;
  #steps = 0;

  /** @param stepMs how long a step takes: of long ones, few pass between two tries of who finds a lock taken */
  constructor(
    scheme: SchemeName,
    size: number,
    nodeSize: number,
    rounds: number,
    below: (n: number) => number,
    stepMs = 0.002,
  ) {
    this.below = below;
    this.#stepMs = stepMs;
    this.targets = Math.min(2, size);
    this.sections = new Sections(size);
    const network = new SlowNetwork(size);
    this.network = network;
    const members = Array.from({ length: size }, (_, rank) => rank);
    const context = { wake() {} } as unknown as Context;
    const nodes = members.map(() => new Int32Array(HYBRID_WORDS + queueLockWords(size + 1)));
    const near = (a: number, b: number): boolean => Math.floor(a / nodeSize) === Math.floor(b / nodeSize);
    const {
      migration = 'never',
      mode = CPU,
      Lock = QueueLock,
      overtakingMs = 0,
    } = SCHEMES[scheme] as { migration?: string; mode?: number; Lock?: typeof OneWordLock; overtakingMs?: number };
    const overtaking = { ms: overtakingMs, now: () => network.now };
    const cpuLock = (words: Int32Array, as: number, nodeMembers: number[]): TargetLock =>
      Lock === OneWordLock
        ? new OneWordLock(words, as, nodeMembers, context)
        : new QueueLock(words, as, nodeMembers, context, overtaking);
    const nodeOf = (target: number, as: number) => ({
      words: nodes[target],
      lock: cpuLock(nodes[target].subarray(HYBRID_WORDS), as, [...members, target]),
      processor: REAL_PROCESSOR,
    });
    const hybrid = scheme.startsWith('hybrid');
    for (const words of nodes) if (hybrid) setUpHybrid(words, mode, new MigrationPolicy(migration));
    for (const rank of members)
      network.setWord(rank, 0, hybrid && mode === CPU ? size + 1 : scheme.startsWith('remote') ? 0 : size);
    for (const rank of members) {
      const counts = noLocks();
      this.counts.push(counts);
      const requests = network.requests(rank);
      const now = (): number => network.now;
      const wordOf = (target: number): LockWord =>
        new LockWord(requests, { rank: target, rkey: 0, address: 0 }, size, now, size * rank + target, counts);
      const policy = new MigrationPolicy(migration);
      let gate: Gate = NO_GATE;
      if (scheme === 'direct') gate = new DirectGate(wordOf(rank));
      if (hybrid) gate = new HybridGate(nodeOf(rank, size), wordOf(rank), policy, (o) => near(o, rank), counts);
      const agent = scheme.startsWith('remote')
        ? undefined
        : new LockAgent(
            network.channel(rank),
            gate,
            counts,
            () => {},
            (target) => wordOf(target).give(rank),
            'a window',
          );
      const makeLock = (target: number): TargetLock => {
        if (scheme.startsWith('remote')) {
          const word = (index: number): RemoteWord => ({ rank: target, rkey: 0, address: index });
          return new RemoteLock(requests, rank, target, size, word, now, overtaking);
        }
        if (scheme === 'two-sided') return new TwoSidedLock(agent!, target, target === rank, false);
        if (scheme === 'direct') return new DirectLock(agent!, wordOf(target), rank, target);
        const node = near(rank, target) ? nodeOf(target, rank) : undefined;
        return new HybridLock(agent!, wordOf(target), rank, target, node, policy.migrates);
      };
      this.ranks.push(new Rank(rank, rounds, members.map(makeLock), agent, this));
    }
    this.#check = (target) => {
      const word = network.word(target, 0);
      if (hybrid) {
        const modeNow = nodes[target][0];
        expect([modeNow, word]).toEqual(modeNow === CPU ? [CPU, size + 1] : [NETWORK, size]);
        expect(nodes[target][HYBRID_WORDS] & ~(3 << 28), 'the CPU lock is free').toBe(0);
      } else if (scheme === 'direct') expect(word).toBe(size);
      else if (scheme.startsWith('remote')) expect(word & ~(1 << 29)).toBe(0);
    };
  }

  /** Whether all have come to their end, and what they have sent, too. */
  settled(): boolean {
    return this.ranks.every(({ idle }) => idle) && !this.network.busy;
  }

  count(): void {
    this.network.now += this.#stepMs;
    if (++this.#steps > PATIENCE) {
      throw new Error(`ranks wait for ever: rounds left ${this.ranks.map(({ left }) => left)}`);
    }
  }

  run(odds: number): void {
    const { network, below } = this;
    const wires: Actor = { ready: () => network.busy, step: () => network.deliver(below) };
    interleave([...this.ranks, wires, wires], below, odds);
  }

  /** All locks are free when nobody wants them: an exclusive one can be had. */
  checkFree(): void {
    for (let n = 0; n < 2000; n++) {
      for (const { agent } of this.ranks) agent?.advance();
      while (this.network.busy) this.network.deliver(this.below);
      this.network.now += 1;
    }
    for (let target = 0; target < this.targets; target++) this.#check(target);
  }
}

describe('locks under random schedules', () => {
  for (const scheme of Object.keys(SCHEMES) as SchemeName[]) {
    test(`${scheme}: nobody meets an exclusive holder, everybody comes to an end, and nothing stays behind`, () => {
      const property = fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 3, max: 30 }),
        fc.constantFrom(0.002, 0.02, 0.2),
        fc.integer(),
        (size, nodeSize, odds, stepMs, seed) => {
          const world = new World(scheme, size, nodeSize, 12, randomBelow(seed), stepMs);
          world.run(odds);
          expect(world.ranks.map(({ left }) => left)).toEqual(new Array(size).fill(0));
          world.checkFree();
        },
      );
      fc.assert(property, { numRuns: SCHEDULES, seed: seedOfRun() });
    });
  }

  test('remote: who came while the head of the line was alone is not overtaken by those that come later', () => {
    const network = new SlowNetwork(4);
    const word = (index: number): RemoteWord => ({ rank: 0, rkey: 0, address: index });
    const locks = [0, 1, 2, 3].map(
      (rank) => new RemoteLock(network.requests(rank), rank, 0, 4, word, () => network.now),
    );
    const step = (operation: Operation, steps: number): boolean => {
      for (let i = 0; i < steps; i++) {
        if (operation.advance()) return true;
        while (network.busy) network.deliver(() => 0);
        network.now += 0.1;
      }
      return false;
    };
    expect(step(locks[0].acquire(true), 100)).toBe(true);
    const head = locks[1].acquire(true);
    expect(step(head, 100)).toBe(false);
    const next = locks[2].acquire(true);
    expect(step(next, 100)).toBe(false);
    locks[0].release(true);
    expect(step(head, 100)).toBe(true);
    locks[1].release(true);
    // It finds the lock free, and does not get it before the one in line.
    const late = locks[3].acquire(true);
    expect(step(late, 10)).toBe(false);
    expect(step(next, 100)).toBe(true);
    locks[2].release(true);
    expect(step(late, 100)).toBe(true);
  });

  for (const scheme of ['direct', 'hybrid']) {
    test(`${scheme}: who takes the lock again at once steps aside for those who wait, and else pays nothing`, () => {
      const size = 2;
      const network = new SlowNetwork(size);
      network.setWord(0, 0, size);
      const words = new Int32Array(HYBRID_WORDS + queueLockWords(size + 1));
      setUpHybrid(words, NETWORK, new MigrationPolicy('never'));
      const counts = noLocks();
      const [greedy, patient] = [0, 1].map((rank) => {
        const agent = new LockAgent(
          network.channel(rank),
          NO_GATE,
          noLocks(),
          () => {},
          () => {},
          'a window',
        );
        const word = new LockWord(
          network.requests(rank),
          { rank: 0, rkey: 0, address: 0 },
          size,
          () => network.now,
          rank,
          rank === 0 ? counts : noLocks(),
        );
        return scheme === 'direct'
          ? new DirectLock(agent, word, rank, 0)
          : new HybridLock(agent, word, rank, 0, undefined, false);
      });
      const deliverAll = (rank: number): void => {
        while (network.deliverFirst((connection) => connection.includes(` ${rank} 0`)));
      };
      /**
       * Rank 0 has the lock for 0.1 ms, again and again: what it asks for arrives together, so that nobody comes in
       * between.
       */
      const goOn = (rounds: number, meanwhile = (): boolean => false): boolean => {
        for (let round = 0; round < rounds; round++) {
          const operation = greedy.acquire(true);
          for (;;) {
            if (operation.advance()) break;
            deliverAll(0);
            if (operation.advance()) break;
            network.now += 0.01;
            if (meanwhile()) return true;
          }
          for (let i = 0; i < 10; i++) {
            network.now += 0.01;
            if (meanwhile()) throw new Error('two have the lock');
          }
          greedy.release(true);
        }
        return false;
      };
      goOn(1000);
      expect(counts.atomics).toBe(2000);

      const operation = patient.acquire(true);
      const start = network.now;
      const hasIt = goOn(1000, () => {
        if (operation.advance()) return true;
        deliverAll(1);
        return operation.advance();
      });
      expect(hasIt).toBe(true);
      expect(network.now - start).toBeLessThan(13);
      patient.release(true);
      deliverAll(0);
      deliverAll(1);
      expect(network.word(0, 0)).toBe(size);

      // Who waits no more costs one step aside at most.
      goOn(1);
      const waiting = patient.acquire(true);
      const hasItSoon = goOn(40, () => {
        const done = waiting.advance();
        deliverAll(1);
        return done;
      });
      expect(hasItSoon).toBe(false);
      waiting.abandon!();
      deliverAll(1);
      const before = network.now;
      counts.atomics = 0;
      goOn(1000);
      const took = network.now - before;
      expect(took).toBeGreaterThan(101);
      expect(took).toBeLessThan(103);
      expect(counts.atomics).toBeLessThan(2010);
    });
  }

  test('a hybrid lock changes its mode as its policy says', () => {
    const migrations = (scheme: SchemeName): number => {
      let sum = 0;
      for (let seed = 1; seed <= 10; seed++) {
        const world = new World(scheme, 4, 2, 20, randomBelow(seed));
        world.run(1000);
        for (const counts of world.counts) sum += counts.migrations;
      }
      return sum;
    };
    const eager = migrations('hybrid, every request');
    const patient = migrations('hybrid, threshold 2');
    const learning = migrations('hybrid, history');
    expect(migrations('hybrid, never, network')).toBe(0);
    expect(learning).toBeGreaterThan(0);
    expect(patient).toBeGreaterThan(learning);
    expect(eager).toBeGreaterThan(patient);
  });
});
