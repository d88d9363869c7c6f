/**
 * Calls what there is of helpers in the addon (native/rdma_helper.cc) in all wrong ways, on a device that is only
 * bookkeeping (native/test/fake_verbs.cc), which moves messages here: wrong arguments, wrong orders, requests of other
 * ranks that make no sense, ends while its thread runs, two JavaScript threads. Each call returns, or throws an error
 * that says what is wrong; each bad request breaks its lane, and only that; the part stays as it was.
 * Run by scripts/test-sanitize.mjs. Needs `--expose-gc`. With an argument, only that part.
 */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { HELPER_GROUP, HELPER_MESSAGES, HelperRequest } from '../../../src/verbs/helper.ts';
import { ENTRIES, type Lane, PART, queuePair, Scene, SEND, SIGNALED, until } from '../../support/helper-scene.ts';

const collect = (globalThis as unknown as { gc: () => void }).gc;
const refused = (call: () => unknown, what: RegExp): void => assert.throws(call, what);

/** Requests that may wait (native/rdma_helper.h). */
const REQUESTS = 8;
const CAPACITY = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 4, maxRecvSge: 4, maxInlineData: 0 };

function wrongArguments(): void {
  const { context, pd, helper, cq, region } = new Scene(0, 1);
  const make = (...args: unknown[]): unknown => (context.createHelper as (...all: unknown[]) => unknown)(...args);
  refused(() => make(99, 0, 0, 0, 4, 1), /protection domain 99 does not exist/);
  refused(() => make(region[0], 0, 0, 0, 4, 1), /protection domain \d+ does not exist/);
  const good = [pd, 4096, 64, 1, 4, 1];
  for (const [at, values] of [
    [1, [-1, 0.5, 2 ** 53, Number.NaN, '8', undefined, 8n, Symbol('s')]],
    [2, [-1, 1.5, 2 ** 53, Infinity, null]],
    [3, [-1, 2 ** 32, {}]],
    [4, [0, 256, -0.5]],
    [5, [0, 2 ** 20 + 1, []]],
  ] as const) {
    for (const value of values) refused(() => make(...good.with(at, value as never)), /createHelper: an argument/);
  }
  // More than a device's queue, or anybody's memory, holds.
  refused(() => make(pd, 0, 0, 0, 255, 2 ** 20), /make a helper/);
  for (const call of ['addLane', 'startHelper', 'stopHelper', 'destroyHelper'] as const) {
    for (const value of [undefined, -1, 99, 0.5, '1', {}, cq, pd]) {
      refused(() => (context[call] as (...all: unknown[]) => void)(value, 1, 1), new RegExp(`${call}|helper`));
    }
  }
  refused(() => context.addLane(helper, 99, 98), /queue pair 99 does not exist/);
  const [one] = queuePair(context, pd, cq);
  refused(() => context.addLane(helper, one, helper), /queue pair \d+ does not exist/);
  context.destroyQp(one);
  context.close();
  for (const call of ['createHelper', 'addLane', 'startHelper', 'stopHelper', 'destroyHelper'] as const) {
    refused(() => (context[call] as (...all: unknown[]) => void)(helper, 1, 1, 1, 1, 1), /closed/);
  }
}

/** Queue pairs that a helper's thread must not be given: with completions elsewhere, or that others use. */
function wrongQueuePairs(): void {
  const scene = new Scene(1, 4);
  const { context, pd, helper, cq } = scene;
  const [taken] = scene.lanes[0].ends;
  const [own] = queuePair(context, pd, cq);
  const [other] = context.createCq(16);
  const [srq] = context.createSrq(pd, 8, 4);
  const neighbour = context.createHelper(pd, 0, 0, 0, ENTRIES, 2);
  const mixed = context.createQp({ ...CAPACITY, pd, sendCq: cq, recvCq: other })[0];
  for (const [wrong] of [
    [taken],
    [own],
    [mixed],
    queuePair(context, pd, other),
    queuePair(context, pd, neighbour[1]),
    queuePair(context, pd, cq, true),
    queuePair(context, pd, cq, false, srq),
  ]) {
    refused(() => context.addLane(helper, own, wrong), /EINVAL/);
    refused(() => context.addLane(helper, wrong, own), /EINVAL/);
    if (wrong !== taken && wrong !== own) context.destroyQp(wrong);
  }
  refused(() => context.addLane(neighbour[0], taken, own), /EINVAL/);
  refused(() => context.destroyQp(taken), /EBUSY/);
  for (let i = 0; i < 3; i++) scene.lanes.push(scene.lane());
  const [last] = queuePair(context, pd, cq);
  refused(() => context.addLane(helper, own, last), /EINVAL/);
  // Refused lanes have left nothing behind.
  for (const handle of [own, last]) context.destroyQp(handle);
  context.destroyHelper(neighbour[0]);
  scene.stop();
  context.close();
}

