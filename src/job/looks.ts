/** Looks that a rank takes whenever it is about to sleep in a wait, and that are due at no time of their own. */
import type { Members } from './members.ts';

/**
 * Calls `look` in the waits of this rank (`Members.serve`).
 * @param background also while it waits for nothing, when its bell has rung
 * @returns ends it
 */
export function lookInWaits(members: Members, look: () => void, background: boolean): () => void {
  return members.serve(() => {
    look();
    return Number.POSITIVE_INFINITY;
  }, background);
}
