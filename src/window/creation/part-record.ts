/**
 * What each rank tells the others about its part when a window is made: one record of numbers a rank, all gathered by
 * one exchange. `FIELDS` is its only description; packing, reading and comparing follow from it.
 *
 * Which fields travel depends on the provider alone, which is the same at all ranks: hints may differ until the records
 * have been compared, and a record must have one length.
 */

import type { Job } from '../../job/job.ts';
import { PLACE_NUMBERS } from '../../message/word-blocks.ts';
import { SHARE_NUMBERS, servesMemory } from '../../transfer/served/user-memory.ts';

/** Numbers that a field takes, and where it is of use. */
const FIELDS = {
  /** 1 if the rank makes no window; nothing else counts then. */
  refused: [1, 'everywhere'],
  bytes: [1, 'everywhere'],
  dispUnit: [1, 'everywhere'],
  /** Bytes of one of its elements. */
  element: [1, 'everywhere'],
  /** Its hints (`numberOf`). */
  hints: [1, 'everywhere'],
  /** The first of its spaces of messages, as rank 0 names it. */
  space: [1, 'everywhere'],
  /** Key and address of its part. */
  region: [2, 'everywhere'],
  /** Key and address of the words that only the device's atomics touch. */
  words: [2, 'everywhere'],
  /** Where its block of shared words is (`Block.place`). */
  place: [PLACE_NUMBERS, 'shared memory'],
  /** How others reach memory of its own (`Share.numbers`); begins with 0 if there is none. */
  share: [SHARE_NUMBERS, 'served memory'],
  /** What names the part's memory to neighbours (0: nothing), how long that is, and where in it the part begins. */
  handle: [3, 'a device'],
  /** The same of those words: what names their memory, and how long it is; they are at its beginning. */
  wordsHandle: [2, 'a device'],
} as const;

type Field = keyof typeof FIELDS;
const NAMES = Object.keys(FIELDS) as Field[];

/** Where each field begins in a record, and how long a record is. */
export class RecordLayout {
  readonly length: number;
  readonly #places = new Map<Field, number>();

  constructor(job: Job) {
    const { context, tasks } = job;
    const { loadStore } = context.capabilities;
    // Tasks have no neighbours: all of them are in one process, behind modelled devices.
    const travels = {
      everywhere: true,
      'shared memory': loadStore,
      'served memory': servesMemory(context),
      'a device': !loadStore && tasks === undefined,
    };
    let length = 0;
    for (const name of NAMES) {
      const [numbers, where] = FIELDS[name];
      if (!travels[where]) continue;
      this.#places.set(name, length);
      length += numbers;
    }
    this.length = length;
  }

  /** -1 for a field that does not travel. */
  placeOf(field: Field): number {
    return this.#places.get(field) ?? -1;
  }

  /** A record of the fields that are given; the others are 0, and those that do not travel are left out. */
  pack(fields: { readonly [F in Field]?: ArrayLike<number> }): Float64Array {
    const numbers = new Float64Array(this.length);
    for (const [name, value] of Object.entries(fields)) {
      const place = this.placeOf(name as Field);
      if (place >= 0) numbers.set(value, place);
    }
    return numbers;
  }
}

/** The records of all ranks. Where ranks are tasks, all of them have the same numbers in memory. */
export class Records {
  readonly #size: number;
  readonly #layout: RecordLayout;
  readonly #all: Float64Array;

  constructor(size: number, layout: RecordLayout, all: Float64Array) {
    this.#size = size;
    this.#layout = layout;
    this.#all = all;
  }

  /** One number of a rank: the first of its field, or one behind it. 0 for what does not travel. */
  of(rank: number, field: Field, index = 0): number {
    const place = this.#layout.placeOf(field);
    return place < 0 ? 0 : this.#all[this.#layout.length * rank + place + index];
  }

  /** All numbers of a field. */
  listOf(rank: number, field: Field): Float64Array {
    const place = this.#layout.placeOf(field);
    if (place < 0) return new Float64Array(FIELDS[field][0]);
    const begin = this.#layout.length * rank + place;
    return this.#all.subarray(begin, begin + FIELDS[field][0]);
  }

  /** The first rank for which it holds; -1 if there is none. */
  first(holds: (rank: number) => boolean): number {
    for (let rank = 0; rank < this.#size; rank++) if (holds(rank)) return rank;
    return -1;
  }

  /** The first rank whose field is another than rank 0's; -1 if there is none. */
  firstThatDiffers(field: Field): number {
    return this.first((rank) => this.of(rank, field) !== this.of(0, field));
  }
}
