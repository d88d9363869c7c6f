/**
 * Serves other ranks in calls of a window that do not wait: a rank that makes no other calls would never serve them.
 */

/** One in so many such calls serves; a power of two. */
const TURNS = 16;

/** @returns what each such call calls: it serves now and then. `undefined` if nothing serves */
export function nowAndThen(serving: readonly ((() => void) | undefined)[]): (() => void) | undefined {
  const serve = serving.filter((one) => one !== undefined);
  if (serve.length === 0) return undefined;
  let turns = 0;
  return () => {
    turns = (turns + 1) & (TURNS - 1);
    if (turns === 0) for (const one of serve) one();
  };
}