async function wrongOrders(): Promise<void> {
  const scene = new Scene(2, 3).start();
  const { context, pd, helper, cq } = scene;
  const lane = scene.lanes[0];
  refused(() => context.startHelper(helper), /EINVAL/);
  refused(() => context.destroyCq(cq), /EBUSY/);
  refused(() => context.deallocPd(pd), /EBUSY/);
  refused(() => context.destroyQp(lane.ends[0]), /EBUSY/);
  const late = [queuePair(context, pd, cq)[0], queuePair(context, pd, cq)[0]] as const;
  refused(() => context.addLane(helper, ...late), /EINVAL/);
  for (const handle of late) context.destroyQp(handle);
  await scene.works(lane);
  // Its queue is a queue like others, of which a program may take what it will: requests are lost then, not more.
  const words = new Uint32Array(8 + 64);
  const poll = context.poller(cq, words);
  words[0] = 8;
  for (let i = 0; i < 50; i++) poll();
  context.reqNotifyCq(cq, false);
  context.stopHelper(helper);
  context.stopHelper(helper);
  // It has let go of its queue pairs, so it does not start again.
  refused(() => context.startHelper(helper), /EINVAL/);
  refused(() => context.destroyHelper(helper), /EBUSY/);
  for (const { ends } of scene.lanes) for (const handle of ends) context.destroyQp(handle);
  refused(() => context.startHelper(helper), /EINVAL/);
  context.destroyHelper(helper);
  for (const call of [() => poll(), () => context.destroyHelper(helper), () => context.stopHelper(helper)])
    refused(call, /was destroyed|does not exist/);
  context.close();

  // Never started; and ended by the call that destroys it, which refuses as long as there are queue pairs.
  const idle = new Scene(1);
  idle.context.stopHelper(idle.helper);
  refused(() => idle.context.startHelper(idle.helper), /EINVAL/);
  refused(() => idle.context.addLane(idle.helper, ...idle.lanes[0].ends), /EINVAL/);
  idle.stop();
  const brief = new Scene(1).start();
  refused(() => brief.context.destroyHelper(brief.helper), /EBUSY/);
  brief.stop();
  for (const { context: left } of [idle, brief]) left.close();
}

const HEADER = 8 + 4 * HELPER_GROUP;

