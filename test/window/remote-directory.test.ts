/**
 * The directory of a dynamic window by requests, with a device that is as unordered as devices may be: it reads the
 * words of a request in any order, and between any two of them the owner's next stores become visible, or none.
 */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import type { RemoteRegion } from '../../src/transfer/requests/regions.ts';
import type { RemoteWord } from '../../src/transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import type { Memory, MemoryRegion } from '../../src/verbs/memory.ts';
import type { Listed } from '../../src/window/attached/attachments.ts';
import { directoryWords, RemoteDirectory } from '../../src/window/attached/remote-directory.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

const OWNER = 0;
const READER = 1;
const SIZE = 2;

/** Registered memory: what its processor has, and what a device finds there. */
interface Piece {
  readonly address: number;
  readonly rkey: number;
  readonly buffer: ArrayBuffer;
  readonly visible: Int32Array;
}

/** Both ranks' memory, and the owner's stores that are not visible yet, oldest first. */
class World {
  readonly random: Random;
  readonly pieces: Piece[] = [];
  readonly pending: (() => void)[] = [];
  /** Those of them that say where the table is. */
  readonly moving = new Set<() => void>();
  readonly words: Piece[];
  readonly directories: RemoteDirectory[];
  /** Stores that become visible between two words of a read, at most; 0: none at all. */
  haste = 0;
  /** Instead of that: at how many words from now on the next stores become visible, one each, in ascending order. */
  schedule: number[] | undefined;

  constructor(seed: number) {
    this.random = new Random(seed, 7);
    this.words = [OWNER, READER].map(() => this.#piece(new ArrayBuffer(8 * directoryWords(SIZE))));
    this.directories = [OWNER, READER].map(
      (rank) =>
        new RemoteDirectory(
          this.#communicator(rank),
          this.#requests(rank),
          new Int32Array(this.words[rank].buffer),
          (target, index) => ({
            rank: target,
            rkey: this.words[target].rkey,
            address: this.words[target].address + 8 * index,
          }),
        ),
    );
  }

  #piece(buffer: ArrayBuffer): Piece {
    const number = this.pieces.length + 1;
    const piece = {
      address: 2 ** 20 * number,
      rkey: 7 * number,
      buffer,
      visible: new Int32Array(buffer.byteLength / 4),
    };
    this.pieces.push(piece);
    return piece;
  }

  #communicator(rank: number): Communicator {
    const context = {
      allocateMemory: (bytes: number) => ({ buffer: new ArrayBuffer(bytes), byteLength: bytes, free: () => {} }),
    };
    const pd = {
      registerMemory: (memory: Memory) => ({ ...this.#piece(memory.buffer as ArrayBuffer), deregister() {} }),
    };
    return {
      rank,
      size: SIZE,
      job: { context, pd },
      members: { findFailure: () => undefined },
    } as unknown as Communicator;
  }

  #requests(self: number): RequestTransfer {
    const requests = {
      remote: {
        read: (
          rank: number,
          at: number,
          local: MemoryRegion,
          place: number,
          bytes: number,
          region: RemoteRegion,
        ): Generator<void, void> => this.#read(self, rank, at, local as MemoryRegion & Piece, place, bytes, region),
        store: ({ rkey, address }: RemoteWord, lo: number): Generator<void, void> =>
          this.#store(self, rkey, address, lo),
      },
      finish(steps: Generator<void, void>): void {
        while (!steps.next().done);
      },
    };
    return requests as unknown as RequestTransfer;
  }

  find(rkey: number, address: number, bytes: number): [Piece, number] {
    const piece = this.pieces.find((candidate) => candidate.rkey === rkey);
    const at = address - (piece?.address ?? 0);
    if (piece === undefined || at < 0 || at + bytes > piece.buffer.byteLength) {
      throw new Error(`the connection is lost: ${bytes} bytes at ${address}, key ${rkey}`);
    }
    return [piece, at];
  }

