/**
 * What rdma-hostile-helper.ts is about: a part with a helper, and other ranks that ask it, all on one context of a
 * device that is only bookkeeping (native/test/fake_verbs.cc), through the bare calls of the addon.
 */
import assert from 'node:assert/strict';
import type { RdmaContext } from '../../src/native.ts';
import { HelperRequest, HelperRequestWriter } from '../../src/verbs/helper.ts';
import { addon } from './addon.ts';

const native = addon();
const Context = native.RdmaContext!;

/** Pieces of a message; bytes of the part. */
export const [ENTRIES, PART] = [4, 4096];
const [INIT, RTR, RTS] = [1, 2, 3];
const [LOCAL_WRITE, ALL] = [1, 15];
export const SIGNALED = 2;
export const SEND = 2;

export async function until(what: () => boolean): Promise<void> {
  const began = Date.now();
  while (!what()) {
    assert(Date.now() - began < 60_000, `never: ${what}`);
    await new Promise(setImmediate);
  }
}

export function queuePair(
  context: RdmaContext,
  pd: number,
  cq: number,
  datagrams = false,
  srq?: number,
): [number, number] {
  const [handle, number] = context.createQp({
    ...{ pd, sendCq: cq, recvCq: cq, srq, datagrams },
    ...{ maxSendWr: 32, maxRecvWr: 32, maxSendSge: ENTRIES, maxRecvSge: ENTRIES, maxInlineData: 64 },
  });
  return [handle, number];
}

function connect(context: RdmaContext, handle: number, to: number): void {
  context.modifyQp(handle, { state: INIT, access: 0 });
  const peer = { gid: 'fe80::1', lid: 0, destQp: to, mtu: 3 };
  context.modifyQp(handle, { state: RTR, ...peer, maxDestRdAtomic: 1, minRnrTimer: 1, psn: 0 });
  context.modifyQp(handle, { state: RTS, rnrRetry: 7, retryCount: 7, maxRdAtomic: 1, timeout: 14, psn: 0 });
}

/** The end of a connection that is another rank's: posts, and is told what has completed. */
class End {
  readonly handle: number;
  readonly number: number;
  sent = 0;
  received = 0;
  failed = 0;
  readonly #slot = new Float64Array(16);
  readonly #sendWords = new Uint32Array(5);
  readonly #entries = new Float64Array(3 * ENTRIES);
  readonly #receiveWords = new Uint32Array(4);
  readonly #pollWords = new Uint32Array(8 + 8 * 64);
  readonly #send: () => void;
  readonly #receive: () => void;
  readonly #poll: () => void;

  constructor(context: RdmaContext, pd: number) {
    const [cq] = context.createCq(512);
    [this.handle, this.number] = queuePair(context, pd, cq);
    this.#send = context.sender(this.handle, new Uint8Array(this.#slot.buffer), 128, this.#sendWords);
    this.#receive = context.receiver(false, this.handle, this.#entries, this.#receiveWords);
    this.#poll = context.poller(cq, this.#pollWords);
    this.#pollWords[0] = 64;
  }

  /** @returns 0 or an errno */
  send(...entries: (readonly [address: number, bytes: number, lkey: number])[]): number {
    const words = new Uint32Array(this.#slot.buffer);
    words.set([SEND, SIGNALED, entries.length, 0, 0, 0]);
    entries.forEach(([address, bytes, lkey], i) => {
      this.#slot[8 + 2 * i] = address;
      words.set([bytes, lkey], 18 + 4 * i);
    });
    this.#sendWords.set([1, 0, 1]);
    this.#send();
    return this.#sendWords[4];
  }

  receive(...entries: (readonly [address: number, bytes: number, lkey: number])[]): number {
    this.#entries.set(entries.flat());
    this.#receiveWords.set([1, 0, entries.length]);
    this.#receive();
    return this.#receiveWords[3];
  }

  look(): this {
    this.#poll();
    for (let i = 0; i < this.#pollWords[1]; i++) {
      const [owner, , status] = this.#pollWords.subarray(8 + 8 * i);
      if (status !== 0) this.failed++;
      else if (owner >= 2 ** 31) this.received++;
      else this.sent++;
    }
    return this;
  }
}

export interface Lane {
  readonly ends: readonly [number, number];
  readonly control: End;
  readonly data: End;
}

/** A part with a helper, and other ranks' lanes, all on one device. */
export class Scene {
  readonly context = new Context('fake0', 1, 1, () => {});
  readonly pd = this.context.allocPd();
  readonly part = Uint8Array.from({ length: PART }, (_, i) => i * 7);
  readonly region = this.context.regMr(this.pd, this.part, 0, PART, ALL);
  /** Of the other ranks: where requests are written, and data are sent from and received to. */
  readonly memory = new Uint8Array(8192);
  readonly lkey = this.context.regMr(this.pd, this.memory, 0, 8192, LOCAL_WRITE)[1];
  readonly address = native.addressOf(this.memory);
  readonly writer = new HelperRequestWriter(this.memory.buffer, 0, ENTRIES);
  readonly helper: number;
  readonly cq: number;
  readonly lanes: Lane[] = [];

