/**
 * Calls what there is of RDMA in the addon with all kinds of arguments, in all orders, on a device that is only
 * bookkeeping (native/test/fake_verbs.cc): scripts/test-sanitize.mjs has it loaded as libibverbs, and sanitizers look
 * on. Each call returns, or throws an error that says what is wrong; each function has also done what it was asked for,
 * many times. Needs `--expose-gc`.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import type { RdmaContext } from '../../../src/native.ts';
import { addon } from '../../support/addon.ts';

const { RdmaContext: Context, rdmaDevices } = addon();
const collect = (globalThis as unknown as { gc: () => void }).gc;
assert(Context !== undefined && rdmaDevices !== undefined, 'the addon was built without infiniband/verbs.h');
assert.equal(rdmaDevices()[0]?.name, 'fake0');
const seed = Number(process.env['ONESIDED_SEED'] ?? Date.now() % 1_000_000_007);
console.log(`to repeat it: ONESIDED_SEED=${seed}`);
fc.configureGlobal({ seed });

const QUEUE_PAIR = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 2, maxRecvSge: 2, maxInlineData: 64, signalAll: true };
const refused = (call: () => unknown, what: RegExp): void => assert.throws(call, what);
let calls = 0;
let errors = 0;
/** How often each function has done what it was asked for. */
const done = new Map<string, number>();

/** Calls; passes if it returns or throws an Error with a code. */
function survives(call: () => unknown, name = ''): unknown {
  calls++;
  try {
    const result = call();
    done.set(name, (done.get(name) ?? 0) + 1);
    return result;
  } catch (error) {
    errors++;
    assert(error instanceof Error && typeof (error as NodeJS.ErrnoException).code === 'string', String(error));
    return undefined;
  }
}

