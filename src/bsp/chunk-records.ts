/**
 * What stands in chunks. Each record begins with a header of words:
 *
 *     put         slot (0 …), byte of the variable, bytes; then the data          (12 bytes, BSP-IB §3.1)
 *     put, short  one word with all three of them; then the data                  (4 bytes, §3.2: header compression)
 *     message     MESSAGE, bytes in all, bytes of this piece; then the data
 *     more of it  MESSAGE_MORE, 0, bytes of this piece; then the data
 *     get         slot, byte of the variable, bytes
 *     direct      −n for n calls, bytes that `hpput` has written here, bytes that `hpget` has read here: among gets,
 *                 and only where reports are kept, since otherwise this process would not know of them
 *
 * A put whose numbers do not fit into one word has a long header, so the format is chosen for each put. Data are padded
 * to whole words. A record lies in one chunk: what does not fit is cut into several puts, or pieces of a message.
 */

export const HEADER_WORDS = 3;
export const MESSAGE = -1;
export const MESSAGE_MORE = -2;

/** A short header: bits 31 and 30 are 1 and 0; then slot (6 bits), words of data (6), word of the variable (18). */
const SHORT = 0x80000000 | 0;
const MARK = 0xc0000000 | 0;
const SHORT_SLOTS = 64;
const SHORT_WORDS = 64;
export const SHORT_OFFSETS = 2 ** 18;

export function isShort(header: number): boolean {
  return (header & MARK) === SHORT;
}

/** Whether a put of whole words fits into a short header. */
export function fitsShort(slot: number, word: number, words: number): boolean {
  return slot < SHORT_SLOTS && words < SHORT_WORDS && word < SHORT_OFFSETS;
}

export function shortHeader(slot: number, word: number, words: number): number {
  return SHORT | (slot << 24) | (words << 18) | word;
}

export function slotOf(header: number): number {
  return (header >>> 24) & (SHORT_SLOTS - 1);
}

export function wordsOf(header: number): number {
  return (header >>> 18) & (SHORT_WORDS - 1);
}

export function offsetOf(header: number): number {
  return header & (SHORT_OFFSETS - 1);
}
