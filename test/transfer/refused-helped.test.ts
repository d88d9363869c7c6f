/**
 * Layouts that a helper beside the other rank's program would serve (`host-assisted` on devices), where this rank's
 * device refuses to register the origin. The requests are those of the direct emulator; the helper, and messages to and
 * from it, are the test's.
 */
import { expect, onTestFinished, test } from 'vitest';
import { Datatype } from '../../src/datatype/datatype.ts';
import { checkSides } from '../../src/datatype/layout.ts';
import { RmaError } from '../../src/errors.ts';
import { Origins } from '../../src/job/origins.ts';
import { openEmulatorAsDevice } from '../../src/providers/emulator/emulator-context.ts';
import type { EmulatedMemory } from '../../src/providers/emulator/emulator-memory.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { HelpedTransfers } from '../../src/transfer/layouts/helped.ts';
import { HelperConnections } from '../../src/transfer/layouts/helper-connections.ts';
import { ALONE } from '../../src/transfer/requests/answer-waits.ts';
import { regionsBy } from '../../src/transfer/requests/regions.ts';
import { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import type { SecondConnection } from '../../src/transfer/requests/second-connections.ts';
import { ALL_ACCESS } from '../../src/verbs/checks.ts';
import { HELPER_GROUP, type Helper } from '../../src/verbs/helper.ts';

const ENTRIES = 8;
const ELEMENTS = 4096;

/** A message that is posted: `done` says that it has come, or left. */
interface Posted {
  readonly what: 'receive' | 'send';
  readonly connection: SecondConnection;
  readonly lengths: readonly number[];
  readonly done: () => void;
}

/** Rank 0, whose device registers what `refuses` lets it, and the part of rank 1. */
function makeRanks() {
  const contexts = createLocalFabric(2).map((fabric) => openEmulatorAsDevice(fabric, 1));
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const [context] = contexts;
  const scene = { refuses: true };
  const helper: Helper = {
    entries: ENTRIES,
    addLane: () => ({ control: 1, data: 2 }),
    connect: () => {},
    start: () => {},
    close: () => {},
  };
  context.makeHelper = () => helper;
  const pds = contexts.map((one) => one.allocPd());
  const registerMemory = pds[0].registerMemory.bind(pds[0]);
  pds[0].registerMemory = (memory, offset, length, access) => {
    // The library's own memory is registered before.
    if (scene.refuses && !(memory as EmulatedMemory).fromLibrary)
      throw new RmaError('ERR_VERBS', `register memory: cannot lock ${length} bytes (ENOMEM)`);
    return registerMemory(memory, offset, length, access);
  };
  const transfers = contexts.map(
    (one, rank) => new RequestTransfer(one, pds[rank], new Origins(one, pds[rank]), 2, false, undefined, ALONE, true),
  );
  const parts = contexts.map((one, rank) => {
    const memory = one.allocateMemory(4 * ELEMENTS);
    return { memory, region: pds[rank].registerMemory(memory, 0, 4 * ELEMENTS, ALL_ACCESS) };
  });
  const regions = regionsBy((rank) => parts[rank].region);
  for (const [rank, transfer] of transfers.entries()) {
    const numbers = transfers.map((other) => other.queuePairFor(rank));
    transfer.connect([0, 1], numbers, regions);
  }
  const requests = transfers[0];
  const connections = new HelperConnections(context, pds[0], undefined, requests, 2, 0);
  const posted: Posted[] = [];
  const { second } = requests;
  second.receive = (connection, _place, _entries, lengths, done) =>
    void posted.push({ what: 'receive', connection, lengths, done });
  second.send = (connection, _place, _entries, lengths, _confirmation, done) =>
    void posted.push({ what: 'send', connection, lengths, done });
  const part = new Int32Array(parts[1].memory.buffer, 0, ELEMENTS);
  return { scene, requests, helped: new HelpedTransfers(connections), posted, part };
}

/** A put or get of so many pieces, of so many integers each, half of the bytes being gaps. */
function move(ranks: ReturnType<typeof makeRanks>, puts: boolean, pieces: number, integers: number): Int32Array {
  const type = Datatype.vector(pieces, integers, 2 * integers, Datatype.INT32);
  const origin = Int32Array.from({ length: 2 * pieces * integers }, (_, i) => i + 1);
  const { from, to } = checkSides('put', origin, { origin: { type }, target: { type } });
  const bytes = new Uint8Array(origin.buffer);
  ranks.helped.move(puts, bytes, from, 1, 0, to);
  return origin;
}

const isCovered = (i: number, pieces: number, integers: number): boolean =>
  i < 2 * pieces * integers && i % (2 * integers) < integers;
const REFUSED = expect.objectContaining({ code: 'ERR_VERBS', message: expect.stringMatching(/cannot lock .*ENOMEM/) });

test('short pieces of a put go by a request each, without a registration, and nothing is asked of the helper', () => {
  const ranks = makeRanks();
  const [pieces, integers] = [100, 16];
  const origin = move(ranks, true, pieces, integers);
  expect(ranks.requests.flush(1).advance()).toBe(true);
  expect(ranks.posted).toEqual([]);
  const there = ranks.part.every((value, i) => value === (isCovered(i, pieces, integers) ? origin[i] : 0));
  expect(there).toBe(true);
});

test.each([
  ['a put of longer pieces', true],
  ['a get', false],
])('%s is refused with the words of the device, as without the hint; what comes later is carried out', (_, puts) => {
  const ranks = makeRanks();
  expect(() => move(ranks, puts, 20, 32)).toThrow(REFUSED);
  expect(ranks.requests.flush(1).advance()).toBe(true);
  expect(ranks.posted).toEqual([]);
  expect(ranks.part.every((value) => value === 0)).toBe(true);
  const origin = move(ranks, true, 20, 8);
  expect(ranks.requests.flush(1).advance()).toBe(true);
  expect(ranks.part[0]).toBe(origin[0]);
});

test('refused in the middle, it ends when what the helper was asked for has, and gives its place back', () => {
  const ranks = makeRanks();
  const { scene, requests, posted } = ranks;
  scene.refuses = false;
  let holds = 0;
  const { second } = requests;
  const hold = second.hold.bind(second);
  second.hold = (buffer) => {
    if (++holds === 2) throw new RmaError('ERR_VERBS', 'register memory: cannot lock 1 bytes (ENOMEM)');
    return hold(buffer);
  };
  move(ranks, true, 2 * HELPER_GROUP * ENTRIES, 4);
  // One group was asked for: a receive for the answer, and the request.
  expect(posted.map(({ what, lengths }) => [what, lengths.length])).toEqual([
    ['receive', 1],
    ['send', 1],
  ]);
  const flush = requests.flush(1);
  for (let i = 0; i < 3; i++) expect(flush.advance()).toBe(false);
  expect(second.isSilent).toBe(false);
  for (const { done } of posted.splice(0)) done();
  expect(posted.map(({ what, lengths }) => [what, lengths.length])).toEqual([['send', HELPER_GROUP]]);
  expect(flush.advance()).toBe(false);
  for (const { done } of posted.splice(0)) done();
  expect(() => flush.advance()).toThrow(REFUSED);
  expect(flush.advance()).toBe(true);
  expect(second.isSilent).toBe(true);
  // The lane serves the next one, and the one behind it.
  for (let i = 0; i < 2; i++) {
    move(ranks, true, HELPER_GROUP * ENTRIES, 4);
    for (let turn = 0; turn < 2; turn++) for (const { done } of posted.splice(0)) done();
    expect(requests.flush(1).advance()).toBe(true);
    expect(holds).toBe(3 + i);
  }
});
