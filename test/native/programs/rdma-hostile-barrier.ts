/**
 * Calls what there is of barriers in the addon (native/rdma_barrier.cc) in all wrong ways, on a device that is only
 * bookkeeping (native/test/fake_verbs.cc), which moves datagrams here: wrong arguments, wrong orders, packets that make
 * no sense, words that are given away, ends while barriers are under way. Each call returns, or throws an error that
 * says what is wrong, and what is right goes on.
 * Run by scripts/test-sanitize.mjs. Needs `--expose-gc`.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import { barrierSchedule } from '../../../src/collective/barrier-algorithms.ts';
import type { RdmaContext } from '../../../src/native.ts';
import { addon } from '../../support/addon.ts';

const { RdmaContext: Context } = addon();
assert(Context !== undefined, 'the addon was built without infiniband/verbs.h');
const collect = (globalThis as unknown as { gc: () => void }).gc;
const refused = (call: () => unknown, what: RegExp): void => assert.throws(call, what);

const GID = 'fe80::1';
/** Of the words of a group (native/rdma_barrier.h). */
const [DONE, PACKETS, NACKS, RESENT, FAILED] = [0, 2, 3, 5, 7];
const WORDS = 8;
const SOON = 200_000;

interface Member {
  readonly context: RdmaContext;
  readonly words: Int32Array;
  readonly news: Int32Array;
  readonly group: number;
  readonly at: readonly [number, number];
}

const shared = (words: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * words));

function stepsOf(rank: number, size: number): Int32Array {
  const schedule = barrierSchedule('dissemination', rank, size);
  return Int32Array.from(schedule.flatMap(({ sends, peer, tag }) => [Number(sends), peer, tag]));
}

function meet(size: number, loss: number): Member[] {
  const members = Array.from({ length: size }, (_, rank): Member => {
    const context = new Context!('fake0', 1, 1, () => {});
    const [news, words] = [shared(1), shared(WORDS)];
    const at = context.createBarriers(news, loss, rank);
    return { context, words, news, at, group: context.joinBarrier(rank, SOON, stepsOf(rank, size), words) };
  });
  for (const [rank, { context, group }] of members.entries())
    for (const [peer, { at, group: theirs }] of members.entries())
      if (peer !== rank) context.connectBarrier(group, peer, GID, 0, ...at, theirs);
  return members;
}

async function pass(members: readonly Member[], count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const number = members[0].words[DONE] + 1;
    for (const { context, group } of members) context.enterBarrier(group);
    for (const { words } of members) while (Atomics.load(words, DONE) !== number) await sleep(0);
  }
}

function wrongArguments(): void {
  const context = new Context!('fake0', 1, 1, () => {});
  const call = (name: keyof RdmaContext, ...args: unknown[]): unknown =>
    (context[name] as (...all: unknown[]) => unknown)(...args);
  const words = shared(WORDS);
  for (const early of [() => context.joinBarrier(0, 1, new Int32Array(0), words), () => context.enterBarrier(1)])
    refused(early, /EINVAL/);
  for (const news of [undefined, 1, {}, new Uint32Array(1), new Int32Array(0), new Float64Array(4), new Int32Array(1)])
    refused(() => call('createBarriers', news, 0, 0), /createBarriers/);
  for (const loss of [1, -0.1, Number.NaN, Infinity, '0', undefined])
    refused(() => call('createBarriers', shared(1), loss, 0), /createBarriers/);
  for (const seed of [-1, 2 ** 32, 0.5, undefined])
    refused(() => call('createBarriers', shared(1), 0, seed), /createBarriers/);
  context.createBarriers(shared(1), 0, 0);
  refused(() => context.createBarriers(shared(1), 0, 0), /EBUSY/);
  const good = [0, SOON, stepsOf(0, 4), words];
  for (const [at, values] of [
    [0, [-1, 2 ** 31, 0.5, undefined, '0']],
    [1, [0, -5, 2 ** 53, Number.NaN]],
    [2, [new Int32Array(4), new Uint32Array(3), new Int32Array(3 * 4097), undefined, 3]],
    [3, [shared(WORDS - 1), new Uint32Array(WORDS), new Int32Array(WORDS), new ArrayBuffer(64), null]],
  ] as const) {
    for (const value of values) refused(() => call('joinBarrier', ...good.with(at, value as never)), /joinBarrier/);
  }
  const group = context.joinBarrier(0, SOON, stepsOf(0, 4), words);
  const where = [group, 1, GID, 0, 2, 3, 4];
  for (const [at, values] of [
    [0, [0, -1, 2 ** 32, 'x', undefined]],
    [1, [-1, 0.5, {}]],
    [2, ['', 'fe80', 7, undefined, 'fe80::1\0']],
    [3, [-1, 65_536]],
    [4, [-1, 2 ** 24]],
    [5, [-1, 2 ** 31]],
    [6, [0, 2 ** 32]],
  ] as const) {
    for (const value of values)
      refused(() => call('connectBarrier', ...where.with(at, value as never)), /connectBarrier/);
  }
  // It has no step with itself, nor with a rank that is not there; and is told once.
  for (const rank of [0, 9]) refused(() => call('connectBarrier', ...where.with(1, rank)), /ENOENT/);
  call('connectBarrier', ...where);
  refused(() => call('connectBarrier', ...where), /EBUSY/);
  for (const name of ['enterBarrier', 'leaveBarrier'] as const) {
    for (const value of [0, -1, 2 ** 32, 0.5, undefined, '1', {}]) refused(() => call(name, value), new RegExp(name));
    refused(() => call(name, (group % 1000) + 1), /ENOENT/);
  }
  // Some of those it tells are not known, and none answers: it asks them in vain until it leaves.
  context.enterBarrier(group);
  refused(() => context.enterBarrier(group), /EBUSY/);
  context.leaveBarrier(group);
  refused(() => context.leaveBarrier(group), /ENOENT/);
  context.close();
  for (const name of ['createBarriers', 'joinBarrier', 'connectBarrier', 'enterBarrier', 'leaveBarrier'] as const)
    refused(() => call(name, group), /closed|GID/);
}

