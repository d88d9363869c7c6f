/**
 * The directory of a dynamic window in shared memory, with an owner and a reader in one thread: at any load of the
 * reader the owner may change all that it likes, and at any store of the owner the reader may look.
 */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import type { Block } from '../../src/message/word-blocks.ts';
import type { Stripes } from '../../src/transfer/loads/stripes.ts';
import type { Listed } from '../../src/window/attached/attachments.ts';
import { DIRECTORY_WORDS, SharedDirectory } from '../../src/window/attached/shared-directory.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

const OWNER = 0;
const READER = 1;
const HEAD = 1;
const load = Atomics.load;

class World {
  readonly random: Random;
  readonly words = [OWNER, READER].map(() => new Int32Array(new SharedArrayBuffer(4 * DIRECTORY_WORDS)));
  readonly owner: SharedDirectory;
  readonly reader: SharedDirectory;
  readonly #tables: Int32Array[] = [];
  blocks = 0;
  mapped = 0;
  readonly attached = new Map<number, Listed>();
  /** How likely a change is a detach. */
  fewer = 0.3;
  #key = 0;

  constructor(seed: number) {
    this.random = new Random(seed, 11);
    const [owner, reader] = [OWNER, READER].map(
      (rank) =>
        new SharedDirectory(
          this.#communicator(rank),
          (of) => this.words[of],
          () => undefined as unknown as Stripes,
        ),
    );
    this.owner = owner;
    this.reader = reader;
  }

  #communicator(rank: number): Communicator {
    const blocks = {
      allocate: (words: number) => {
        this.blocks++;
        const number = this.#tables.push(new Int32Array(new SharedArrayBuffer(4 * words)));
        return { words: this.#tables[number - 1], place: [number, 2 ** 40, 7, 0.5], free: () => this.blocks-- };
      },
      map: (member: number, place: number[], words: number) => {
        expect([member, ...place.slice(1)]).toEqual([OWNER, 2 ** 40, 7, 0.5]);
        const table = this.#tables[place[0] - 1];
        expect(table.length).toBe(words);
        return table;
      },
    };
    const remotePointer = (_lid: number, key: number, address: number, bytes: number): object => {
      const own = this.attached.get(key);
      expect([own?.deviceAddress, own?.bytes]).toEqual([address, bytes]);
      this.mapped++;
      return { buffer: new ArrayBuffer(bytes), offset: 0, release: () => this.mapped-- };
    };
    const job = { blocks, context: { remotePointer } };
    const members = { findFailure: () => undefined };
    const giveBack = (block: Block): void => block.free();
    const group = { worldRanks: [OWNER, READER] };
    return { rank, size: 2, group, job, members, giveBack } as unknown as Communicator;
  }

  /** Regions of 16 bytes, `place` × 24 apart; each of another key. */
  attach(place: number): Listed {
    const key = ++this.#key;
    const own = { address: 1_000_000 + 24 * place, bytes: 16, key, deviceAddress: 2 ** 45 + 64 * key };
    this.attached.set(key, own);
    this.owner.add(own);
    return own;
  }

  detach(own: Listed): void {
    this.attached.delete(own.key);
    this.owner.remove(own);
  }

  /** The reader finds all of a region, and nothing beside it. Plain comparisons: there are very many. */
  finds({ address, bytes }: Listed): void {
    const found = this.reader.find(OWNER, address + 3, address + 16);
    const beside = [
      [address, address + 17],
      [address - 1, address + 1],
    ].some(([low, high]) => this.reader.find(OWNER, low, high) !== undefined);
    if (found?.address !== address || found.bytes !== bytes || beside) {
      throw new Error(`${bytes} bytes at ${address}: found ${found?.bytes} at ${found?.address}, beside: ${beside}`);
    }
  }

  misses(address: number): void {
    if (this.reader.find(OWNER, address, address + 1) !== undefined) throw new Error(`${address} is found`);
  }