  *#read(
    self: number,
    _rank: number,
    at: number,
    local: Piece,
    place: number,
    bytes: number,
    { rkey, address }: RemoteRegion,
  ): Generator<void, void> {
    const [source, first] = this.find(rkey, address + at + place, bytes);
    const order = Array.from({ length: bytes / 8 }, (_, i) => i);
    for (let i = order.length - 1; i > 0; i--) {
      const j = this.random.below(i + 1);
      [order[i], order[j]] = [order[j], order[i]];
    }
    const sink = new Int32Array(local.buffer, place, bytes / 4);
    for (const word of order) {
      // What the owner reads back it has written itself.
      if (self === READER) this.#pass();
      const from = first / 4 + 2 * word;
      sink.set(source.visible.subarray(from, from + 2), 2 * word);
    }
    yield;
  }

  /** A write by a device is visible at once to whoever it is for; the owner's, behind all that it has stored. */
  *#store(self: number, rkey: number, address: number, lo: number): Generator<void, void> {
    const [piece, at] = this.find(rkey, address, 8);
    const write = (): void => {
      new Int32Array(piece.buffer)[at / 4] = lo;
      piece.visible[at / 4] = lo;
    };
    if (self === OWNER) this.pending.push(write);
    else write();
    yield;
  }

  /** Between two words of a read. A table that moves goes on moving, since the reader waits for that. */
  #pass(): void {
    if (this.schedule !== undefined) {
      this.schedule = this.schedule.map((words) => words - 1);
      while (this.schedule[0] < 0) {
        this.schedule.shift();
        this.show(1, false);
      }
      return;
    }
    if (this.moving.has(this.pending[0])) this.show(this.random.chance(0.3) ? 1 : 0, false);
    else if (this.haste > 0 && this.random.chance(0.2)) this.show(this.random.between(1, this.haste));
  }

  /** The owner's next stores become visible; those that move its table are few, so they take their time. */
  show(count: number, slow = true): void {
    for (let i = 0; i < count && this.pending.length > 0; i++) {
      if (slow && this.moving.has(this.pending[0]) && this.random.chance(0.8)) return;
      this.pending.shift()!();
    }
  }

  /** Runs what the owner does; its atomic stores become visible later, in their order. */
  record(body: () => void): void {
    const { store, add } = Atomics;
    const note = (array: Int32Array, index: number): void => {
      const piece = this.pieces.find(({ buffer }) => buffer === array.buffer)!;
      const at = array.byteOffset / 4 + index;
      const value = array[index];
      const see = (): void => {
        piece.visible[at] = value;
      };
      this.pending.push(see);
      if (piece === this.words[OWNER] && at > 1) this.moving.add(see);
    };
    Object.assign(Atomics, {
      store: (array: Int32Array, index: number, value: number) => {
        store(array, index, value);
        note(array, index);
      },
      add: (array: Int32Array, index: number, value: number) => {
        add(array, index, value);
        note(array, index);
      },
    });
    try {
      body();
    } finally {
      Object.assign(Atomics, { store, add });
    }
  }
}

/** A region as the test knows it. */
interface Known extends Listed {
  /** Others have been told of it, and not of its end. */
  told: boolean;
}

