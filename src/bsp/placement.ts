/**
 * What a process does with the chunks that have come to it: puts go into its variables, messages into its queue, and
 * for requests of gets it writes the results.
 *
 * Only the owner of a variable touches it here, in its own `sync`: first it reads for all gets that others have asked
 * for, then it writes all puts. So a get sees the variable as its owner left it, and no put of the same superstep.
 */
import { RmaError, show } from '../errors.ts';
import type { Processor } from '../verbs/processor.ts';
import { HEADER_WORDS, isShort, MESSAGE, offsetOf, slotOf, wordsOf } from './chunk-records.ts';
import type { Stream } from './chunks.ts';
import type { MessageQueue } from './received-messages.ts';
import type { VariableRegistrations } from './registrations.ts';
import type { Slot } from './slot.ts';

/** Words that are copied one by one. */
const FEW = 32;

const wordsFor = (bytes: number): number => (bytes + 3) >> 2;

export class Placement {
  readonly registrations: VariableRegistrations;
  readonly #queue: MessageQueue;
  readonly #processor: Processor;

  /** Bytes of data that were placed or read for other processes than this one; the caller takes and clears them. */
  received = 0;
  served = 0;
  /** Their records: puts, gets and messages, and pieces of long ones. */
  calls = 0;
  readonly #pid: number;

  constructor(pid: number, registrations: VariableRegistrations, queue: MessageQueue, processor: Processor) {
    this.#pid = pid;
    this.registrations = registrations;
    this.#queue = queue;
    this.#processor = processor;
  }

  /** Carries out the puts and messages in the words from `from` up to `to`. Errors: `ERR_BUFFER`. */
  place(source: number, i32: Int32Array, u8: Uint8Array, from: number, to: number): void {
    const { slots } = this.registrations;
    let at = from;
    let data = 0;
    let calls = 0;
    while (at < to) {
      const header = i32[at];
      calls++;
      if (isShort(header)) {
        const words = wordsOf(header);
        at++;
        data += 4 * words;
        putWords(slots[slotOf(header)]!, i32, u8, at, offsetOf(header), words);
        at += words;
        continue;
      }
      const bytes = i32[at + 2];
      const second = i32[at + 1];
      at += HEADER_WORDS;
      data += bytes;
      if (header >= 0) {
        const slot = slots[header]!;
        if (((second | bytes) & 3) === 0) putWords(slot, i32, u8, at, second >> 2, bytes >> 2);
        else putBytes(slot, u8, 4 * at, second, bytes);
      } else {
        if (header === MESSAGE) this.#queue.start(source, second);
        if (bytes > 0) this.#queue.add(source, u8.subarray(4 * at, 4 * at + bytes));
      }
      at += wordsFor(bytes);
    }
    this.#processor.record(4 * (to - from), calls);
    if (source === this.#pid) return;
    this.received += data;
    this.calls += calls;
  }

  /** Whether bytes may be read into a variable by the device. Errors: `ERR_BUFFER` if its memory has changed. */
  checkRead(slot: number, at: number, bytes: number): void {
    const variable = this.registrations.slots[slot]!;
    if (at + bytes > variable.u8.length) throw gone(variable);
  }

  /**
   * Writes the results of the gets in the words from `from` up to `to`, and counts what was moved here without a record
   * of its own. Errors: `ERR_BUFFER`, `ERR_SIZE`.
   */
  serve(source: number, results: Stream, i32: Int32Array, from: number, to: number): void {
    if (source !== this.#pid) this.calls += (to - from) / HEADER_WORDS;
    for (let at = from; at < to; at += HEADER_WORDS) {
      if (i32[at] < 0) {
        // The record is counted already.
        this.calls += -i32[at] - 1;
        this.received += i32[at + 1];
        this.served += i32[at + 2];
        continue;
      }
      const slot = this.registrations.slots[i32[at]]!;
      const start = i32[at + 1];
      const bytes = i32[at + 2];
      this.#processor.record(bytes);
      if (source !== this.#pid) this.served += bytes;
      if (start + bytes > slot.u8.length) throw gone(slot);
      for (let done = 0; done < bytes; ) {
        if (results.pos === results.end) results.grow();
        const piece = Math.min(bytes - done, 4 * (results.end - results.pos));
        copyOut(results, slot, start + done, piece);
        results.pos += wordsFor(piece);
        done += piece;
      }
    }
  }
}

function putWords(slot: Slot, from: Int32Array, u8: Uint8Array, at: number, to: number, words: number): void {
  const { i32 } = slot;
  if (i32 === undefined || words > FEW) {
    putBytes(slot, u8, 4 * at, 4 * to, 4 * words);
    return;
  }
  if (to + words > i32.length) throw gone(slot);
  // A double: mostly, what is put word by word.
  if (words === 2) {
    i32[to] = from[at];
    i32[to + 1] = from[at + 1];
    return;
  }
  for (let k = 0; k < words; k++) i32[to + k] = from[at + k];
}

function putBytes(slot: Slot, from: Uint8Array, at: number, to: number, bytes: number): void {
  if (to + bytes > slot.u8.length) throw gone(slot);
  slot.u8.set(from.subarray(at, at + bytes), to);
}

function copyOut({ i32, u8, pos }: Stream, slot: Slot, start: number, bytes: number): void {
  const words = slot.i32;
  if (words !== undefined && ((start | bytes) & 3) === 0 && bytes <= 4 * FEW) {
    for (let k = 0; k < bytes >> 2; k++) i32[pos + k] = words[(start >> 2) + k];
    return;
  }
  u8.set(slot.u8.subarray(start, start + bytes), 4 * pos);
}

/** The process that asked has seen that the variable is long enough: so it has changed since. */
function gone(slot: Slot): RmaError {
  return new RmaError(
    'ERR_BUFFER',
    `bsp.sync: the registered variable ${show(slot.array)} (registered with ${slot.bytes} bytes) ` +
      'was transferred or resized; leave variables alone while they are registered',
  );
}
