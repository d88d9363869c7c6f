/**
 * What a process does to others that sends messages of the provider's own, with the right tag: one that has read the
 * traffic, or a peer that is not as it should be. On the loopback interface; run by `npm run test:tcp`.
 */
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FabricAddress } from '../../src/providers/libfabric/libfabric-addresses.ts';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { QpState, type QueuePair } from '../../src/verbs/queue-pair.ts';
import { startProgram } from '../support/children.ts';
import { freePort } from '../support/ports.ts';
import {
  bringUp,
  connect,
  type End,
  type EndOptions,
  expectNothing,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  send,
  write,
} from '../verbs/conformance/harness.ts';
import { openEnds } from './device.ts';
import { ALSO_ACCEPTS, compileStrangers, Kind, LAST, NOTICE, Stranger } from './stranger.ts';

const LONG = { timeout: 120_000 };

compileStrangers();

// An address of IP, as libfabric has it.
function at(port: number): Uint8Array {
  return Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, ...new Uint8Array(8));
}

test('strangers’ messages while an endpoint is opened do not make it deaf', LONG, async () => {
  const found: string[] = [];
  // It is opened in some milliseconds: a stranger must be there first.
  for (let round = 0; round < 5; round++) {
    const port = await freePort();
    const stranger = await Stranger.start();
    stranger.begin({ name: at(port), tag: [1, 2] }, { kind: Kind.PING }, 200);
    for (const provider of ['NET', 'TCP']) {
      process.env[`FI_${provider}_PORT_LOW_RANGE`] = String(port);
      process.env[`FI_${provider}_PORT_HIGH_RANGE`] = String(port + 3);
      onTestFinished(() => {
        for (const end of ['LOW', 'HIGH']) delete process.env[`FI_${provider}_PORT_${end}_RANGE`];
      });
    }
    const { stdout, stderr } = await startProgram(new URL('programs/open.ts', import.meta.url)).ended;
    found.push(stdout + stderr);
  }
  expect(found).toEqual(found.map(() => 'opened true\nwritten 1\n'));
});

/** What a ping says of its sender. */
function says({ name, tag: [upper, lower] }: FabricAddress): Uint8Array {
  return Uint8Array.of(...new Uint8Array(Uint32Array.of(lower, upper).buffer), ...name);
}

describe('who asks whether a rank is there', () => {
  test('does not change what that rank knows of others', LONG, async () => {
    const { ends, own } = openEnds(2);
    const [a, b] = ends;
    connect(a, b);
    write(a, b, 1, 0, 0, 8);
    await pollSuccess(a.sendCq);
    const stranger = await Stranger.start();
    await stranger.send(own[0], { kind: Kind.PING, data: says({ name: own[1].name, tag: [1, 2] }) });
    await sleep(100);
    // This asks for a key: a message to b.
    const region = b.pd.registerMemory(b.memory, 0, 4096, 15);
    write(a, { ...b, region, at: (offset: number) => b.at(offset) } as unknown as End, 2, 0, 0, 8);
    await pollSuccess(a.sendCq);
  });

  test('is answered, but not without end', LONG, async () => {
    const { own } = openEnds(2);
    const stranger = await Stranger.start();
    await stranger.send(own[0], { kind: Kind.PING, data: says(stranger.own) });
    expect(await stranger.next(Kind.PONG)).toMatchObject({ tag: stranger.own.tag, status: 1 });
    // This one does not say who it is.
    const other = await Stranger.start();
    let connected = 0;
    for (let i = 0; i < 200; i++) {
      const server = createServer(() => connected++).listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await new Promise((resolve) => server.once('listening', resolve));
      const { port } = server.address() as AddressInfo;
      await other.send(own[0], { kind: Kind.PING, data: says({ name: at(port), tag: [1, 2] }) });
    }
    await sleep(3000);
    expect(connected).toBeGreaterThan(0);
    expect(connected).toBeLessThan(64);
  });
});

/** A queue pair that is connected to one of a stranger's, and where it is. */
async function connected(
  options: EndOptions = {},
): Promise<{ end: End; stranger: Stranger; at: FabricAddress; to: number; from: number }> {
  const stranger = await Stranger.start();
  const {
    ends: [end],
    own: [at],
  } = openEnds(2, { others: [stranger.own] });
  const from = 77;
  end.make(options);
  bringUp(end.qp, { address: { member: 2, qpNumber: from } } as QueuePair);
  return { end, stranger, at, to: end.qp.address.qpNumber, from };
}

describe('a peer', () => {
  test.each([0, 5, 200])('that refuses with status %i is taken to have failed', LONG, async (status) => {
    const { end, stranger, at, to, from } = await connected();
    send(end, 1, 0, 8);
    const { number } = await stranger.next(Kind.SEND);
    await stranger.send(at, { kind: Kind.REFUSED, to, from, number: number!, status });
    expect(await pollStatuses(end.sendCq, 1)).toEqual([[1, name(WcStatus.REM_OP_ERR)]]);
  });

  const HALF = new Uint8Array(50).fill(7);
  test.each([
    ['another length', { flags: LAST, total: 5000, offset: 50 }],
    ['another kind', { kind: Kind.SEND_IMM, flags: LAST, total: 100, offset: 50 }],
    ['bytes that have come already', { flags: LAST, total: 100, offset: 0 }],
    ['less than all', { flags: LAST, total: 100, offset: 50, data: HALF.subarray(0, 10) }],
  ])('whose second chunk says %s than the first has sent no message', LONG, async (_, second) => {
    const { end, stranger, at, to, from } = await connected();
    end.receive(1, 0, 100);
    const first = { kind: Kind.SEND, to, from, number: 1, total: 100, data: HALF };
    await stranger.send(at, first);
    await stranger.send(at, { ...first, number: 2, ...second });
    expect(await pollStatuses(end.recvCq, 1)).toEqual([[1, name(WcStatus.LOC_LEN_ERR)]]);
  });

  test('sends a message in chunks', LONG, async () => {
    const { end, stranger, at, to, from } = await connected();
    end.receive(1, 0, 100);
    const first = { kind: Kind.SEND, to, from, number: 1, total: 100, data: HALF };
    await stranger.send(at, first);
    await stranger.send(at, { ...first, number: 2, flags: LAST, offset: 50 });
    expect((await poll(end.recvCq, 1))[0]).toMatchObject({ status: name(WcStatus.SUCCESS), byteLen: 100 });
  });
});