// Lifetimes, one by one.
{
  const context = new Context('fake0', 1, 1, () => {});
  const pd = context.allocPd();
  const memory = new Uint8Array(4096);
  const [mr] = context.regMr(pd, memory, 0, 4096, 15);
  // The device has its pages, and somebody else has the buffer.
  structuredClone(memory.buffer, { transfer: [memory.buffer] });
  for (let i = 0; i < 20; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  context.deregMr(mr);
  refused(() => context.deregMr(mr), /memory region \d+ does not exist/);
  const [cq] = context.createCq(16);
  const [qp] = context.createQp({ ...QUEUE_PAIR, pd, sendCq: cq, recvCq: cq });
  refused(() => context.destroyCq(cq), /EBUSY/);
  refused(() => context.deallocPd(pd), /EBUSY/);
  const ring = new Uint8Array(64 * 4 + 1);
  const sendWords = new Uint32Array(5);
  const receiveWords = new Uint32Array(4);
  refused(() => context.sender(qp, ring.subarray(0, 192), 64, sendWords), /slots must be a power of two/);
  refused(() => context.sender(qp, ring, 64, new Uint32Array(4)), /Uint32Array of at least 5/);
  refused(() => context.poller(cq, new Uint8Array(33).subarray(1) as never), /Uint32Array/);
  refused(() => context.receiver(false, qp, new Uint8Array(24) as never, receiveWords), /Float64Array/);
  const entry = new Float64Array(3);
  const receive = context.receiver(false, qp, entry, receiveWords);
  receiveWords[2] = 1;
  for (const numbers of [
    [Number.NaN, 0, 0],
    [-1, 0, 0],
    [0, -1, 0],
    [0, 2 ** 32, 0],
    [0, 0, 1.5],
    [2 ** 60, 0, 0],
  ]) {
    entry.set(numbers);
    refused(receive, /entry 0 must be/);
  }
  entry.set([1, 2, 3]);
  receiveWords.set([0, 7]);
  receive();
  assert.equal(receiveWords[3], 0);
  // A slot whose remote address is no number, and one whose entry's is none: EINVAL.
  const slot = new Float64Array(16);
  const send = context.sender(qp, new Uint8Array(slot.buffer), 128, sendWords);
  const post = (owner: number, head: number, count: number): number[] => {
    sendWords.set([owner, head, count]);
    send();
    return [...sendWords.subarray(3)];
  };
  for (const [opcode, place] of [
    [0, 3],
    [4, 3],
    [5, 3],
    [2, 8],
  ] as const) {
    slot.fill(0);
    new Uint32Array(slot.buffer).set([opcode, 0, place === 8 ? 1 : 0]);
    for (const number of [Number.NaN, -1, 2 ** 64, Infinity]) {
      slot[place] = number;
      assert.deepEqual(post(0, 0, 1), [0, 22], `${opcode} ${number}`);
    }
  }
  slot.fill(0);
  assert.deepEqual(post(3, 5, 2), [2, 0]);
  const words = new Uint32Array(8 + 64);
  const poll = context.poller(cq, words);
  words[0] = 8;
  poll();
  assert.deepEqual([...words.subarray(1, 3)], [3, 0]);
  assert.deepEqual([...words.subarray(16, 18)], [3, 5]);
  // Its words are somebody else's by now; it goes on with the memory that it was given.
  structuredClone(words.buffer, { transfer: [words.buffer] });
  collect();
  poll();
  context.destroyQp(qp);
  context.destroyCq(cq);
  for (const call of [send, receive, poll]) refused(call, /was destroyed/);
  refused(() => new Context('fake0', 1, 256, () => {}), /the GID index/);
  refused(() => new Context('fake0', 1, 5, () => {}), /cannot query port 1 or GID 5/);
  refused(() => new Context('none', 1, 1, () => {}), /ENODEV/);
  context.close();
  context.close();
  refused(() => context.allocPd(), /closed/);
}

// To read a record may run the caller's code, which may end what the record names, or close the device.
{
  const context = new Context('fake0', 1, 1, () => {});
  const domain = context.allocPd();
  const [[one], [two], [three]] = [context.createCq(16), context.createCq(16), context.createCq(16)];
  const init = { ...QUEUE_PAIR, pd: domain, sendCq: one, recvCq: two };
  const reads = (act: () => unknown) => ({
    ...init,
    get maxInlineData(): number {
      act();
      return 64;
    },
  });
  refused(() => context.createQp(reads(() => context.destroyCq(one))), /completion queue \d+ does not exist/);
  init.sendCq = three;
  const [qp] = context.createQp(reads(() => context.createCq(16)));
  const during = (act: () => unknown) => ({
    state: 1,
    get qkey(): number {
      act();
      return 0;
    },
  });
  const thrown = new Error('thrown by a getter');
  for (const call of [
    (record: object) => context.createQp(record as typeof init),
    context.modifyQp.bind(context, qp),
  ]) {
    const fails = {
      get state(): number {
        throw thrown;
      },
      get pd(): number {
        throw thrown;
      },
    };
    refused(() => call(fails as never), /thrown by a getter/);
    for (const wrong of [undefined, null, 1, 'x', () => {}]) refused(() => call(wrong as never), /must be an object/);
  }
  refused(() => context.modifyQp(qp, { state: 2, gid: 'fe80::1', lid: 0, mtu: 3 }), /destQp must be a number/);
  refused(() => context.modifyQp(qp, { state: 1, access: 16 }), /access must be an integer from 0 to 15/);
  refused(() => context.createQp({ ...init, maxSendSge: 256 }), /maxSendSge must be an integer from 1 to 255/);
  refused(
    () =>
      context.modifyQp(
        qp,
        during(() => context.destroyQp(qp)),
      ),
    /queue pair \d+ does not exist/,
  );
  refused(() => context.createQp(reads(() => context.close())), /closed/);
}

// Address handles and groups, one by one.
const openFiles = (): number => readdirSync('/proc/self/fd').length;
{
  const files = openFiles();
  const context = new Context('fake0', 1, 1, () => {});
  const pd = context.allocPd();
  const other = context.allocPd();
  const [cq] = context.createCq(16);
  const [qp] = context.createQp({ ...QUEUE_PAIR, pd, sendCq: cq, recvCq: cq, datagrams: true });
  const [connection] = context.createQp({ ...QUEUE_PAIR, pd, sendCq: cq, recvCq: cq });
  const [ah, foreign] = [pd, other].map((domain) => context.createAh(domain, 'fe80::1', 0));
  refused(() => context.createAh(pd, 'fe80', 0), /not a valid GID/);
  refused(() => context.createAh(pd, 'fe80::1', 65_536), /argument/);
  refused(() => context.deallocPd(pd), /EBUSY/);
  const slot = new Float64Array(16);
  const words = new Uint32Array(slot.buffer);
  const sendWords = Uint32Array.of(3, 0, 1, 0, 0);
  const send = context.sender(qp, new Uint8Array(slot.buffer), 128, sendWords);
  const post = (opcode: number, handle: number): number[] => {
    words.set([opcode, 0, 0, 0, 0, handle]);
    words.set([1, 2], 10);
    send();
    return [...sendWords.subarray(3)];
  };
  assert.deepEqual(post(2, ah), [1, 0]);
  for (const [opcode, handle] of [
    [2, 0],
    [2, foreign],
    [2, 2 ** 32 - 1],
    [0, ah],
    [5, ah],
  ] as const) {
    assert.deepEqual(post(opcode, handle), [0, 22]);
  }
  context.destroyAh(ah);
  refused(() => context.destroyAh(ah), /address handle \d+ does not exist/);
  assert.deepEqual(post(3, ah), [0, 22]);
  // Without a network to join, a group may be refused; never is one left half joined.
  for (const gid of ['::ffff:239.1.2.3', 'ff15::1']) {
    if (survives(() => [context.attachMcast(qp, gid, 0)]) === undefined) continue;
    refused(() => context.destroyQp(qp), /EBUSY/);
    refused(() => context.detachMcast(qp, gid, 1), /EINVAL/);
    context.detachMcast(qp, gid, 0);
    refused(() => context.detachMcast(qp, gid, 0), /EINVAL/);
    context.attachMcast(qp, gid, 0);
  }
  survives(() => context.attachMcast(connection, '::ffff:239.1.2.3', 0));
  const [attach, detach] = [context.attachMcast.bind(context), context.detachMcast.bind(context)];
  for (const [call, name] of [
    [attach, 'attachMcast'],
    [detach, 'detachMcast'],
  ] as const) {
    for (const gid of ['', 'ff15', '::ffff:239.1.2.300', 'ff15::1\0', 'x'.repeat(5000), undefined, 15, {}])
      refused(() => call(qp, gid as never, 0), new RegExp(`${name}: the GID is not a valid GID`));
    for (const lid of [-1, 65_536, 0.5, '0', undefined])
      refused(() => call(qp, 'ff15::1', lid as never), new RegExp(`${name}: an argument`));
    for (const handle of [999, ah, pd, -1, undefined, '1'])
      refused(() => call(handle as never, 'ff15::1', 0), /queue pair/);
    // No group of IP's.
    refused(() => call(connection, '::ffff:10.0.0.1', 0), /EINVAL|ENODEV|EADDRNOTAVAIL/);
  }
  for (const handle of [999, qp, -1, undefined])
    refused(() => context.createAh(handle as never, 'fe80::1', 0), /domain/);
  for (const handle of [999, pd, foreign + 0.5, null])
    refused(() => context.destroyAh(handle as never), /address handle/);
  // Attached as many times as it is detached; what is left goes with the context.
  const groups = ['::ffff:239.1.2.4', '::ffff:239.1.2.4', '::ffff:239.1.2.5'].filter(
    (gid) => survives(() => [attach(qp, gid, 0)]) !== undefined,
  );
  if (groups.length === 3) {
    for (let i = 0; i < 2; i++) detach(qp, groups[0], 0);
    refused(() => detach(qp, groups[0], 0), /EINVAL/);
    refused(() => context.destroyQp(qp), /EBUSY/);
  } else console.log('no network here whose groups could be joined');
  context.close();
  for (const call of [() => attach(qp, 'ff15::1', 0), () => detach(qp, 'ff15::1', 0), () => context.destroyAh(foreign)])
    refused(call, /closed/);
  assert.equal(openFiles(), files, 'sockets of groups are left');
}

// Anything, in any order.
const METHODS = Object.getOwnPropertyNames(Context.prototype).filter((name) => name !== 'constructor');
const number = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -1, max: 20 }) },
  fc.constantFrom(64, 128, 0.5, -0, 2 ** 31, 2 ** 32, 2 ** 53, Number.NaN, Infinity, -Infinity),
  fc.double(),
);
const memory = fc.oneof(
  fc.nat({ max: 600 }).map((length) => new Uint8Array(length)),
  fc.nat({ max: 600 }).map((length) => new Uint8Array(length + 1).subarray(1)),
  fc.array(number, { maxLength: 80 }).map((list) => Float64Array.from(list)),
  fc.array(fc.nat({ max: 7 }), { maxLength: 256 }).map((list) => Uint32Array.from(list)),
  fc.uint8Array({ maxLength: 600 }),
);
/** What a function of the data path is told; it says how it went in some of them. */
const words = fc.oneof(
  { weight: 3, arbitrary: fc.array(fc.nat({ max: 70 }), { maxLength: 80 }).map((list) => Uint32Array.from(list)) },
  { weight: 1, arbitrary: memory },
);
const anything = fc.oneof(
  { weight: 6, arbitrary: number },
  { weight: 3, arbitrary: memory },
  fc.constantFrom(undefined, null, true, false, '0101:0101::1', 'x'.repeat(2000), 10n, Symbol('s'), {}, [], () => {}),
);
const gid = fc.constantFrom('ff15::1', '::ffff:239.1.2.3', 'fe80::1');