describe('the directory of a dynamic window by requests', () => {
  test('what stays attached is found and what is gone is not, whatever else is changed meanwhile', () => {
    const seed = seedOfRun();
    let accesses = 0;
    for (let run = 0; run < 6; run++) {
      const world = new World(seed + run);
      const { random } = world;
      const [owner, reader] = world.directories;
      let keys = 1000;
      const removals = [0.6, 0.05][run % 2];
      const places = new Map<number, Known>();
      expect(reader.find(OWNER, 0, 1)).toBeUndefined();
      // Where something was, and is no more.
      const gone = new Set<number>();
      for (let step = 0; step < 150; step++) {
        for (let changes = random.below(8); changes > 0; changes--) {
          // Few places, so that they are used again, and more of them as time goes on: the table grows.
          const address = 1000 * (1 + random.below(10 + 3 * step));
          const there = places.get(address);
          if (there === undefined) {
            gone.delete(address);
            const bytes = 8 * random.between(1, 100);
            const made = { address, bytes, key: ++keys, deviceAddress: 5 * address, told: false };
            places.set(address, made);
            world.record(() => owner.add(made));
            world.pending.push(() => {
              made.told = true;
            });
          } else if (there.told && random.chance(removals)) {
            there.told = false;
            world.record(() => owner.remove(there));
            world.pending.push(() => {
              places.delete(address);
              gone.add(address);
            });
          }
        }
        world.haste = random.pick([0, 0, 1, 3]);
        for (let looks = random.below(6); looks > 0; looks--) {
          const known = [...places.values()];
          const told = random.chance(0.6) ? known.at(-1 - random.below(6)) : known[random.below(known.length)];
          if (told?.told) {
            const found = reader.find(OWNER, told.address + 3, told.address + told.bytes)!;
            expect(found, `seed ${seed + run}, step ${step}: ${told.address}`).toBeDefined();
            expect(found).toMatchObject({ address: told.address, bytes: told.bytes });
            expect(found.region).toEqual({ rkey: told.key, address: 4 * told.address });
            accesses++;
          } else reader.find(OWNER, told?.address ?? 0, (told?.address ?? 0) + 8);
          for (const address of gone.size > 0
            ? random.pick([[random.pick([...gone].slice(-6))], [...gone].slice(-1), []])
            : []) {
            expect(reader.find(OWNER, address, address + 8), `seed ${seed + run}, step ${step}`).toBeUndefined();
          }
          if (random.chance(0.1)) expect(reader.find(OWNER, 900, 908)).toBeUndefined();
        }
        world.show(random.pick([0, 5, 50, 150]));
      }
      expect(places.size).toBeGreaterThan(100);
    }
    expect(accesses).toBeGreaterThan(200);
  });

  test('one change at any moment of a look is known afterwards, and breaks nothing', () => {
    const seed = seedOfRun();
    for (let run = 0; run < 1200; run++) {
      const world = new World(seed + run);
      const { random } = world;
      const [owner, reader] = world.directories;
      const kind = random.pick(['add', 'remove', 'replace', 'grow']);
      const listed = (address: number, key: number): Listed => {
        return { address, bytes: 8 * random.between(1, 9), key, deviceAddress: 5 * address };
      };
      expect(reader.find(OWNER, 8, 16)).toBeUndefined();
      const before = Array.from({ length: kind === 'grow' ? 100 : 20 }, (_, i) => listed(1000 * (i + 1), 3 + i));
      world.record(() => {
        for (const region of before) owner.add(region);
      });
      world.show(world.pending.length, false);
      const old = random.pick(before);
      if (random.chance(0.5)) expect(reader.find(OWNER, old.address, old.address + 1)).toBeDefined();
      const made = listed(kind === 'add' || kind === 'grow' ? 500_000 : old.address, 777);
      world.record(() => {
        if (kind === 'remove' || kind === 'replace') owner.remove(old);
        if (kind !== 'remove') owner.add(made);
      });
      // The stores at the end of a move are those that matter: most others have been seen.
      if (kind === 'grow') world.show(world.pending.length - random.between(8, 30), false);
      // A look reads some 610 words.
      const [from, to] = [random.below(600), random.below(600)].sort((a, b) => a - b);
      const spread = random.pick([
        [from, to],
        [0, random.between(1, 20)],
        [random.between(500, 590), 600],
      ]);
      world.schedule = world.pending.map(() => random.between(spread[0], spread[1])).sort((a, b) => a - b);
      reader.find(OWNER, 8, 16);
      world.schedule = undefined;
      world.show(world.pending.length, false);
      const found = reader.find(OWNER, made.address, made.address + made.bytes);
      const what = `seed ${seed + run}: ${kind}`;
      if (kind === 'remove') expect(found, what).toBeUndefined();
      else {
        expect(found, what).toMatchObject({ address: made.address, bytes: made.bytes });
        expect(found?.region, what).toEqual({ rkey: 777, address: 4 * made.address });
      }
    }
  });
});
