/**
 * The send queue as numbers in memory: what a queue pair's builder calls write, and its provider reads, in whatever
 * language.
 *
 * One slot a request, all fields at fixed places, nothing allocated after the ring is made. A slot, by byte offset:
 *
 *      0  u32  opcode (`WrOpcode`)             24  f64  remote address
 *      4  u32  flags (`SendFlag`)              32  f64  wrId
 *      8  u32  scatter/gather entries          40  u64  operand to compare with, or to add (low half first)
 *     12  u32  bytes inline                    48  u64  operand to swap in
 *     16  u32  immediate data                  56  u32  bytes of the message: the entries' sum, or inline
 *     20  u32  rkey                            64  the entries (f64 address, u32 length, u32 lkey), or the inline data
 *
 * A wait has its key where others have rkey, the word's address as the remote address, and its value as the immediate
 * data. An update has its lock's address as the first operand; its key and its holder are the halves of the second; and
 * what it does is the immediate data. A datagram's slot (datagram-ring.ts) has its address where others have rkey and
 * operands:
 *
 *     20  u32  number of the address handle; 0: none was set
 *     40  u32  number of the queue pair there  44  u32  its key
 *
 * Four counts follow the requests through the ring; a request's slot is its count modulo the capacity, a power of two,
 * so the counts may wrap around at 2^32:
 *
 *     retired … head   executed by the provider, their places not yet free
 *     head … tail      posted
 *     tail … next      being built, not yet posted
 */
import { RmaError, show } from '../errors.ts';
import { bufferOf, byteOffsetOf, lengthOf, tagOf } from '../intrinsics.ts';
import { WcOpcode } from './completion-queue.ts';
import { SendFlag, WrOpcode } from './queue-pair.ts';

const HEADER_BYTES = 64;
const SGE_BYTES = 16;
const ALL_FLAGS = SendFlag.FENCE | SendFlag.SIGNALED | SendFlag.SOLICITED;
/** Inline data and scatter/gather entries begin here: in 32-bit words from the slot's beginning. */
const DATA_WORDS = HEADER_BYTES / 4;

/** Places of a slot's fields, in 32-bit words. */
export const WrField = Object.freeze({
  OPCODE: 0,
  FLAGS: 1,
  NUM_SGE: 2,
  INLINE_LENGTH: 3,
  IMM_DATA: 4,
  RKEY: 5,
  COMPARE_ADD: 10,
  SWAP: 12,
  MESSAGE_LENGTH: 14,
  // Of datagrams.
  AH: 5,
  REMOTE_QPN: 10,
  REMOTE_QKEY: 11,
});
/** Places of a slot's fields, in 64-bit words. */
export const WrField64 = Object.freeze({ REMOTE_ADDRESS: 3, WR_ID: 4, COMPARE_ADD: 5, SWAP: 6 });

/** What a request completes as, by `WrOpcode`. */
export const WC_OPCODE = Uint8Array.of(
  WcOpcode.RDMA_WRITE,
  WcOpcode.RDMA_WRITE,
  WcOpcode.SEND,
  WcOpcode.SEND,
  WcOpcode.RDMA_READ,
  WcOpcode.COMP_SWAP,
  WcOpcode.FETCH_ADD,
  WcOpcode.WAIT,
  WcOpcode.FETCH_ADD,
);

const NO_SLOTS = new ArrayBuffer(0);
const NO_BYTES = new Uint8Array(NO_SLOTS);
const NO_WORDS = new Uint32Array(NO_SLOTS);
const NO_DOUBLES = new Float64Array(NO_SLOTS);

/** Bytes of one message, by the InfiniBand specification (9.7.1): 2^31. */
export const MAX_MESSAGE_BYTES = 2 ** 31;