  /** One change of what comes and goes: `gone` are the places without a region. */
  change(passing: Listed[], gone: number[]): void {
    const { random } = this;
    if (passing.length > 0 && (gone.length === 0 || random.chance(this.fewer))) {
      const [old] = passing.splice(random.below(passing.length), 1);
      this.detach(old);
      gone.push((old.address - 1_000_000) / 24);
    } else if (gone.length > 0) passing.push(this.attach(gone.splice(random.below(gone.length), 1)[0]));
  }
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a directory in shared memory', () => {
  test('finds thousands of regions, in whatever order they come and go', () => {
    const world = new World(seedOfRun());
    const places = Array.from({ length: 3000 }, (_, i) => (i * 1009) % 3000);
    const all = places.map((place) => world.attach(place));
    expect(world.blocks).toBeGreaterThan(0);
    for (const own of all) world.finds(own);
    expect(world.mapped).toBe(3000);
    for (let i = 0; i < 3000; i += 2) world.detach(all[i]);
    for (const [i, own] of all.entries()) {
      if (i % 2 === 0) world.misses(own.address);
      else world.finds(own);
    }
    expect(world.mapped).toBe(1500);
    expect(world.reader.regionsOf(OWNER).length).toBe(1500);
    world.reader.release();
    world.owner.release();
    expect([world.mapped, world.blocks]).toEqual([0, 0]);
  });

  test('finds what stays attached whatever the owner changes at any load of the reader, and then all else', () => {
    const world = new World(seedOfRun());
    const lasting = Array.from({ length: 60 }, (_, i) => world.attach(2 * i));
    const gone = Array.from({ length: 600 }, (_, i) => 2 * i + 1);
    const passing: Listed[] = [];
    let changing = 0;
    let within = false;
    vi.spyOn(Atomics, 'load').mockImplementation(((words: Int32Array, at: number) => {
      if (changing > 0 && !within && world.random.chance(changing)) {
        within = true;
        world.change(passing, gone);
        within = false;
      }
      return load(words, at);
    }) as typeof Atomics.load);
    for (let round = 0; round < 60; round++) {
      // Many changes at first, so that the table grows in the middle of looks.
      changing = round < 15 ? 0.3 : 0.02;
      world.fewer = round < 30 ? 0.3 : 0.5;
      const own = world.random.pick(lasting);
      world.finds(own);
      changing = 0;
      for (const other of [...lasting, ...passing]) world.finds(other);
      for (const place of gone.slice(0, 50)) world.misses(1_000_000 + 24 * place);
    }
    expect(world.blocks).toBeGreaterThan(0);
  });

  test('finds what stays attached at any store of the owner, and never half a region', () => {
    const world = new World(seedOfRun());
    const lasting = Array.from({ length: 60 }, (_, i) => world.attach(2 * i));
    const gone = Array.from({ length: 600 }, (_, i) => 2 * i + 1);
    const passing: Listed[] = [];
    let looks = 0;
    const look = (): void => {
      // While the table moves, a reader waits for its owner.
      if ((load(world.words[OWNER], HEAD) & 1) !== 0) return;
      looks++;
      const own = world.random.pick(lasting);
      world.finds(own);
      const half = ({ address, bytes }: { address: number; bytes: number }): boolean =>
        bytes !== 16 || (address - 1_000_000) % 24 !== 0;
      if (world.reader.regionsOf(OWNER).some(half)) throw new Error('half a region is found');
    };
    for (const name of ['store', 'add'] as const) {
      const real = Atomics[name];
      vi.spyOn(Atomics, name).mockImplementation(((words: Int32Array, at: number, value: number) => {
        if (world.random.chance(0.2)) look();
        const before = real(words, at, value);
        if (world.random.chance(0.2)) look();
        return before;
      }) as typeof Atomics.add);
    }
    for (let round = 0; round < 700; round++) world.change(passing, gone);
    vi.restoreAllMocks();
    expect(looks).toBeGreaterThan(1000);
    for (const own of [...lasting, ...passing]) world.finds(own);
  });
});