/** What `furnish` makes first is known by these numbers; what comes later, by higher ones. */
const [PDS, CQS, SRQS, REGION, HELPERS, QUEUE_PAIRS, AH] = [
  ...[[1, 2], [3, 4, 7, 20], [5, 19], [6], [8, 10]],
  ...[[11, 12, 13, 14, 15, 16, 17], [18]],
];
const DATAGRAMS = 13;
const [pd, cq, srq, region, helper, queuePair, ah] = [PDS, CQS, SRQS, REGION, HELPERS, QUEUE_PAIRS, AH].map((numbers) =>
  fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...numbers) }, fc.integer({ min: 1, max: 30 })),
);

/** Calls that are close to what is wanted. */
function ask(weight: number, names: string, ...args: fc.Arbitrary<unknown>[]) {
  return { weight, arbitrary: fc.tuple(fc.constantFrom(...names.split(' ')), fc.tuple(...args)) };
}
const is = fc.constant;
/** The records by which queue pairs are made and moved. */
const INIT = {
  ...{ pd, sendCq: cq, recvCq: cq, srq: fc.oneof(is(undefined), srq) },
  ...{ maxSendWr: is(4), maxRecvWr: is(4), maxSendSge: is(2), maxRecvSge: is(2), maxInlineData: is(64) },
  ...{ signalAll: fc.boolean(), datagrams: fc.boolean() },
};
const CHANGE = {
  ...{ state: fc.nat({ max: 6 }), access: fc.option(fc.nat({ max: 15 }), { nil: undefined }) },
  ...{ gid, lid: is(0), destQp: fc.nat({ max: 20 }), maxDestRdAtomic: is(1), minRnrTimer: is(1), mtu: is(3) },
  ...{ rnrRetry: fc.option(is(7), { nil: undefined }), retryCount: is(7), maxRdAtomic: is(1), timeout: is(14) },
  ...{ psn: is(0), qkey: is(0) },
};
/** Fields are missing, or are anything. */
function nearly(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  const each = Object.entries(fields).map(([name, field]) => [
    name,
    fc.oneof({ weight: 9, arbitrary: field }, anything),
  ]);
  return fc.record(Object.fromEntries(each) as typeof fields, { requiredKeys: [] });
}
const command = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...METHODS), fc.array(anything, { maxLength: 14 })) },
  ask(4, 'describe portState allocPd takeEvents asyncEvent'),
  ask(1, 'wait beginWait', fc.constantFrom(0, 1)),
  ask(1, 'interrupt', fc.boolean()),
  ask(2, 'regMr', pd, memory, is(0), fc.nat({ max: 8 }), is(1)),
  ask(2, 'createCq', fc.constantFrom(1, 16)),
  ask(1, 'createSrq', pd, fc.integer({ min: 0, max: 9 }), fc.nat({ max: 5 })),
  ask(3, 'createQp', fc.record(INIT)),
  ask(3, 'modifyQp', queuePair, fc.record(CHANGE)),
  ask(1, 'createQp', nearly(INIT)),
  ask(1, 'modifyQp', queuePair, nearly(CHANGE)),
  ask(6, 'sender', queuePair, memory, fc.constantFrom(64, 128, 96, 65), words),
  ask(2, 'receiver', is(false), queuePair, memory, words),
  ask(1, 'receiver', is(true), srq, memory, words),
  ask(3, 'poller', cq, words),
  ask(2, 'reqNotifyCq', cq, fc.boolean()),
  ask(1, 'armSrq', srq, fc.nat()),
  ask(2, 'createAh', pd, gid, is(0)),
  ask(2, 'attachMcast detachMcast', queuePair, gid, is(0)),
  ask(4, 'attachMcast detachMcast', is(DATAGRAMS), is('::ffff:239.1.2.3'), is(0)),
  ask(2, 'createHelper', pd, number, number, number, fc.constantFrom(1, 4, 255), fc.constantFrom(1, 2, 9)),
  ask(4, 'addLane', helper, queuePair, queuePair),
  ask(2, 'startHelper', helper),
  ask(1, 'stopHelper destroyHelper', helper),
  ask(3, 'queryQp destroyQp', queuePair),
  ask(1, 'destroyAh', ah),
  ask(1, 'deregMr', region),
  ask(1, 'destroyCq', cq),
  ask(1, 'destroySrq', srq),
  ask(1, 'deallocPd', pd),
);