export class WorkRequestRing {
  /** Requests that fit: the number asked for, rounded up to a power of two. */
  readonly capacity: number;
  /** Requests that are taken: those, or what the device holds. */
  readonly limit: number;
  readonly maxSge: number;
  readonly maxInline: number;
  readonly maxMessage: number;
  readonly slotBytes: number;
  /** Replaced when the ring grows, which it does only if it was made so. */
  buffer: ArrayBuffer;
  u8: Uint8Array;
  u32: Uint32Array;
  f64: Float64Array;
  retired = 0;
  head = 0;
  tail = 0;
  next = 0;
  #building = false;
  /** The slot of the request being built. */
  #w = 0;
  /** Slots less one: a count and this are a slot. */
  #mask: number;
  readonly #slotWords: number;
  readonly #first: number;

  /**
   * @param maxMessage bytes of one message that the device can carry
   * @param first slots that there are once a request is built, a power of two: the ring takes no memory before and
   * grows as it fills, where providers have very many of them. If it is not given, there are all of them at once
   * @param most requests that the device holds, if that is less
   */
  constructor(
    maxWr: number,
    maxSge: number,
    maxInline: number,
    maxMessage: number = MAX_MESSAGE_BYTES,
    first = 0,
    most = Number.POSITIVE_INFINITY,
  ) {
    this.capacity = 2 ** Math.ceil(Math.log2(maxWr));
    this.limit = Math.min(this.capacity, most);
    this.maxSge = maxSge;
    this.maxInline = maxInline;
    this.maxMessage = Math.min(maxMessage, MAX_MESSAGE_BYTES);
    this.slotBytes = HEADER_BYTES + Math.ceil(Math.max(maxSge * SGE_BYTES, maxInline) / 64) * 64;
    this.#slotWords = this.slotBytes / 4;
    this.#first = Math.min(first, this.capacity);
    const later = first > 0;
    this.#mask = later ? -1 : this.capacity - 1;
    this.buffer = later ? NO_SLOTS : new ArrayBuffer(this.capacity * this.slotBytes);
    this.u8 = later ? NO_BYTES : new Uint8Array(this.buffer);
    this.u32 = later ? NO_WORDS : new Uint32Array(this.buffer);
    this.f64 = later ? NO_DOUBLES : new Float64Array(this.buffer);
  }

  /** Slots that there are now. */
  get slots(): number {
    return this.#mask + 1;
  }

  /** The first 32-bit word of a request's slot. */
  wordsOf(count: number): number {
    return (count & this.#mask) * this.#slotWords;
  }

  /** The first 32-bit word of entry `i` of the slot at `w`: its address (f64), length at + 2, lkey at + 3. */
  sgeWords(w: number, i: number): number {
    return w + DATA_WORDS + i * (SGE_BYTES / 4);
  }

  /** Where the inline data of the slot at `w` begins in `u8`. */
  inlineByte(w: number): number {
    return (w + DATA_WORDS) * 4;
  }

  start(): void {
    this.next = this.tail;
    this.#building = true;
  }

  rdma(opcode: number, wrId: number, flags: number, rkey: number, remoteAddress: number, immData: number): void {
    const w = this.#begin(opcode, wrId, flags);
    if (!Number.isSafeInteger(remoteAddress) || remoteAddress < 0) this.#refuseAddress('remote address', remoteAddress);
    this.u32[w + WrField.IMM_DATA] = immData;
    this.u32[w + WrField.RKEY] = rkey;
    this.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS] = remoteAddress;
  }

  send(opcode: number, wrId: number, flags: number, immData: number): void {
    const w = this.#begin(opcode, wrId, flags);
    this.u32[w + WrField.IMM_DATA] = immData;
  }