async function wrongRequests(): Promise<void> {
  const piece = (scene: Scene, offset: number, bytes: number): void => {
    new Float64Array(scene.memory.buffer, HEADER, 2).set([offset, bytes]);
  };
  const one = (scene: Scene, lane: Lane, offset: number, bytes: number): number => {
    piece(scene, offset, bytes);
    return scene.say(lane, [HelperRequest.GET, 1, 1], HEADER + 16);
  };
  const requests: Record<string, (scene: Scene, lane: Lane) => unknown> = {
    'of no bytes': (_, lane) => lane.control.send(),
    'shorter than a header': (scene, lane) => scene.say(lane, [HelperRequest.PUT, 1, 1], HEADER - 4),
    'longer than its pieces': (scene, lane) => scene.say(lane, [HelperRequest.PUT, 1, 1], HEADER + 32),
    'shorter than its pieces': (scene, lane) => scene.say(lane, [HelperRequest.GET, 1, 2], HEADER + 16),
    'longer than any': (scene, lane) => scene.say(lane, [HelperRequest.PUT, 8, ...Array(8).fill(4)], 8000),
    'of another kind': (scene, lane) => scene.say(lane, [3, 1, 1], HEADER + 16),
    'of no kind': (scene, lane) => scene.say(lane, [0, 1, 1], HEADER + 16),
    'of no message': (scene, lane) => scene.say(lane, [HelperRequest.PUT, 0], HEADER),
    'of too many messages': (scene, lane) =>
      scene.say(lane, [HelperRequest.GET, HELPER_GROUP + 1, ...Array(8).fill(1)], HEADER + 9 * 16),
    'of 2^32 - 1 messages': (scene, lane) => scene.say(lane, [HelperRequest.GET, 2 ** 32 - 1, 1], HEADER + 16),
    'of a message without pieces': (scene, lane) => scene.say(lane, [HelperRequest.GET, 2, 1, 0], HEADER + 16),
    'of too many pieces': (scene, lane) =>
      scene.say(lane, [HelperRequest.GET, 1, ENTRIES + 1], HEADER + (ENTRIES + 1) * 16),
    'whose pieces overflow': (scene, lane) => scene.say(lane, [HelperRequest.GET, 2, 2 ** 31, 2 ** 31], HEADER + 16),
    'behind the part': (scene, lane) => one(scene, lane, PART - 7, 8),
    'far behind the part': (scene, lane) => one(scene, lane, 2 ** 53, 1),
    'before the part': (scene, lane) => one(scene, lane, -8, 8),
    'at no number': (scene, lane) => one(scene, lane, Number.NaN, 8),
    'at a half': (scene, lane) => one(scene, lane, 0.5, 8),
    'of endless bytes': (scene, lane) => one(scene, lane, 0, Infinity),
    'of 2^32 bytes': (scene, lane) => one(scene, lane, 0, 2 ** 32),
    'of less than no bytes': (scene, lane) => one(scene, lane, 8, -8),
  };
  const scene = new Scene(1 + Object.keys(requests).length).start();
  const { part, lanes } = scene;
  await scene.works(lanes[0]);
  const before = part.slice();
  for (const [i, [name, send]] of Object.entries(requests).entries()) {
    send(scene, lanes[1 + i]);
    await scene.breaks(lanes[1 + i]).catch((cause) => assert.fail(`a request ${name} broke nothing: ${cause}`));
  }
  assert.deepEqual(part, before);
  await scene.works(lanes[0]);
  scene.stop();
  scene.context.close();
}

/** Requests that are right, but too many, of ranks that take nothing in, or send nothing. */
async function tooMuch(): Promise<void> {
  const scene = new Scene(4).start();
  const [works, gets, puts, small] = scene.lanes;
  // Each waits for those before, as nothing is received.
  for (const _ of Array(3 + HELPER_MESSAGES / HELPER_GROUP + REQUESTS)) {
    const sent = gets.control.look().sent;
    if (scene.ask(gets, HelperRequest.GET, 0, ...Array(HELPER_GROUP).fill(1)) !== 0) break;
    await until(() => gets.control.look().failed > 0 || gets.control.sent > sent);
    if (gets.control.failed > 0) break;
  }
  await scene.breaks(gets);
  for (let i = 0; i <= HELPER_MESSAGES / HELPER_GROUP; i++) {
    const { sent } = puts.control.look();
    for (let ready = 0; ready < 2; ready++) puts.control.receive();
    scene.ask(puts, HelperRequest.PUT, 0, ...Array(HELPER_GROUP).fill(1));
    await until(() => puts.control.look().failed > 0 || puts.control.sent > sent);
  }
  await until(() => {
    scene.ask(puts, HelperRequest.PUT, 0, 1);
    return puts.control.look().failed > 0;
  });
  // A message that its receive has no room for, and answers that nobody takes in.
  small.control.receive();
  scene.ask(small, HelperRequest.PUT, 0, 1);
  await until(() => small.control.look().received === 1);
  small.data.send([scene.address, 9, scene.lkey]);
  await until(() => small.data.look().failed > 0);
  await scene.works(works);
  scene.stop();
  scene.context.close();
}

