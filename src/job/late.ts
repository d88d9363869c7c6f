/** What a rank says when it waits long for others to come: until then, nothing tells a mistake from patience. */

const LATE_MS = 10_000;
/** Ranks that a message names; the rest are counted. */
const NAMED = 8;

/**
 * Prints what is waited for, once, if the wait lasts long.
 * @param words what is said then
 * @returns ends it
 */
export function sayIfLate(words: () => string): () => void {
  const timer = setTimeout(
    () => process.stderr.write(`onesided: init has waited for ${LATE_MS / 1000} s: ${words()}\n`),
    LATE_MS,
  );
  timer.unref();
  return () => clearTimeout(timer);
}

/** `rank 3`, `ranks 1, 2`, or `the other 99 ranks`. */
export function ranksInWords(ranks: readonly number[], size: number): string {
  if (ranks.length === 1) return `rank ${ranks[0]}`;
  if (ranks.length === size - 1 && ranks.length > NAMED) return `the other ${ranks.length} ranks`;
  const more = ranks.length - NAMED;
  return `ranks ${ranks.slice(0, NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
