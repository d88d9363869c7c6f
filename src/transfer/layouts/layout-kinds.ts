/**
 * How puts and gets move whose elements are not consecutive, where memory is reached by requests (hint `noncontiguous`;
 * dissertation, chapter 8).
 *
 * A way that is not `multi-write` needs the target's processor, so it is never chosen unless the hint asks for it: a
 * window by requests promises that a target which computes delays no other rank (`win.progress`). `host-assisted` keeps
 * that promise: a helper is there while the target computes, or layouts move as by `multi-write` (host-assisted.ts).
 */

import type { Way } from './way.ts';
import type { LayoutCosts } from './way-costs.ts';

export interface NoncontiguousKind<N extends string = string> {
  /** Its value of the hint. */
  readonly name: N;
  /** Windows whose hints name no way have this one. It needs no messages: each piece is a request. */
  readonly isDefault?: true;
  /** It sends messages that are gathered and scattered, by second connections. */
  readonly gathers?: boolean;
  /** A helper at the target serves it while the target's program computes; where none is there, the default is used. */
  readonly helped?: boolean;
  /** It chooses by what each way takes, which is measured when a window with it is made. */
  readonly measured?: boolean;
  /**
   * How a put or a get moves.
   * @param puts whether it is a put
   * @param bytes in all
   * @param pieces stretches of consecutive bytes on the side that has more of them; at least 2
   * @param costs undefined where nothing could be measured, and where a rank is alone
   */
  wayOf(puts: boolean, bytes: number, pieces: number, costs: LayoutCosts | undefined): Way;
}

function kind<const N extends string>(it: NoncontiguousKind<N>): NoncontiguousKind<N> {
  return it;
}

/** What is quickest for one put or get with its flush, as far as it was measured; `sgrs` where nothing was. */
function quickest(puts: boolean, bytes: number, pieces: number, costs: LayoutCosts | undefined): Way {
  return costs?.quickest(puts, bytes, pieces) ?? 'sgrs';
}

/** Their order gives the numbers by which ranks compare their hints. */
const KINDS = [
  kind({ name: 'multi-write', isDefault: true, wayOf: () => 'multi-write' }),
  kind({ name: 'pack', wayOf: () => 'pack' }),
  kind({ name: 'sgrs', gathers: true, wayOf: () => 'sgrs' }),
  kind({ name: 'host-assisted', gathers: true, helped: true, wayOf: () => 'sgrs' }),
  kind({ name: 'auto', gathers: true, measured: true, wayOf: quickest }),
] as const;

export type NoncontiguousName = (typeof KINDS)[number]['name'];

export const NONCONTIGUOUS_NAMES: readonly NoncontiguousName[] = KINDS.map(({ name }) => name);

export const DEFAULT_NONCONTIGUOUS: NoncontiguousName = KINDS.find(({ isDefault }) => isDefault)!.name;

export function noncontiguousNamed(name: NoncontiguousName): NoncontiguousKind<NoncontiguousName> {
  return KINDS.find((it) => it.name === name)!;
}

/** Whether a window has second connections. */
export function needsSecond(name: NoncontiguousName): boolean {
  return noncontiguousNamed(name).gathers === true;
}

/** Whether a window has messages of its own for layouts. */
export function needsMessages(name: NoncontiguousName): boolean {
  return noncontiguousNamed(name).isDefault !== true;
}

/** Whether some puts and gets wait until the target's program is in the library. */
export function needsTarget(name: NoncontiguousName): boolean {
  return needsMessages(name) && noncontiguousNamed(name).helped !== true;
}