  constructor(lanes: number, most = lanes) {
    const { context, pd, region } = this;
    [this.helper, this.cq] = context.createHelper(pd, native.addressOf(this.part), PART, region[1], ENTRIES, most);
    for (let i = 0; i < lanes; i++) this.lanes.push(this.lane());
  }

  lane(): Lane {
    const { context, pd } = this;
    const [control, data] = [queuePair(context, pd, this.cq), queuePair(context, pd, this.cq)];
    for (const [handle] of [control, data]) context.modifyQp(handle, { state: INIT, access: 0 });
    context.addLane(this.helper, control[0], data[0]);
    const made = { ends: [control[0], data[0]] as const, control: new End(context, pd), data: new End(context, pd) };
    for (const [end, [handle, number]] of [[made.control, control] as const, [made.data, data] as const]) {
      connect(context, end.handle, number);
      connect(context, handle, end.number);
    }
    return made;
  }

  start(): this {
    this.context.startHelper(this.helper);
    return this;
  }

  /** Asks for messages of so many pieces of 8 bytes; the part's pieces lie one after the other, from `at` on. */
  ask(lane: Lane, what: number, at: number, ...messages: number[]): number {
    this.writer.begin(what);
    for (const pieces of messages) {
      for (let i = 0; i < pieces; i++, at += 8) this.writer.piece(at, 8);
      this.writer.endMessage();
    }
    return lane.control.send([this.address, this.writer.bytes, this.lkey]);
  }

  /** Asks with these words in the header, and as many bytes. */
  say(lane: Lane, words: readonly number[], bytes: number): number {
    new Uint32Array(this.memory.buffer).set(words);
    return lane.control.send([this.address, bytes, this.lkey]);
  }

  /** Puts and gets, so that all that a lane is for is done once. */
  async works(lane: Lane): Promise<void> {
    const at = 5000;
    const [control, data] = [lane.control, lane.data];
    const before = [control.look().received, data.look().sent, data.received];
    control.receive();
    assert.equal(this.ask(lane, HelperRequest.PUT, 64, 3, 1), 0);
    await until(() => control.look().received === before[0] + 1);
    this.memory.fill(0xab, at, at + 32);
    data.send([this.address + at, 10, this.lkey], [this.address + at + 10, 14, this.lkey]);
    data.send([this.address + at + 24, 8, this.lkey]);
    await until(() => data.look().sent === before[1] + 2);
    assert.deepEqual(this.part.subarray(64, 96), new Uint8Array(32).fill(0xab));
    for (const offset of [0, 16]) data.receive([this.address + at + 100 + offset, 16, this.lkey]);
    assert.equal(this.ask(lane, HelperRequest.GET, 72, 2, 2), 0);
    await until(() => data.look().received === before[2] + 2);
    assert.deepEqual(this.memory.subarray(at + 100, at + 132), this.part.subarray(72, 104));
    assert.equal(control.failed + data.failed, 0);
  }

  /** That a lane is broken: a message that its helper would never take in fails. */
  async breaks({ data }: Lane): Promise<void> {
    const before = data.look().failed;
    assert.equal(data.send(), 0);
    await until(() => data.look().failed > before);
  }

  stop(): void {
    this.context.stopHelper(this.helper);
    for (const { ends } of this.lanes) for (const handle of ends) this.context.destroyQp(handle);
    this.context.destroyHelper(this.helper);
  }
}