/** The program posts to a helper's queue pairs itself, with identifiers that the helper gives or would never give. */
async function forgedIdentifiers(): Promise<void> {
  const lanes = 24;
  const scene = new Scene(lanes).start();
  const { context, pd, cq } = scene;
  const sendWords = new Uint32Array(5);
  const receiveWords = new Uint32Array(4);
  const slot = new Float64Array(16);
  new Uint32Array(slot.buffer).set([SEND, SIGNALED, 0]);
  // Of its queue, but of no lane: requests complete at once, and those of a broken connection in error.
  const [stray] = queuePair(context, pd, cq);
  const strayPost = context.sender(stray, new Uint8Array(slot.buffer), 128, sendWords);
  const counts = [0, 7, 8, 0xffff, 0x1_0000, 0x2_0000, 0x3_0000, 0x3_0008, 0x3_ffff, 0x4_0000, 2 ** 32 - 1];
  for (const count of counts) {
    for (const owner of [0, 1, 2, lanes - 1, lanes, 2 ** 20, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]) {
      sendWords.set([owner, count, 1]);
      strayPost();
    }
  }
  context.modifyQp(stray, { state: 6 });
  const strayReceive = context.receiver(false, stray, new Float64Array(3), receiveWords);
  for (const owner of [3, lanes, 2 ** 32 - 1]) {
    receiveWords.set([owner, 0, 0]);
    strayReceive();
  }
  for (const end of [scene.lanes[4].control, scene.lanes[4].data]) end.receive();
  for (const handle of scene.lanes[4].ends) {
    const post = context.sender(handle, new Uint8Array(slot.buffer), 128, sendWords);
    sendWords.set([4, 0x3_0001, 1]);
    post();
  }
  await scene.works(scene.lanes[5]);
  // What it serves may go away under it.
  context.deregMr(scene.region[0]);
  scene.lanes[6].data.receive([scene.address, 8, scene.lkey]);
  scene.ask(scene.lanes[6], HelperRequest.GET, 0, 1);
  await scene.breaks(scene.lanes[6]);
  scene.context.stopHelper(scene.helper);
  context.destroyQp(stray);
  scene.stop();
  context.close();
}

/** A scene whose helper has much to do. */
async function busy(lanes = 3): Promise<Scene> {
  const scene = new Scene(lanes).start();
  for (const lane of scene.lanes) {
    await scene.works(lane);
    scene.ask(lane, HelperRequest.GET, 0, ...Array(HELPER_GROUP).fill(2));
    lane.data.receive([scene.address + 7000, 16, scene.lkey]);
  }
  return scene;
}

async function endsWhileItRuns(): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const scene = await busy();
    if (round % 3 === 0) scene.stop();
    if (round % 3 !== 2) scene.context.close();
    // Others are collected, or found by the end of the process.
  }
  for (let i = 0; i < 20; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Workers whose helpers run: they end by themselves, are terminated, or leave with the process. */
async function twoThreads(): Promise<void> {
  const workers = ['ends', 'exits', 'terminated', 'ends', 'terminated', 'exits'].map((how) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: how });
    const ended = new Promise<number>((resolve, reject) => {
      worker.on('error', reject);
      worker.on('exit', resolve);
    });
    const runs = new Promise((resolve) => worker.on('message', resolve));
    return { how, worker, ended, runs };
  });
  for (const { how, worker, ended, runs } of workers) {
    const scene = await busy();
    await Promise.race([runs, ended]);
    if (how === 'terminated') await worker.terminate();
    const code = await ended;
    assert.equal(code, how === 'exits' ? 7 : how === 'terminated' ? 1 : 0, how);
    scene.stop();
    scene.context.close();
  }
}

const PARTS = [
  ...[wrongArguments, wrongQueuePairs, wrongOrders, wrongRequests],
  ...[tooMuch, forgedIdentifiers, endsWhileItRuns, twoThreads],
];

if (isMainThread) {
  const [, , only] = process.argv;
  for (const part of PARTS) {
    if ((only ?? part.name) !== part.name) continue;
    console.log(part.name);
    await part();
  }
  // The end of the process finds it.
  await busy();
  console.log('ended well');
} else {
  const { parentPort } = await import('node:worker_threads');
  for (let round = 0; round < 3; round++) {
    const scene = await busy();
    if (round < 2) scene.stop();
  }
  parentPort!.postMessage('runs');
  if (workerData === 'exits') process.exit(7);
  if (workerData === 'terminated') {
    const scene = new Scene(1).start();
    while (true) await scene.works(scene.lanes[0]);
  }
}
