/**
 * Messages that are longer than what ranks send by value: of lengths about the bounds of parts, to receives that wait,
 * to those that come while the message does, and to those that come later; ended early, of the wrong length; and how
 * much memory they take.
 */
import assert from 'node:assert/strict';
import { type Communicator, Op, RmaError } from 'onesided';
import { argument, runCases } from './support/cases.ts';
import { tryCollectives } from './support/collective-model.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const MIB = 2 ** 20;
const PART = 262_144;
/** More than all pieces of a rank have room for. */
const MANY = 80 * MIB;
const LENGTHS = [
  16_383,
  16_385,
  65_535,
  65_536,
  PART - 17,
  PART - 16,
  PART - 15,
  PART,
  PART + 1,
  2 * PART - 32,
  3 * MIB + 5,
];

const one = new Uint8Array(1);

/** A byte of a message: different at each place of a part, and in each part. */
const byteAt = (at: number, salt: number): number => (at * 7 + (at >> 8) * 13 + (at >> 18) * 101 + salt * 31) & 255;

function written(length: number, salt: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = byteAt(at, salt);
  return bytes;
}

function assertIs(bytes: Uint8Array, salt: number, what: string): void {
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== byteAt(at, salt)) assert.fail(`${what}: byte ${at} is ${bytes[at]}, not ${byteAt(at, salt)}`);
  }
}

/** What this rank has had at most, in bytes. */
const peak = (): number => process.resourceUsage().maxRSS * 1024;

/** Whether ranks have memory of their own, whose size is known. */
const isProcess = (): boolean => argument('kind') === 'processes';

let calls = 0;

async function receive(world: Communicator, bytes: Uint8Array, source: number, tag = 0): Promise<void> {
  if (++calls % 2 === 0) world.receiveSync(bytes, source, { tag });
  else await world.receive(bytes, source, { tag });
}

