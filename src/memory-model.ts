/**
 * Loads of shared words on the hot path.
 *
 * `Atomics.load` is a call of 6 to 9 ns; a plain load of the same typed array takes 0.4. On x86 every load has acquire
 * order and no load passes an earlier locked instruction (`Atomics.store`, `add`, `compareExchange`), so after one of
 * those a plain load sees what `Atomics.load` would. V8 keeps no array element in a register over a loop iteration or a
 * call. Elsewhere, and where nothing would be gained, the atomic load stays. A plain load is never the last word before
 * a sleep: every wait that is not short ends in one with `Atomics.load` (see wait/progress.ts).
 */
export const TOTAL_STORE_ORDER = process.arch === 'x64' || process.arch === 'ia32';

/** The word, read no earlier than the caller's last atomic access, and before all its later loads. */
export function loadAcquire(words: Int32Array, index: number): number {
  return TOTAL_STORE_ORDER ? words[index] : Atomics.load(words, index);
}
