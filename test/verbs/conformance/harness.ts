/**
 * What the conformance suite runs on, and the small vocabulary that its topics are written in.
 *
 * A topic is a function of a `Suite`. It tests what the verbs promise, over any provider: it waits for completions
 * instead of expecting them at once, and asks limits and capabilities instead of assuming them. What a provider does
 * not claim is skipped, and the test's name says why.
 */
import { expect, onTestFinished, test } from 'vitest';
import { type CompletionQueue, WcStatus, wcStatusName } from '../../../src/verbs/completion-queue.ts';
import type { AsyncEvent, Capabilities, Context, DeviceAttributes } from '../../../src/verbs/device.ts';
import { Access, type Memory, type MemoryRegion, type ProtectionDomain } from '../../../src/verbs/memory.ts';
import { type QpAttributes, QpState, type QueuePair, SendFlag } from '../../../src/verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../../src/verbs/shared-receive-queue.ts';

/** How a provider is brought up for tests. */
export interface Harness {
  /** Opens `count` devices that can reach each other, all used by this thread. */
  open(count: number): Context[] | Promise<Context[]>;
  /** Where the devices' time is not that of the clock. */
  readonly clock?: Clock;
}

/** The time that devices go by. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Lets so many milliseconds pass; `poll` is called meanwhile. */
  pass(milliseconds: number, poll: () => void): void;
}

const REAL: Clock = {
  now: () => performance.now(),
  pass(milliseconds, poll) {
    const since = performance.now();
    while (performance.now() - since < milliseconds) poll();
  },
};

export interface Suite {
  readonly device: DeviceAttributes;
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  /** Whether registered memory stays what it was when its buffer is detached, as pages of a process do. */
  readonly keepsPages: boolean;
  /** A test with fresh devices: their ends are not yet connected. */
  check(name: string, run: (ends: End[]) => unknown, count?: number): void;
  /** The same, where the provider claims `capability`. */
  checkIf(capability: keyof Capabilities, name: string, run: (ends: End[]) => unknown, count?: number): void;
}

export function suiteOver(harness: Harness, device: DeviceAttributes, capabilities: Capabilities): Suite {
  const check: Suite['check'] = (name, run, count = 2) => {
    test(name, async () => {
      const contexts = await harness.open(count);
      onTestFinished(() => {
        for (const context of contexts) context.close();
      });
      await run(contexts.map((context) => new End(context)));
    });
  };
  return {
    device,
    capabilities,
    clock: harness.clock ?? REAL,
    keepsPages: harness.clock === undefined,
    check,
    checkIf(capability, name, run, count) {
      if (capabilities[capability]) check(name, run, count);
      else test.skip(`${name} (not tested: ${device.name} does not claim ${capability})`, () => {});
    },
  };
}

export const ALL_ACCESS = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/** How long a test waits for a completion or event that must come, and for one that must not. */
const PATIENCE_MS = 60_000;
const QUIET_MS = 5;

/** A completion, copied out of the queue. */
export interface Completion {
  readonly wrId: number;
  readonly status: string;
  readonly opcode: number;
  readonly flags: number;
  readonly byteLen: number;
  readonly immData: number;
  readonly qpNum: number;
  /** Of a datagram. */
  readonly srcQp?: number;
}

export interface EndOptions {
  readonly cqe?: number;
  readonly maxSendWr?: number;
  readonly maxRecvWr?: number;
  readonly maxSendSge?: number;
  readonly maxRecvSge?: number;
  readonly maxInlineData?: number;
  readonly signalAll?: boolean;
  readonly qpType?: number;
  /** Makes a shared receive queue of so many receives. */
  readonly srqWr?: number;
  readonly srq?: SharedReceiveQueue;
  readonly pd?: ProtectionDomain;
}

/** One device with what a test needs of it: a domain, memory that is one region, and a queue pair. */
export class End {
  readonly context: Context;
  pd!: ProtectionDomain;
  memory!: Memory;
  /** The whole of `memory`. */
  bytes!: Uint8Array;
  region!: MemoryRegion;
  sendCq!: CompletionQueue;
  recvCq!: CompletionQueue;
  srq: SharedReceiveQueue | undefined;
  qp!: QueuePair;

  constructor(context: Context) {
    this.context = context;
  }

  /** Makes everything but the connection. Memory bytes are 1, 2, 3, … modulo 251, so that a misplaced one shows. */
  make(options: EndOptions = {}, bytes = 4096): this {
    const { cqe = 64, srqWr, srq, pd, ...queuePair } = options;
    const { context } = this;
    this.pd = pd ?? context.allocPd();
    this.memory = context.allocateMemory(bytes);
    this.bytes = new Uint8Array(this.memory.buffer, 0, bytes);
    this.bytes.set(pattern(bytes));
    this.region = this.pd.registerMemory(this.memory, 0, bytes, ALL_ACCESS);
    this.sendCq = context.createCq(cqe);
    this.recvCq = context.createCq(cqe);
    this.srq = srq ?? (srqWr === undefined ? undefined : this.pd.createSharedReceiveQueue({ maxWr: srqWr }));
    this.qp = this.pd.createQueuePair({
      sendCq: this.sendCq,
      recvCq: this.recvCq,
      ...(this.srq && { srq: this.srq }),
      ...queuePair,
    });
    return this;
  }