/** Something of each kind: anything in any order would seldom come by what is made from three other things. */
function furnish(context: RdmaContext): void {
  const pd = context.allocPd();
  context.allocPd();
  const memory = new Uint8Array(256);
  const [cq] = context.createCq(64);
  const [other] = context.createCq(16);
  const [srq] = context.createSrq(pd, 8, 4);
  const [, lkey] = context.regMr(pd, memory, 0, 256, 15);
  const [, served] = context.createHelper(pd, addon().addressOf(memory), 256, lkey, 4, 2);
  context.createHelper(pd, 0, 0, 0, 4, 2);
  const make = (to: number, from: number, shared: number | undefined, datagrams: boolean): number[] =>
    context.createQp({
      ...QUEUE_PAIR,
      maxSendSge: 4,
      maxRecvSge: 4,
      pd,
      sendCq: to,
      recvCq: from,
      srq: shared,
      datagrams,
    });
  make(cq, other, undefined, false);
  make(cq, cq, srq, false);
  assert.equal(make(cq, cq, undefined, true)[0], DATAGRAMS);
  for (let i = 0; i < 4; i++) make(served, served, undefined, false);
  context.createAh(pd, 'fe80::1', 0);
  // Used by none.
  context.createSrq(pd, 8, 4);
  context.createCq(16);
}