await runCases({
  async 'broadcasts and allgathers of all lengths give what was sent'(world) {
    const { rank, size } = world;
    for (const [i, length] of LENGTHS.entries()) {
      const root = i % size;
      const buffer = rank === root ? written(length, i) : new Uint8Array(length);
      if (i % 2 === 0) world.broadcastSync(buffer, root);
      else await world.broadcast(buffer, root);
      assertIs(buffer, i, `broadcast of ${length} from rank ${root}`);
      const all = new Uint8Array(length * size);
      if (i % 2 === 0) await world.allgather(written(length, rank + i), all);
      else world.allgatherSync(written(length, rank + i), all);
      for (let other = 0; other < size; other++)
        assertIs(
          all.subarray(other * length, (other + 1) * length),
          other + i,
          `allgather of ${length}, rank ${other}`,
        );
    }
  },

  async 'several broadcasts and allgathers at once, on two communicators'(world) {
    const { rank, size } = world;
    const again = await world.dup();
    const length = 3 * MIB + 5;
    const buffers = Array.from({ length: 4 }, (_, i) =>
      rank === i % size ? written(length, i) : new Uint8Array(length),
    );
    const all = new Uint8Array((MIB + 1) * size);
    await Promise.all([
      world.broadcast(buffers[0], 0),
      again.broadcast(buffers[1], 1 % size),
      world.allgather(written(MIB + 1, rank), all),
      again.broadcast(buffers[2], 2 % size),
      world.broadcast(buffers[3], 3 % size),
    ]);
    for (const [i, buffer] of buffers.entries()) assertIs(buffer, i, `broadcast ${i}`);
    for (let other = 0; other < size; other++)
      assertIs(all.subarray(other * (MIB + 1), (other + 1) * (MIB + 1)), other, `allgather, rank ${other}`);
    await again.free();
  },

  async 'reduceScatter with other counts of the same sum is told'(world) {
    const { rank, size } = world;
    const n = 40_000 * size;
    const all = (to: number): number[] => Array.from({ length: size }, (_, i) => (i === to ? n : 0));
    // To the ranks themselves, and to one of two.
    for (const to of [rank, rank === 0 ? 0 : 1]) {
      const comm = await world.dup();
      const counts = all(to);
      const send = new Float64Array(n);
      await assert.rejects(comm.reduceScatter(send, new Float64Array(counts[rank]), Op.SUM, counts), {
        code: 'ERR_COLLECTIVE',
        message: /reduceScatter\(.*counts with checksum/,
      });
    }
    // With parts of no elements it is right.
    const [counts, sums] = [all(size - 1), new Float64Array(rank === size - 1 ? n : 0)];
    await world.reduceScatter(new Float64Array(n).fill(rank), sums, Op.SUM, counts);
    assert.ok(sums.every((sum) => sum === (size * (size - 1)) / 2));
  },

  'random programs of long collectives': (world) => tryCollectives(world, seed, 40, true, true),

  async 'long and short messages of all ranks arrive in order, whatever receives wait'(world) {
    const { rank, size } = world;
    const agreed = new Random(seed);
    for (let round = 0; round < 12; round++) {
      const messages = Array.from({ length: 4 }, () => ({
        length: agreed.pick([1, 5000, ...LENGTHS]),
        tag: agreed.pick([0, 0, 0, 7]),
      }));
      const early = agreed.chance(0.5);
      const [to, from] = [(rank + 1) % size, (rank + size - 1) % size];
      const send = (): void => {
        for (const [i, { length, tag }] of messages.entries()) world.send(written(length, rank + i), to, { tag });
      };
      if (!early) send();
      const buffers = messages.map(({ length }) => new Uint8Array(length));
      if (early) {
        const begun = messages.map(({ tag }, i) => world.receive(buffers[i], from, { tag }));
        send();
        await Promise.all(begun);
      } else
        for (const tag of [7, 0]) {
          for (const [i, message] of messages.entries())
            if (message.tag === tag) await receive(world, buffers[i], from, tag);
        }
      for (const [i, buffer] of buffers.entries())
        assertIs(buffer, from + i, `round ${round}, message ${i} (seed ${seed})`);
    }
  },

  async 'a receive that ends early leaves its message to the next one'(world) {
    const { rank } = world;
    for (const length of [PART, 9 * MIB]) {
      if (rank === 1) {
        const abandoned = new AbortController();
        const first = world.receive(new Uint8Array(length), 0, { signal: abandoned.signal });
        world.send(one, 0);
        setImmediate(() => abandoned.abort());
        const end = await first.then(
          () => 'received',
          (error) => (error as Error).name,
        );
        const buffer = new Uint8Array(length);
        world.send(Uint8Array.of(end === 'received' ? 1 : 0), 0);
        if (end !== 'received') {
          await world.receive(buffer, 0);
          assertIs(buffer, 1, `${length} bytes`);
        }
        await world.receive(buffer, 0);
        assertIs(buffer, 2, `${length} bytes, the next message`);
      } else if (rank === 0) {
        await world.receive(one, 1);
        world.send(written(length, 1), 1);
        await world.receive(one, 1);
        world.send(written(length, 2), 1);
      }
    }
  },

  async 'a message of the wrong length is an error, and the next one comes'(world) {
    const { rank } = world;
    if (rank === 0) for (const length of [MIB, 2 * MIB]) world.send(written(length, 3), 1);
    if (rank !== 1) return;
    const refused = (error: unknown): boolean => error instanceof RmaError && error.code === 'ERR_TRUNCATE';
    await assert.rejects(world.receive(new Uint8Array(MIB + 1), 0), refused);
    const buffer = new Uint8Array(2 * MIB);
    await world.receive(buffer, 0);
    assertIs(buffer, 3, 'the next message');
  },

  async 'a buffer that is transferred while its message comes is an error, and the next one comes'(world) {
    const { rank } = world;
    if (rank === 0) {
      await world.receive(one, 1);
      for (const salt of [1, 2]) world.send(written(MIB, salt), 1);
    }
    if (rank !== 1) return;
    const given = new Uint8Array(MIB);
    const first = world.receive(given, 0);
    structuredClone(given.buffer, { transfer: [given.buffer] });
    world.send(one, 0);
    await assert.rejects(first, (error) => error instanceof RmaError && error.code === 'ERR_BUFFER');
    const buffer = new Uint8Array(MIB);
    await world.receive(buffer, 0);
    assertIs(buffer, 2, 'the next message');
  },

  async 'a message for which no piece is free waits at its sender, and holds nobody else up'(world) {
    const { rank, size } = world;
    if (rank === 0) {
      for (let other = 1; other < size; other++) world.send(new Uint8Array(MANY).fill(other), other);
      for (let other = size - 1; other >= 1; other--) await world.receive(one, other);
    } else {
      const buffer = new Uint8Array(MANY);
      await receive(world, buffer, 0);
      assert.ok(buffer.every((byte) => byte === rank));
      world.send(one, 0);
    }
    await world.barrier();
  },

  async 'a message that has come where it was waited for is the next receive’s, if that one is aborted'(world) {
    const { rank } = world;
    for (let salt = 0; salt < 3; salt++) {
      const [first, second] = [new Uint8Array(3 * PART), new Uint8Array(3 * PART)];
      if (rank === 0) {
        await world.receive(one, 1);
        world.send(written(3 * PART, salt), 1);
        // Rank 1 waits long, so it takes messages in.
        await new Promise((resolve) => setTimeout(resolve, 50));
        world.barrierSync();
      } else if (rank === 1) {
        const given = new AbortController();
        const waiting = world.receive(first, 0, { signal: given.signal });
        world.send(one, 0);
        // The message comes in this one, and the promise does not get to see it.
        world.barrierSync();
        given.abort();
        const ended = await waiting.then(
          () => 'received',
          (error: Error) => error.name,
        );
        if (ended === 'AbortError') {
          // The buffer is the program's again.
          first.fill(255);
          await world.receive(second, 0);
          assertIs(second, salt, 'the message of the receive that was aborted');
        } else assertIs(first, salt, 'the message');
      } else world.barrierSync();
      await world.barrier();
    }
  },

  async 'a message is in no memory but its buffers and the pieces'(world) {
    const { rank } = world;
    const length = 256 * MIB;
    const most = 120 * MIB;
    const buffer = new Uint8Array(length).fill(rank);
    await world.barrier();
    let before = peak();
    if (rank === 0) {
      await world.receive(one, 1);
      world.broadcastSync(buffer, 0);
    } else {
      if (rank === 1) world.send(one, 0);
      await world.broadcast(buffer, 0);
    }
    if (isProcess()) assert.ok(peak() - before < most, `a broadcast took ${(peak() - before) / MIB} MiB`);
    await world.barrier();
    before = peak();
    if (rank === 1) {
      const begun = world.receive(buffer, 0);
      world.send(one, 0);
      await begun;
      if (isProcess()) assert.ok(peak() - before < most, `a receive took ${(peak() - before) / MIB} MiB`);
    } else if (rank === 0) {
      await world.receive(one, 1);
      world.send(buffer, 1);
    }
    await world.barrier();
  },
});