  /** The address of byte `offset` of the memory. */
  at(offset: number): number {
    return this.memory.address + offset;
  }

  receive(wrId: number, offset: number, length: number): void {
    const post = this.srq ?? this.qp;
    post.postRecv(wrId, this.region.lkey, this.at(offset), length);
  }
}

export function pattern(bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, i) => (i % 251) + 1);
}

/** Brings a queue pair from RESET to RTS, with all rights. */
export function bringUp(qp: QueuePair, dest: QueuePair, attributes: Partial<QpAttributes> = {}): void {
  qp.modify({ access: ALL_ACCESS, ...attributes, state: QpState.INIT });
  qp.modify({ ...attributes, state: QpState.RTR, dest: dest.address });
  qp.modify({ ...attributes, state: QpState.RTS });
}

/** Makes both ends and connects their queue pairs. `attributes` are of both sides. */
export function connect(a: End, b: End, options: EndOptions = {}, attributes: Partial<QpAttributes> = {}): void {
  a.make(options);
  b.make(options);
  bringUp(a.qp, b.qp, attributes);
  bringUp(b.qp, a.qp, attributes);
}

function copyOf(cq: CompletionQueue, n: number): Completion[] {
  const { wc } = cq;
  return Array.from({ length: n }, (_, i) => ({
    wrId: wc.wrId[i],
    status: wcStatusName(wc.status[i]),
    opcode: wc.opcode[i],
    flags: wc.flags[i],
    byteLen: wc.byteLen[i],
    immData: wc.immData[i],
    qpNum: wc.qpNum[i],
  }));
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Polls until `n` completions have come. */
export async function poll(cq: CompletionQueue, n: number): Promise<Completion[]> {
  const found: Completion[] = [];
  const deadline = performance.now() + PATIENCE_MS;
  while (found.length < n) {
    found.push(...copyOf(cq, cq.poll(n - found.length)));
    if (found.length >= n) break;
    if (performance.now() > deadline) {
      throw new Error(`${found.length} of ${n} completions came in ${PATIENCE_MS} ms: ${JSON.stringify(found)}`);
    }
    await turn();
  }
  return found;
}

/** Polls for the one completion of a request that succeeded. */
export async function pollSuccess(cq: CompletionQueue): Promise<Completion> {
  const [completion] = await poll(cq, 1);
  expect(completion.status).toBe(wcStatusName(WcStatus.SUCCESS));
  return completion;
}

/** Statuses and wrIds of the next `n` completions. */
export async function pollStatuses(cq: CompletionQueue, n: number): Promise<[number, string][]> {
  return (await poll(cq, n)).map(({ wrId, status }) => [wrId, status]);
}

/** Nothing comes, for as long as one can wait for nothing. */
export async function expectNothing(...cqs: CompletionQueue[]): Promise<void> {
  const deadline = performance.now() + QUIET_MS;
  do {
    for (const cq of cqs) expect(copyOf(cq, cq.poll(16))).toEqual([]);
    await turn();
  } while (performance.now() < deadline);
}

/** Waits for the next asynchronous event. */
export async function nextEvent(context: Context): Promise<AsyncEvent> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const event = context.pollAsyncEvent();
    if (event !== undefined) return event;
    if (performance.now() > deadline) throw new Error(`no asynchronous event came in ${PATIENCE_MS} ms`);
    await turn();
  }
}

/** Waits until a queue pair is in a state: that a peer moves it takes time on a device. */
export async function reaches(qp: QueuePair, state: number): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (qp.state !== state && performance.now() < deadline) await turn();
  expect(qp.state).toBe(state);
}

/** A call is refused in the words of the verbs. */
export function refused(call: () => unknown, words: RegExp): void {
  expect(call).toThrowError(expect.objectContaining({ code: 'ERR_VERBS', message: expect.stringMatching(words) }));
}

export const name = (status: number): string => wcStatusName(status);

/** Posts one request: `build` makes it and sets its data. */
export function post(end: End, build: (qp: QueuePair) => void): void {
  end.qp.wrStart();
  build(end.qp);
  end.qp.wrComplete();
}

/** A signalled RDMA write of `length` bytes of `from`'s memory to `to`'s. */
export function write(from: End, to: End, wrId: number, fromAt: number, toAt: number, length: number): void {
  post(from, (qp) => {
    qp.wrRdmaWrite(wrId, SendFlag.SIGNALED, to.region.rkey, to.at(toAt));
    qp.wrSetSge(from.region.lkey, from.at(fromAt), length);
  });
}

export function send(from: End, wrId: number, fromAt: number, length: number, flags: number = SendFlag.SIGNALED): void {
  post(from, (qp) => {
    qp.wrSend(wrId, flags);
    qp.wrSetSge(from.region.lkey, from.at(fromAt), length);
  });
}
