/**
 * The memory that one rank records into: a ring of records of fixed size, and a table of texts. It is made before the
 * rank starts, by the process that will read it (the launcher, the first rank), so what a rank has recorded outlives
 * the rank, however that ends.
 *
 * A record is eight doubles, one cache line: a store each, no encoding, nothing allocated. Texts (names of calls,
 * windows, what a wait is for) are written once into the table, and records name them by number. When the ring is full,
 * the newest record takes the place of the oldest; when the table is full, further texts are `…`. Both are counted.
 *
 * One writer, the rank. It stores a record, and only then the count, by an atomic store. A reader after the rank's end
 * sees all of it. A reader beside a rank that still records (another rank, when the job has failed) loads the count,
 * copies the ring, and loads the count again: what may have been overwritten meanwhile is left out.
 */

/** What a record is. The fields that are not named here mean the same in all of them. */
export const Kind = Object.freeze({
  /** A span opens on the rank's lane; `value` is its number. One kind for each category. */
  EPOCH: 1,
  CALL: 2,
  WAIT: 3,
  /** The span of that number ends; `name` says by which error, if by one. */
  END: 4,
  /**
   * A communication call; `value` is how long it took. `OPERATION_DONE` where its bytes are at the target when it
   * returns.
   */
  OPERATION: 5,
  OPERATION_DONE: 6,
  /**
   * This rank tells `peer` something, or has seen what `peer` has told it; `value` counts them, by pair. With `peer` −1
   * at the receiver, the count alone names it. Of a request, `place` is its turn (ISSUED).
   */
  SENT: 7,
  SEEN: 8,
  /** The lock of `peer`'s part; `place` is 1 if exclusive; `value` is 1 if this rank had to wait for it. */
  RELEASED: 9,
  ACQUIRED: 10,
  /** A notification to `peer`; `bytes` notifications taken here. */
  NOTIFIED: 11,
  TOOK: 12,
  /** The `value`-th request to `peer` that this rank has SENT is complete, at both ends. */
  COMPLETED: 13,
  /**
   * Phases of a superstep (`place`) of the BSP computation and process that `scope` names (supersteps.ts): `value` is
   * how long it took. It computed, and made `bytes` calls that concern others; waited until all had come, and `bytes`
   * calls of others came in; delivered, `peer` bytes sent to and `bytes` received from others.
   */
  COMPUTED: 14,
  GATHERED: 15,
  DELIVERED: 16,
  /** The machine of that computation, in nanoseconds: of a superstep (`value`), a word (`bytes`), a call (`place`). */
  MEASURED: 17,
  /**
   * What this rank has SENT to `peer` as the `value`-th of its name has done there what it was to do, or its answer is
   * here. Recorded where that is known better than by COMPLETED or SEEN.
   */
  TOOK_EFFECT: 18,
  /** The next record is of a communication call whose requests bear this turn (`value`). */
  ISSUED: 19,
});

/** Doubles of a record. */
export const Field = Object.freeze({
  /** Nanoseconds, by the recorder's clock. */
  TIME: 0,
  KIND: 1,
  /** Numbers of texts; 0: none. */
  NAME: 2,
  SCOPE: 3,
  /** A rank of the job's world, or −1. */
  PEER: 4,
  BYTES: 5,
  /** Displacement at the target; of a call, which one of its kind it is on its window. */
  PLACE: 6,
  VALUE: 7,
});
export const FIELDS = 8;

/** 32-bit words at the beginning. */
const Word = Object.freeze({ MAGIC: 0, EVENTS: 1, WRITTEN: 2, TEXT_BYTES: 3, TEXTS_LOST: 4 });
/** The number of records since the beginning, as a double. */
const TOTAL = 3;
const MAGIC = 0x54524331;
const HEADER_BYTES = 64;
const TEXT_BYTES = 65536 - HEADER_BYTES;
const RECORDS_AT = HEADER_BYTES + TEXT_BYTES;
/** Pages have at most so many bytes. */
const PAGE = 65536;

/** The fewest and the most records that a ring can have. */
export const MIN_EVENTS = 64;
export const MAX_EVENTS = 2 ** 24;
/** Records of a whole job, unless it is said otherwise: as many as viewers like. */
const JOB_EVENTS = 2 ** 20;

/** Records that each of `size` ranks keeps, unless it is said otherwise. A power of two. */
export function defaultEvents(size: number): number {
  return 2 ** Math.max(10, Math.min(16, Math.floor(Math.log2(JOB_EVENTS / size))));
}

/** Bytes of a ring of so many records (rounded up to a power of two); a multiple of every page size. */
export function ringBytes(events: number): number {
  return Math.ceil((RECORDS_AT + 8 * FIELDS * capacity(events)) / PAGE) * PAGE;
}

function capacity(events: number): number {
  return 2 ** Math.ceil(Math.log2(Math.min(MAX_EVENTS, Math.max(MIN_EVENTS, events))));
}

/** The end of a ring that records are written to. */
export class RingWriter {
  readonly #words: Int32Array;
  readonly #total: Float64Array;
  readonly #records: Float64Array;
  readonly #mask: number;
  readonly #texts: Uint8Array;
  readonly #numbers = new Map<string, number>([['', 0]]);
  readonly #encoder = new TextEncoder();
  #count = 0;
  #textBytes = 0;
  #full: number | undefined;

