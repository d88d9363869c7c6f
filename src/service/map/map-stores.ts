/**
 * Every store that a map makes to memory it shares, and the one place where the order of loads matters.
 *
 * They are functions of their own so that a test can stop a writer after any of them; V8 inlines them. A store is seen
 * by others after those before it in the program: on x64 all stores are, elsewhere what `publish` stores comes after
 * everything before it.
 */
import { TOTAL_STORE_ORDER } from '../../memory-model.ts';
import { copyWords } from './word-copy.ts';

/** A plain store: of what no reader looks at yet, or of what only the holder of the lock reads. */
export function store(words: Int32Array, at: number, value: number): void {
  words[at] = value;
}

/** Readers who see this value see everything that was stored before it. */
export function publish(words: Int32Array, at: number, value: number): void {
  Atomics.store(words, at, value);
}

/** A byte beside others that somebody else may be storing at the same time. */
export function storeByte(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
}

/** A double; it counts once the entry that has it is published. */
export function storeNumber(numbers: Float64Array, at: number, value: number): void {
  numbers[at] = value;
}

export function storeWords(words: Int32Array, at: number, from: Int32Array, count: number): void {
  copyWords(words, at, from, 0, count);
}

export function storeBytes(bytes: Uint8Array, at: number, from: Uint8Array): void {
  bytes.set(from, at);
}

/** Copies words to another place of the same memory that they do not overlap. */
export function moveWords(words: Int32Array, to: number, from: number, count: number): void {
  copyWords(words, to, words, from, count);
}

const own = new Int32Array(1);

/**
 * No load or store before this call is carried out after one behind it, as far as a map needs that: loads before loads
 * (a reader copies an entry, then asks whether it was overwritten meanwhile), and stores before stores (a writer gives
 * memory up, then overwrites it). x64 keeps both orders by itself. Elsewhere it is a read-modify-write of a word of
 * this thread: sequentially consistent, for which V8 takes the instruction of Armv8.1 with acquire and release, and the
 * architecture orders everything before such an instruction before everything behind it (Arm ARM B2.3,
 * barrier-ordered-before).
 */
export function fence(): void {
  if (!TOTAL_STORE_ORDER) Atomics.add(own, 0, 1);
}