describe('what was accepted on another connection', () => {
  const saying = (to: number, from: number, number: number): Uint8Array =>
    new Uint8Array(Uint32Array.of(to, from, number).buffer);

  test('is believed of that connection alone, and of what was sent there', LONG, async () => {
    const { end, stranger, at, to, from } = await connected();
    send(end, 1, 0, 8);
    const { number } = await stranger.next(Kind.SEND);
    // Too short; of no queue pair; of another one of the peer's; of what has not been sent.
    for (const data of [new Uint8Array(11), saying(to + 1, from, number!), saying(to, from + 1, number!)])
      await stranger.send(at, { kind: Kind.PONG, flags: ALSO_ACCEPTS, data });
    await stranger.send(at, { kind: Kind.PONG, flags: ALSO_ACCEPTS, data: saying(to, from, number! + 5) });
    await expectNothing(end.sendCq);
    await stranger.send(at, { kind: Kind.PONG, flags: ALSO_ACCEPTS, data: saying(to, from, number!) });
    await pollSuccess(end.sendCq);
  });
});

test('a notice of a peer takes a receive, and no more, also behind what is no access', LONG, async () => {
  const { end, stranger, at, to, from } = await connected();
  const notice = { kind: Kind.TOGETHER, flags: NOTICE, to, from, immediate: 9 * 2 ** 24, total: 4000 };
  const before = end.bytes.slice();
  // There is no receive: it waits.
  await stranger.send(at, { ...notice, number: 1 });
  await expectNothing(end.recvCq);
  end.receive(1, 0, 8);
  expect(await poll(end.recvCq, 1)).toMatchObject([
    { wrId: 1, status: name(WcStatus.SUCCESS), byteLen: 0, immData: 9 },
  ]);
  end.receive(2, 0, 8);
  await stranger.send(at, { ...notice, number: 2, data: new Uint8Array(40).fill(255) });
  expect(await pollStatuses(end.recvCq, 1)).toEqual([[2, name(WcStatus.WR_FLUSH_ERR)]]);
  expect(end.bytes).toEqual(before);
});

test('a notice of a peer in the middle of a message takes no receive of it, nor of others', LONG, async () => {
  const { end, stranger, at, to, from } = await connected({ srqWr: 20 });
  const SHARED = 20;
  for (let i = 0; i < SHARED; i++) end.receive(i, 0, 100);
  const first = { kind: Kind.SEND, to, from, number: 1, total: 100, data: new Uint8Array(50) };
  await stranger.send(at, first);
  await stranger.send(at, { kind: Kind.TOGETHER, flags: NOTICE, to, from, number: 2 });
  expect(await pollStatuses(end.recvCq, 1)).toEqual([[0, name(WcStatus.LOC_LEN_ERR)]]);
  expect(end.qp.state).toBe(QpState.ERR);
  await expectNothing(end.recvCq);
});

test('nobody answers in another one’s place that a key is forgotten', LONG, async () => {
  const { end, stranger, at, to, from } = await connected();
  const other = await Stranger.start();
  await stranger.send(at, { kind: Kind.ASK_KEY, to, from, immediate: end.region.rkey });
  await stranger.next(Kind.KEY);
  // All the time that the call waits for the one that was asked, which says nothing.
  for (let number = 1; number < 4; number++) other.begin(at, { kind: Kind.FORGOTTEN, number }, 20_000);
  await sleep(5);
  const since = performance.now();
  end.region.deregister();
  expect(performance.now() - since).toBeGreaterThan(95);
  expect((await stranger.next(Kind.KEY_GONE)).immediate).toBeDefined();
});

test('a window of messages, and no more, waits for a queue pair to be connected', LONG, async () => {
  const WINDOW = 64;
  const stranger = await Stranger.start();
  const {
    ends: [end],
    own: [at],
  } = openEnds(2, { others: [stranger.own] });
  end.make();
  const { qpNumber: to } = end.qp.address;
  const from = 77;
  for (let number = 1; number <= WINDOW + 20; number++)
    await stranger.send(at, { kind: Kind.SEND, flags: LAST, to, from, number, data: new Uint8Array(8) });
  await sleep(100);
  bringUp(end.qp, { address: { member: 2, qpNumber: from } } as QueuePair);
  for (let i = 0; i < 40; i++) end.receive(i, 0, 64);
  await poll(end.recvCq, 40);
  for (let i = 0; i < 40; i++) end.receive(i, 0, 64);
  await poll(end.recvCq, WINDOW - 40);
  await expectNothing(end.recvCq);
});
