/**
 * The fabric of ranks that are worker threads of one process. It needs no addon.
 *
 * Every allocation is a `SharedArrayBuffer` of its own. Another thread gets it from the broker, which lives in the
 * thread that started them all: the request goes out as a message, the answer is awaited with `Atomics.wait` and taken
 * with `receiveMessageOnPort`, so attaching works in the middle of a synchronous call. That thread must keep its event
 * loop free.
 *
 * An allocation is announced to the broker and not acknowledged. No thread can ask for it too early: a handle is
 * published after its announcement was put into the port's queue, and a broker that does not know the handle empties
 * the owner's queue before it answers.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { RmaError, show } from '../../errors.ts';
import { bytesIn } from '../../intrinsics.ts';
import { BellParking, type BellWaiter, loadRoot, Row, ring, rowOf, storeRoot } from './bells.ts';
import type { Allocation, Attachment, EmulatorFabric } from './emulator-fabric.ts';
import { allocateShared } from './shared-buffer.ts';

/** Longest wait for the broker, in milliseconds: it answers in microseconds unless its thread is blocked. */
const ANSWER_WITHIN = 10_000;

type Request =
  | { readonly kind: 'allocate'; readonly handle: number; readonly memory: SharedArrayBuffer }
  | { readonly kind: 'free'; readonly handle: number }
  | {
      readonly kind: 'attach';
      readonly member: number;
      readonly handle: number;
      /** Number of this request, written into `answered` when the answer is in the queue. */
      readonly id: number;
      readonly answered: Int32Array;
    };

interface Answer {
  readonly id: number;
  readonly memory: SharedArrayBuffer | undefined;
}

/** What the broker knows of a member: how it is reached, and what it has allocated. */
interface Owner {
  readonly port: MessagePort;
  readonly memory: Map<number, SharedArrayBuffer>;
}

/**
 * Pieces are reported together, so many bytes at once that the C library maps fresh memory for them: memory that it has
 * used before it would clear, and so touch.
 */
const REPORT_BYTES = 33 << 20;
/** So many reports are held: young ones would be collected without a look at the old shared buffers. */
const HELD = 3;
const reports: ArrayBuffer[] = [];
let unreported = 0;

/**
 * Tells this thread's collector that so much shared memory may be garbage. V8 does not count `SharedArrayBuffer`s when
 * it decides whether to collect (each thread would count the same memory), so windows made and freed by the thousand
 * would never be given back. A plain buffer of the same size does count, until it is collected; its pages are never
 * touched, so it takes address space only.
 */
function mayBeCollected(bytes: number): void {
  unreported += bytes;
  if (unreported < REPORT_BYTES) return;
  try {
    reports.push(new ArrayBuffer(unreported));
  } catch {
    // There is no room for it, so a collection has just been tried.
  }
  unreported = 0;
  if (reports.length >= HELD) reports.length = 0;
}

/** Keeps what each thread has allocated until it frees it or ends; hands it to the others. */
export class Broker {
  readonly #owners = new Map<number, Owner>();

