/**
 * How puts and gets move whose elements are not consecutive, where memory is reached by requests (hint `noncontiguous`;
 * dissertation, chapter 8).
 *
 * A way that is not `multi-write` needs the target's processor, so it is never chosen unless the hint asks for it: a
 * window by requests promises that a target which computes delays nobody (`win.progress`).
 */

/** `multi-write`: a request for each stretch of bytes that both sides share. */
export type Way = 'multi-write' | 'pack' | 'sgrs';

interface NoncontiguousKind<N extends string> {
  /** Its value of the hint. */
  readonly name: N;
  /** It sends messages that are gathered and scattered, by second connections. */
  readonly gathers?: boolean;
  /**
   * How a put or a get moves.
   * @param bytes in all
   * @param pieces stretches of consecutive bytes on the side that has more of them; at least 2
   */
  wayOf(bytes: number, pieces: number): Way;
}

function kind<const N extends string>(it: NoncontiguousKind<N>): NoncontiguousKind<N> {
  return it;
}

/** The first one is the default. Their order gives the numbers by which ranks compare their hints. */
const KINDS = [
  kind({ name: 'multi-write', wayOf: () => 'multi-write' }),
  kind({ name: 'pack', wayOf: () => 'pack' }),
  kind({ name: 'sgrs', gathers: true, wayOf: () => 'sgrs' }),
] as const;

export type NoncontiguousName = (typeof KINDS)[number]['name'];

export const NONCONTIGUOUS_NAMES: readonly NoncontiguousName[] = KINDS.map(({ name }) => name);

export function noncontiguousNamed(name: NoncontiguousName): NoncontiguousKind<NoncontiguousName> {
  return KINDS.find((it) => it.name === name)!;
}

/** Whether a window has second connections. */
export function needsSecond(name: NoncontiguousName): boolean {
  return noncontiguousNamed(name).gathers === true;
}

/** Whether some puts and gets need the target's processor. */
export function needsTarget(name: NoncontiguousName): boolean {
  return name !== NONCONTIGUOUS_NAMES[0];
}