  /** Compare and swap, or fetch and add, which has no `swap`. */
  atomic(
    opcode: number,
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    compareAddLo: number,
    compareAddHi: number,
    swapLo: number,
    swapHi: number,
  ): void {
    const w = this.#begin(opcode, wrId, flags);
    if (!Number.isSafeInteger(remoteAddress) || remoteAddress < 0) this.#refuseAddress('remote address', remoteAddress);
    const { u32 } = this;
    u32[w + WrField.RKEY] = rkey;
    u32[w + WrField.COMPARE_ADD] = compareAddLo;
    u32[w + WrField.COMPARE_ADD + 1] = compareAddHi;
    u32[w + WrField.SWAP] = swapLo;
    u32[w + WrField.SWAP + 1] = swapHi;
    this.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS] = remoteAddress;
  }

  wait(wrId: number, flags: number, lkey: number, address: number, value: number): void {
    this.rdma(WrOpcode.WAIT, wrId, flags, lkey, address, value);
  }

  update(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    update: number,
    lockRkey: number,
    lockAddress: number,
    holder: number,
  ): void {
    if (!Number.isSafeInteger(lockAddress) || lockAddress < 0) this.#refuseAddress('address of the lock', lockAddress);
    const [lo, hi] = [lockAddress >>> 0, Math.floor(lockAddress / 2 ** 32)];
    this.atomic(WrOpcode.UPDATE, wrId, flags, rkey, remoteAddress, lo, hi, lockRkey, holder);
    this.u32[this.#w + WrField.IMM_DATA] = update;
  }

  setSge(lkey: number, address: number, length: number): void {
    const w = this.#current();
    this.u32[w + WrField.NUM_SGE] = 0;
    this.u32[w + WrField.INLINE_LENGTH] = 0;
    this.u32[w + WrField.MESSAGE_LENGTH] = 0;
    this.addSge(lkey, address, length);
  }

  addSge(lkey: number, address: number, length: number): void {
    const w = this.#current();
    const { u32 } = this;
    const n = u32[w + WrField.NUM_SGE];
    const total = u32[w + WrField.MESSAGE_LENGTH] + length;
    if (n >= this.maxSge || u32[w + WrField.INLINE_LENGTH] !== 0) this.#refuseEntry(n);
    if (length >>> 0 !== length || total > this.maxMessage) this.#refuseLength(length, total);
    if (!Number.isSafeInteger(address) || address < 0) this.#refuseAddress('address of an entry', address);
    const at = w + DATA_WORDS + n * (SGE_BYTES / 4);
    this.f64[at >>> 1] = address;
    u32[at + 2] = length;
    u32[at + 3] = lkey;
    u32[w + WrField.NUM_SGE] = n + 1;
    u32[w + WrField.MESSAGE_LENGTH] = total;
  }

  setInline(bytes: Uint8Array, offset: number, length: number): void {
    const w = this.#current();
    const { u32, u8 } = this;
    if (
      u32[w + WrField.OPCODE] >= WrOpcode.RDMA_READ ||
      length >>> 0 !== length ||
      offset >>> 0 !== offset ||
      length > this.maxInline ||
      tagOf(bytes) !== 'Uint8Array' ||
      !(offset + length <= lengthOf(bytes))
    ) {
      this.#refuseInline(w, bytes, offset, length);
    }
    const to = (w + DATA_WORDS) * 4;
    if (length <= 32) for (let i = 0; i < length; i++) u8[to + i] = bytes[offset + i];
    else u8.set(new Uint8Array(bufferOf(bytes), byteOffsetOf(bytes) + offset, length), to);
    u32[w + WrField.NUM_SGE] = 0;
    u32[w + WrField.INLINE_LENGTH] = length;
    u32[w + WrField.MESSAGE_LENGTH] = length;
  }

  /** Posts what was built: it lies between `head` and `tail` now. */
  complete(): void {
    if (!this.#building) throw refusal('wrComplete() was called without wrStart()');
    this.#building = false;
    this.tail = this.next;
  }

  abort(): void {
    this.#building = false;
    this.next = this.tail;
  }

  /** Forgets all requests, as a queue pair does when it goes to RESET. */
  clear(): void {
    this.abort();
    this.head = this.tail;
    this.retired = this.tail;
  }

  #begin(opcode: number, wrId: number, flags: number): number {
    if (!this.#building) throw refusal('requests must be built between wrStart() and wrComplete()');
    const used = (this.next - this.retired) | 0;
    if (used >= this.limit) this.#refuseFull();
    if (used > this.#mask) this.#grow();
    if (!Number.isSafeInteger(wrId) || wrId < 0) this.#refuseAddress('wrId', wrId);
    if ((flags & ~ALL_FLAGS) !== 0) this.#refuseFlags(flags);
    const w = this.wordsOf(this.next);
    this.next = (this.next + 1) | 0;
    this.#w = w;
    const { u32 } = this;
    u32[w + WrField.OPCODE] = opcode;
    u32[w + WrField.FLAGS] = flags;
    u32[w + WrField.NUM_SGE] = 0;
    u32[w + WrField.INLINE_LENGTH] = 0;
    u32[w + WrField.MESSAGE_LENGTH] = 0;
    this.f64[(w >>> 1) + WrField64.WR_ID] = wrId;
    return w;
  }

  /** Twice the slots, or the first of them. Requests keep their counts. */
  #grow(): void {
    const { u8, slotBytes } = this;
    const mask = this.#mask;
    const slots = mask < 0 ? this.#first : 2 * (mask + 1);
    this.#mask = slots - 1;
    this.buffer = new ArrayBuffer(slots * slotBytes);
    this.u8 = new Uint8Array(this.buffer);
    this.u32 = new Uint32Array(this.buffer);
    this.f64 = new Float64Array(this.buffer);
    for (let count = this.retired; count !== this.next; count = (count + 1) | 0) {
      const from = (count & mask) * slotBytes;
      this.u8.set(u8.subarray(from, from + slotBytes), (count & this.#mask) * slotBytes);
    }
  }

  /** Sets a datagram's address. @param ah the number of its address handle */
  setUdAddr(_ah: number, _remoteQpn: number, _remoteQkey: number): void {
    this.abort();
    throw refusal('only requests of queue pairs of type UD have an address; this one is of type RC');
  }

  /** The slot of the request being built. */
  protected get current(): number {
    return this.#current();
  }

  #current(): number {
    if (!this.#building || this.next === this.tail)
      throw refusal('data was set before any request was built; build the request first');
    return this.#w;
  }

  #refuseFull(): never {
    this.abort();
    throw new RmaError(
      'ERR_VERBS',
      `post send: the send queue is full: it holds ${this.limit} requests (ENOMEM); ` +
        'a request leaves it when its completion, or that of a later request, is polled',
    );
  }

  #refuseAddress(name: string, value: number): never {
    this.abort();
    throw refusal(`the ${name} must be an integer from 0 to 2^53 − 1, not ${show(value)}`);
  }

  #refuseFlags(flags: number): never {
    this.abort();
    throw refusal(`flags must be a combination of SendFlag, not ${show(flags)}`);
  }

  #refuseEntry(entries: number): never {
    this.abort();
    throw refusal(
      entries >= this.maxSge
        ? `a request of this queue pair can have at most ${this.maxSge} scatter/gather entries`
        : 'a request can have inline data or scatter/gather entries, not both',
    );
  }

  #refuseLength(length: number, total: number): never {
    this.abort();
    throw refusal(
      length >>> 0 !== length
        ? `the length of an entry must be an integer from 0 to 2^32 − 1, not ${show(length)}`
        : `a message can have at most ${this.maxMessage} bytes, not ${total}`,
    );
  }

  #refuseInline(w: number, bytes: Uint8Array, offset: number, length: number): never {
    this.abort();
    throw refusal(
      this.u32[w + WrField.OPCODE] >= WrOpcode.RDMA_READ
        ? 'reads and atomics cannot have inline data'
        : `${show(length)} bytes from byte ${show(offset)} of ` +
            `${tagOf(bytes) === 'Uint8Array' ? lengthOf(bytes) : show(bytes)} cannot be inline data; ` +
            `it must lie within the array and have at most ${this.maxInline} bytes`,
    );
  }
}

export function refusal(message: string): RmaError {
  return new RmaError('ERR_VERBS', `post send: ${message} (EINVAL)`);
}