function run(context: RdmaContext, commands: readonly (readonly [string, readonly unknown[]])[]): void {
  const made: (() => void)[] = [];
  for (const [name, args] of commands) {
    // It would wait as long as it is told to.
    if (name === 'wait' && typeof args[0] === 'number' && args[0] > 1) continue;
    const method = (context as unknown as Record<string, (...all: unknown[]) => unknown>)[name]!;
    const result = survives(() => method.apply(context, [...args]), name);
    if (typeof result === 'function') made.push(result as () => void);
  }
  for (const call of made) survives(call);
}

fc.assert(
  fc.property(fc.array(command, { maxLength: 80, size: 'max' }), fc.boolean(), (commands, closes) => {
    const context = new Context('fake0', 1, 1, () => {});
    furnish(context);
    run(context, commands);
    // Else the collector closes it, or the end of the process does.
    if (closes) context.close();
  }),
  { numRuns: 400 },
);
fc.assert(
  fc.property(fc.array(anything, { maxLength: 4 }), (args) => {
    survives(() => new Context(...(args as [string, number, number, () => void])).close());
  }),
  { numRuns: 300 },
);
for (const self of [{}, undefined, 1, Object.create(Context.prototype), new (addon().Parker)(() => {})]) {
  for (const name of METHODS) {
    const method = (Context.prototype as unknown as Record<string, () => unknown>)[name]!;
    assert.throws(() => method.call(self as never), Error, name);
  }
}

// A wait that is interrupted, one that is over, and one that the end of its context finds.
const generations: number[] = [];
const context = new Context('fake0', 1, 1, (generation) => generations.push(generation));
for (let round = 0; round < 200; round++) {
  const generation = context.beginWait(round % 2 === 0 ? 60_000 : 1);
  if (round % 2 === 0) context.interrupt(false);
  while (generations.at(-1) !== generation) await new Promise(setImmediate);
  context.takeEvents();
}
context.beginWait(60_000);
context.close();
collect();
assert(errors > 0 && errors < calls, `${errors} of ${calls} calls failed`);
// Without a network there is no group to join.
const groups = done.get('attachMcast') === undefined ? ['attachMcast', 'detachMcast'] : [];
// Barriers have a program of their own, rdma-hostile-barrier.ts.
const elsewhere = METHODS.filter((name) => name.includes('Barrier'));
const never = METHODS.filter((name) => !done.has(name) && ![...groups, ...elsewhere].includes(name));
assert.deepEqual(never, [], `never carried out, so not tried: ${never}`);
console.log(`ended well: ${calls} calls, ${errors} refused`);