  /** @param buffer zeroed; the ring begins at `byteOffset` */
  constructor(buffer: ArrayBufferLike, byteOffset: number, events: number) {
    const records = capacity(events);
    this.#words = new Int32Array(buffer, byteOffset, HEADER_BYTES / 4);
    this.#total = new Float64Array(buffer, byteOffset, HEADER_BYTES / 8);
    this.#texts = new Uint8Array(buffer, byteOffset + HEADER_BYTES, TEXT_BYTES);
    this.#records = new Float64Array(buffer, byteOffset + RECORDS_AT, FIELDS * records);
    this.#mask = records - 1;
    this.#words[Word.EVENTS] = records;
    Atomics.store(this.#words, Word.MAGIC, MAGIC);
  }

  write(
    time: number,
    kind: number,
    name: number,
    scope: number,
    peer: number,
    bytes: number,
    place: number,
    value: number,
  ): void {
    const records = this.#records;
    const at = FIELDS * (this.#count & this.#mask);
    records[at + Field.TIME] = time;
    records[at + Field.KIND] = kind;
    records[at + Field.NAME] = name;
    records[at + Field.SCOPE] = scope;
    records[at + Field.PEER] = peer;
    records[at + Field.BYTES] = bytes;
    records[at + Field.PLACE] = place;
    records[at + Field.VALUE] = value;
    this.#count = (this.#count + 1) | 0;
    this.#total[TOTAL]++;
    Atomics.store(this.#words, Word.WRITTEN, this.#count);
  }

  /** The number of a text. The same text has the same number. */
  text(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    if (this.#full !== undefined) return this.#lost();
    // A length in two bytes, then UTF-8. Room for one more text is kept: the one that stands for those that are lost.
    const bytes = this.#encoder.encode(text.length > 300 ? `${text.slice(0, 299)}…` : text);
    if (this.#textBytes + 2 + bytes.length > TEXT_BYTES - 16) {
      this.#full = this.#store('…', this.#encoder.encode('…'));
      return this.#lost();
    }
    return this.#store(text, bytes);
  }

  #store(text: string, bytes: Uint8Array): number {
    const at = this.#textBytes;
    this.#texts[at] = bytes.length & 0xff;
    this.#texts[at + 1] = bytes.length >> 8;
    this.#texts.set(bytes, at + 2);
    this.#textBytes = at + 2 + bytes.length;
    Atomics.store(this.#words, Word.TEXT_BYTES, this.#textBytes);
    const number = this.#numbers.size;
    this.#numbers.set(text, number);
    return number;
  }

  #lost(): number {
    this.#words[Word.TEXTS_LOST]++;
    return this.#full!;
  }
}

/** What one rank has recorded. */
export interface Recording {
  readonly rank: number;
  /** {@link FIELDS} doubles a record, oldest first. */
  readonly records: Float64Array;
  readonly count: number;
  /** By number. */
  readonly texts: readonly string[];
  /** Records before the oldest that is left. */
  readonly dropped: number;
  readonly textsLost: number;
}

/**
 * A copy of what is in a ring now. `read` gives its first bytes as they are when it is called: the rank may still be
 * recording.
 */
export function readRing(rank: number, bytes: number, read: (bytes: number) => Uint8Array): Recording {
  const copy = read(bytes);
  const before = headerOf(copy);
  if (before === undefined)
    return { rank, records: new Float64Array(0), count: 0, texts: [''], dropped: 0, textsLost: 0 };
  const { events, written } = before;
  const after = headerOf(read(HEADER_BYTES))!;
  // Whether the rank lives or not, it may have been storing one more record than it counted, in the place of the
  // oldest.
  const oldest = Math.max(0, after.written + 1 - events);
  const kept = Math.max(0, written - oldest);
  const ring = new Float64Array(copy.buffer, copy.byteOffset + RECORDS_AT, FIELDS * events);
  const records = new Float64Array(FIELDS * kept);
  const first = ((written - kept) % events) * FIELDS;
  const head = ring.subarray(first, Math.min(ring.length, first + records.length));
  records.set(head);
  records.set(ring.subarray(0, records.length - head.length), head.length);
  return {
    rank,
    records,
    count: kept,
    texts: readTexts(copy.subarray(HEADER_BYTES, HEADER_BYTES + before.textBytes)),
    dropped: written - kept,
    textsLost: before.textsLost,
  };
}

interface RingHeader {
  readonly events: number;
  readonly written: number;
  readonly textBytes: number;
  readonly textsLost: number;
}

/** Undefined if nothing was ever recorded here. */
function headerOf(bytes: Uint8Array): RingHeader | undefined {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, HEADER_BYTES / 4);
  if (Atomics.load(words, Word.MAGIC) !== MAGIC) return undefined;
  const low = Atomics.load(words, Word.WRITTEN) >>> 0;
  // The double is stored before the word, so it is the word's count, or a little more.
  const total = new Float64Array(bytes.buffer, bytes.byteOffset, HEADER_BYTES / 8)[TOTAL];
  return {
    events: words[Word.EVENTS],
    written: total - ((total - low) % 2 ** 32),
    textBytes: Atomics.load(words, Word.TEXT_BYTES),
    textsLost: words[Word.TEXTS_LOST],
  };
}

function readTexts(bytes: Uint8Array): string[] {
  const texts = [''];
  const decoder = new TextDecoder();
  for (let at = 0; at + 2 <= bytes.length; ) {
    const length = bytes[at] | (bytes[at + 1] << 8);
    // A copy: it may be shared memory, which the decoder refuses.
    texts.push(decoder.decode(bytes.slice(at + 2, at + 2 + length)));
    at += 2 + length;
  }
  return texts;
}