  /** A port to be transferred to the thread that is this member. It does not keep this thread's event loop alive. */
  connect(member: number): MessagePort {
    this.disconnect(member);
    const { port1: port, port2 } = new MessageChannel();
    const owner: Owner = { port, memory: new Map() };
    this.#owners.set(member, owner);
    port.on('message', (request: Request) => this.#serve(owner, request));
    // The other end closes when its thread ends, in whatever way.
    port.on('close', () => {
      if (this.#owners.get(member) === owner) this.#owners.delete(member);
    });
    port.unref();
    return port2;
  }

  /** Forgets a thread that has ended, and its memory; what others have attached stays theirs. Idempotent. */
  disconnect(member: number): void {
    const owner = this.#owners.get(member);
    if (owner === undefined) return;
    this.#owners.delete(member);
    owner.memory.clear();
    owner.port.close();
  }

  /** Bytes that a member has allocated and not freed. */
  bytesOf(member: number): number {
    let bytes = 0;
    for (const memory of this.#owners.get(member)?.memory.values() ?? []) bytes += memory.byteLength;
    return bytes;
  }

  #serve(owner: Owner, request: Request): void {
    if (request.kind === 'allocate') owner.memory.set(request.handle, request.memory);
    else if (request.kind === 'free') {
      mayBeCollected(owner.memory.get(request.handle)?.byteLength ?? 0);
      owner.memory.delete(request.handle);
    } else {
      const answer: Answer = { id: request.id, memory: this.#find(request.member, request.handle) };
      owner.port.postMessage(answer);
      Atomics.store(request.answered, 0, request.id);
      Atomics.notify(request.answered, 0);
    }
  }

  #find(member: number, handle: number): SharedArrayBuffer | undefined {
    const owner = this.#owners.get(member);
    if (owner === undefined) return undefined;
    // A freed allocation must not be found either, so the queue is emptied in any case.
    for (;;) {
      const next = receiveMessageOnPort(owner.port) as { message: Request } | undefined;
      if (next === undefined) return owner.memory.get(handle);
      this.#serve(owner, next.message);
    }
  }
}

/**
 * Joins the fabric as this `member`.
 * @param fabricTable `size` rows of shared memory, zero at first (`Control.fabric`)
 * @param broker what `Broker.connect(member)` gave
 * @param answerWithin milliseconds for which `attach` waits for the broker
 */
export function openThreadFabric(
  fabricTable: Int32Array,
  member: number,
  size: number,
  broker: MessagePort,
  answerWithin: number = ANSWER_WITHIN,
): EmulatorFabric {
  return new ThreadFabric(fabricTable, member, size, broker, answerWithin);
}

class ThreadFabric implements EmulatorFabric {
  readonly member: number;
  readonly size: number;
  readonly parking: BellParking;
  readonly #table: Int32Array;
  readonly #broker: MessagePort;
  readonly #answerWithin: number;
  readonly #own = new Map<number, SharedArrayBuffer>();
  readonly #answered = new Int32Array(new SharedArrayBuffer(4));
  #requests = 0;
  /** Handles are never used again, so a stale one finds nothing. */
  #nextHandle = 1;
  #closed = false;

  constructor(table: Int32Array, member: number, size: number, broker: MessagePort, answerWithin: number) {
    this.#answerWithin = answerWithin;
    this.member = member;
    this.size = size;
    this.#table = table;
    this.#broker = broker;
    this.parking = new BellParking(table, member, new ThreadWaiter(table));
    const row = rowOf(member);
    Atomics.store(table, row + Row.PID, process.pid);
    Atomics.store(table, row + Row.READY, 1);
  }

  allocate(byteLength: number): Allocation {
    this.#mustBeOpen('allocate');
    return this.#share(allocateShared(byteLength));
  }

  adopt(buffer: ArrayBufferLike): Allocation | undefined {
    this.#mustBeOpen('adopt');
    return buffer instanceof SharedArrayBuffer ? this.#share(buffer) : undefined;
  }

  #share(buffer: SharedArrayBuffer): Allocation {
    const handle = this.#nextHandle++;
    this.#own.set(handle, buffer);
    this.#send({ kind: 'allocate', handle, memory: buffer });
    return { buffer, handle, byteLength: bytesIn(buffer) };
  }

  free(allocation: Allocation): void {
    if (this.#closed || !this.#own.delete(allocation.handle)) return;
    this.#send({ kind: 'free', handle: allocation.handle });
    mayBeCollected(allocation.byteLength);
  }

  attach(member: number, handle: number, byteLength: number): Attachment {
    this.#mustBeOpen('attach');
    if (!Number.isInteger(member) || member < 0 || member >= this.size) {
      throw new RmaError(
        'ERR_VERBS',
        `attach: member ${show(member)} does not exist; the fabric has ${this.size} members`,
      );
    }
    const buffer = member === this.member ? this.#own.get(handle) : this.#ask(member, handle);
    if (buffer === undefined || buffer.byteLength !== byteLength) {
      throw new RmaError(
        'ERR_VERBS',
        `attach: member ${member} has no memory ${show(handle)} of ${show(byteLength)} bytes, or has freed it`,
      );
    }
    return {
      buffer,
      release: () => {
        // After its end this thread allocates nothing more here.
        if (!this.#closed) mayBeCollected(byteLength);
      },
    };
  }

  publishRoot(allocation: Allocation): void {
    this.#mustBeOpen('publishRoot');
    storeRoot(this.#table, this.member, allocation.handle, allocation.byteLength);
  }

  root(member: number): { readonly handle: number; readonly byteLength: number } | undefined {
    return loadRoot(this.#table, member);
  }

  wake(member: number): void {
    ring(this.#table, member, this.#wakeWord);
  }

  readonly #wakeWord = (index: number): void => {
    Atomics.notify(this.#table, index);
  };

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const row = rowOf(this.member);
    Atomics.store(this.#table, row + Row.READY, 0);
    Atomics.store(this.#table, row + Row.ROOT_READY, 0);
    this.#own.clear();
    // The broker forgets this member when the port closes.
    this.#broker.close();
    this.parking.close();
  }

  #mustBeOpen(call: string): void {
    if (this.#closed) throw new RmaError('ERR_VERBS', `${call}: this fabric is closed`);
  }

  #send(request: Request): void {
    this.#broker.postMessage(request);
  }

  #ask(member: number, handle: number): SharedArrayBuffer | undefined {
    const id = ++this.#requests;
    const deadline = performance.now() + this.#answerWithin;
    this.#send({ kind: 'attach', member, handle, id, answered: this.#answered });
    for (;;) {
      const seen = Atomics.load(this.#answered, 0);
      const next = receiveMessageOnPort(this.#broker) as { message: Answer } | undefined;
      // An answer to an earlier request came after its deadline.
      if (next?.message.id === id) return next.message.memory;
      if (next !== undefined) continue;
      const left = deadline - performance.now();
      if (left <= 0) {
        throw new RmaError(
          'ERR_VERBS',
          `attach: the thread that started the ranks did not answer within ${this.#answerWithin} ms; ` +
            'it must not block its event loop',
        );
      }
      Atomics.wait(this.#answered, 0, seen, left);
    }
  }
}

interface WaitAsync {
  waitAsync(
    words: Int32Array,
    index: number,
    value: number,
  ): { readonly async: false } | { readonly async: true; readonly value: Promise<string> };
}

/** Sleeps on V8's own waiters, which know all threads of this process. */
class ThreadWaiter implements BellWaiter {
  readonly #table: Int32Array;
  /**
   * The token of the `Atomics.waitAsync` under way. It cannot be taken back: after an interrupt it is found and used
   * again.
   */
  #underWay: number | undefined;
  #woken: (() => void) | undefined;
  /** `Atomics.waitAsync` does not keep the event loop alive; this does. */
  #keepAlive: NodeJS.Timeout | undefined;

  constructor(table: Int32Array) {
    this.#table = table;
  }

  waitSync(bell: number, token: number, timeoutMs: number): void {
    Atomics.wait(this.#table, bell, token, timeoutMs);
  }

  wait(bell: number, token: number, woken: () => void, keepAlive: boolean): void {
    this.#woken = woken;
    if (keepAlive) this.#keepAlive = setInterval(() => {}, 0x7fffffff);
    if (this.#underWay === token) return;
    const wait = (Atomics as unknown as WaitAsync).waitAsync(this.#table, bell, token);
    this.#underWay = token;
    const done = wait.async ? wait.value : Promise.resolve();
    void done.then(() => {
      // One for an older token ends when the bell rings, and a sleeper may already wait on the next.
      if (this.#underWay !== token) return;
      this.#underWay = undefined;
      this.#stop()?.();
    });
  }

  interrupt(): void {
    this.#stop();
  }

  /** @returns what was to be called */
  #stop(): (() => void) | undefined {
    clearInterval(this.#keepAlive);
    const woken = this.#woken;
    this.#woken = undefined;
    return woken;
  }
}
