/**
 * What serves other ranks, in calls of a window that do not wait: a rank that makes no other calls would serve none.
 */

/** Such calls from one time to the next; a power of two. */
const TURNS = 16;

/** @returns is called by each of them, and serves others now and then; undefined if nothing does */
export function nowAndThen(serving: readonly ((() => void) | undefined)[]): (() => void) | undefined {
  const serve = serving.filter((one) => one !== undefined);
  if (serve.length === 0) return undefined;
  let turns = 0;
  return () => {
    turns = (turns + 1) & (TURNS - 1);
    if (turns === 0) for (const one of serve) one();
  };
}