/** What is right, also where a group is half connected. */
async function right(): Promise<void> {
  for (const loss of [0, 0.3]) {
    const members = meet(5, loss);
    await pass(members, 100);
    const sum = (word: number): number => members.reduce((all, { words }) => all + words[word], 0);
    if (loss > 0) assert(sum(NACKS) > 0 && sum(RESENT) > 0);
    assert(sum(PACKETS) >= 5 * 3 * 100 && members.every(({ news }) => news[0] <= 100));
    for (const { context } of members) context.close();
  }
  const [one, two] = meet(2, 0);
  const group = one.context.joinBarrier(0, SOON, stepsOf(0, 2), shared(WORDS));
  collect();
  one.context.enterBarrier(group);
  await sleep(5);
  await pass([one, two], 20);
  one.context.leaveBarrier(group);
  for (const { context } of [one, two]) context.close();
}

/** Others send what they like, to keys that they guess or know. */
async function nonsense(): Promise<void> {
  const members = meet(3, 0);
  const liar = new Context!('fake0', 1, 1, () => {});
  liar.createBarriers(shared(1), 0, 9);
  const words = shared(WORDS);
  for (let i = 0; i < 200; i++) {
    const { at, group } = members[i % 3];
    // Steps with peers, tags and numbers that the other has not.
    const steps = Int32Array.from({ length: 3 * (1 + (i % 7)) }, (_, j) => (j % 3 === 0 ? 1 : (i * 7 + j * 5) % 70));
    const mine = liar.joinBarrier((i * 3) % 90, SOON, steps, words);
    for (const peer of new Set(steps.filter((_, j) => j % 3 === 1)))
      liar.connectBarrier(mine, peer, GID, 0, at[0], at[1], i % 2 === 0 ? group : i + 1);
    if (!(i % 2 === 0 && (i * 3) % 90 < 3)) liar.enterBarrier(mine);
    liar.leaveBarrier(mine);
    if (i % 10 === 0) await pass(members, 1);
  }
  liar.close();
  for (const { context } of members) context.close();
}

/**
 * The queue pair of a member's datagrams fails: here by a datagram that is too long, as it does on Soft-RoCE. Its
 * groups are told, it enters no barrier any more, and ends.
 */
async function failure(): Promise<void> {
  const members = meet(2, 0);
  await pass(members, 3);
  const { context } = members[1];
  const pd = context.allocPd();
  const [cq] = context.createCq(16);
  const sizes = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 2, maxRecvSge: 2, maxInlineData: 64 };
  const [qp] = context.createQp({ pd, sendCq: cq, recvCq: cq, ...sizes, signalAll: true, datagrams: true });
  for (const state of [1, 2, 3]) context.modifyQp(qp, { state, qkey: 7 });
  const slot = new Uint32Array(32);
  const post = Uint32Array.of(3, 0, 1, 0, 0);
  const { group, words, news, at } = members[0];
  // A message of 60 bytes in line, where 24 are expected.
  slot.set([2, 0, 0, 60, 60, context.createAh(pd, GID, 0)]);
  slot.set(at, 10);
  context.sender(qp, new Uint8Array(slot.buffer), 128, post)();
  assert.deepEqual([...post.subarray(3)], [1, 0]);
  while (Atomics.load(words, FAILED) === 0) await sleep(0);
  assert(news[0] > 0);
  refused(() => members[0].context.enterBarrier(group), /EIO/);
  const late = shared(WORDS);
  members[0].context.joinBarrier(0, SOON, stepsOf(0, 2), late);
  assert.equal(late[FAILED], 1);
  for (const { context: one } of members) one.close();
}

/** Ends while barriers are under way, of contexts and of threads. */
async function ends(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const members = meet(3, 0.1);
    await pass(members, 2);
    members[0].context.enterBarrier(members[0].group);
    if (i % 2 === 0) await sleep(1);
    for (const { context } of members) context.close();
  }
  for (let i = 0; i < 4; i++) {
    const worker = new Worker(fileURLToPath(import.meta.url), { argv: ['ends'] });
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
  }
}

if (isMainThread) {
  wrongArguments();
  await right();
  await nonsense();
  await failure();
  await ends();
  console.log('hostile calls of barriers ended well');
} else {
  const { parentPort } = await import('node:worker_threads');
  const members = meet(3, 0.1);
  await pass(members, 3);
  parentPort!.postMessage('going');
  for (;;) await pass(members, 1);
}
