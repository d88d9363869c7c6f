/**
 * Calls what there is of RDMA in the addon with all kinds of arguments, in all orders, on a device that is only
 * bookkeeping (native/test/fake_verbs.cc): scripts/test-sanitize.mjs has it loaded as libibverbs, and AddressSanitizer
 * look on. Each call returns, or throws an error that says what is wrong. Needs `--expose-gc`.
 */
import assert from 'node:assert/strict';
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

const refused = (call: () => unknown, what: RegExp): void => assert.throws(call, what);
let calls = 0;
let errors = 0;

/** Calls; passes if it returns or throws an Error with a code. */
function survives(call: () => unknown): unknown {
  calls++;
  try {
    return call();
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
  const [qp] = context.createQp(pd, cq, cq, -1, 4, 4, 2, 2, 64, true);
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

// Address handles and groups, one by one.
{
  const context = new Context('fake0', 1, 1, () => {});
  const pd = context.allocPd();
  const other = context.allocPd();
  const [cq] = context.createCq(16);
  const [qp] = context.createQp(pd, cq, cq, -1, 4, 4, 2, 2, 64, true, true);
  const [connection] = context.createQp(pd, cq, cq, -1, 4, 4, 2, 2, 64, true);
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
  context.close();
}

// Anything, in any order.
const METHODS = Object.getOwnPropertyNames(Context.prototype).filter((name) => name !== 'constructor');
const number = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: -1, max: 12 }) },
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
const command = fc.oneof(
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...METHODS), fc.array(anything, { maxLength: 14 })) },
  // Close to what is wanted.
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom('allocPd', 'takeEvents', 'asyncEvent'), fc.constant([])) },
  {
    weight: 2,
    arbitrary: fc.tuple(
      fc.constant('regMr'),
      fc.tuple(fc.nat({ max: 6 }), memory, fc.constant(0), fc.nat({ max: 8 }), fc.constant(1)),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('createCq'), fc.tuple(fc.constantFrom(1, 16))) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('createSrq'), fc.tuple(fc.nat({ max: 6 }), number, number)) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('createQp'),
      fc.tuple(
        ...([6, 8, 8] as const).map((max) => fc.nat({ max })),
        fc.integer({ min: -1, max: 6 }),
        ...([4, 4, 2, 2, 64] as const).map((value) => fc.constant(value)),
        fc.boolean(),
        fc.boolean(),
      ),
    ),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(
      fc.constant('sender'),
      fc.tuple(fc.nat({ max: 12 }), memory, fc.constantFrom(64, 128, 96, 65), words),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constant('receiver'), fc.tuple(fc.boolean(), fc.nat({ max: 12 }), memory, words)),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constant('poller'), fc.tuple(fc.nat({ max: 8 }), words)),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('createAh'), fc.tuple(fc.nat({ max: 4 }), gid, fc.constant(0))) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('destroyAh'), fc.tuple(fc.nat({ max: 12 }))) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constantFrom('attachMcast', 'detachMcast'),
      fc.tuple(fc.nat({ max: 12 }), gid, fc.constant(0)),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('reqNotifyCq'), fc.tuple(fc.nat({ max: 8 }), fc.boolean())) },
);

function run(context: RdmaContext, commands: readonly (readonly [string, readonly unknown[]])[]): void {
  const made: (() => void)[] = [];
  for (const [name, args] of commands) {
    // It would wait as long as it is told to.
    if (name === 'wait' && typeof args[0] === 'number' && args[0] > 1) continue;
    const method = (context as unknown as Record<string, (...all: unknown[]) => unknown>)[name]!;
    const result = survives(() => method.apply(context, [...args]));
    if (typeof result === 'function') made.push(result as () => void);
  }
  for (const call of made) survives(call);
}

fc.assert(
  fc.property(fc.array(command, { maxLength: 80 }), fc.boolean(), (commands, closes) => {
    const context = new Context('fake0', 1, 1, () => {});
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
console.log(`ended well: ${calls} calls, ${errors} refused`);
