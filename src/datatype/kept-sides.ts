/**
 * The sides of a transfer with layouts, kept at its datatype: programs repeat the same transfers, and describing and
 * comparing the sides again takes longer than copying some kilobytes. A datatype keeps those of the last transfer it
 * was in, so memory is bounded by the datatypes, and goes with them.
 *
 * What is kept is what the arguments say, and nothing of the memory: it holds for every array of the same type and
 * length.
 */
import { lengthOf } from '../intrinsics.ts';
import { type TypedArray, typeCodeOf } from './base-types.ts';
import { Datatype } from './datatype.ts';
import type { Layout, Side, TransferLayout } from './sides.ts';

/** What layouts have. A call that fetches nothing does not mind a result. */
export const SIDES = ['origin', 'result', 'target'];
export const SIDE = ['type', 'count'];

export interface KeptSides {
  readonly from: Side;
  readonly to: Side;
  /** Whether the side that a put or a get writes to has no byte twice. Found out when first asked for. */
  puts: boolean | undefined;
  gets: boolean | undefined;
  /** `TypeCode` and number of the elements of the origin buffer. */
  readonly code: number;
  readonly length: number;
  readonly originType: unknown;
  readonly originCount: unknown;
  readonly targetType: unknown;
  readonly targetCount: unknown;
  /** The objects that were looked through last: an object that has no other keys once has none later. */
  layout: unknown;
  origin: unknown;
  target: unknown;
}

/**
 * The sides of a transfer if they were kept. It refuses nothing: what is wrong is not known here, and is found and said
 * by `checkSides`. Reading the layout runs code of the caller's, perhaps; the origin is looked at afterwards.
 */
export function findSides(buffer: TypedArray, layout: TransferLayout): KeptSides | undefined {
  if (typeof layout !== 'object') return undefined;
  try {
    const { origin, target } = layout;
    let kept: KeptSides | undefined;
    if (target !== undefined) {
      const { type, count = 1 } = target;
      kept = Datatype.keptAt(type) as KeptSides | undefined;
      if (kept === undefined || kept.targetType !== type || kept.targetCount !== count) return undefined;
    }
    if (origin !== undefined) {
      const { type, count = 1 } = origin;
      kept ??= Datatype.keptAt(type) as KeptSides | undefined;
      if (kept === undefined || kept.originType !== type || kept.originCount !== count) return undefined;
    }
    if (kept === undefined) return undefined;
    if ((origin === undefined) !== (kept.originType === undefined)) return undefined;
    if ((target === undefined) !== (kept.targetType === undefined)) return undefined;
    if (layout !== kept.layout || origin !== kept.origin || target !== kept.target) {
      if (!onlyKnown(layout, SIDES)) return undefined;
      if (origin !== undefined && !onlyKnown(origin, SIDE)) return undefined;
      if (target !== undefined && !onlyKnown(target, SIDE)) return undefined;
      kept.layout = layout;
      kept.origin = origin;
      kept.target = target;
    }
    return typeCodeOf(buffer) === kept.code && lengthOf(buffer) === kept.length ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps what `checkSides` has found of a layout, if it has described one. */
export function keepSides(
  code: number,
  length: number,
  origin: Layout | undefined,
  target: Layout | undefined,
  sides: { readonly from: Side; readonly to: Side },
): void {
  const [originType, targetType] = [sides.from.type, sides.to.type];
  const at = target === undefined ? originType : targetType;
  // A side of consecutive elements does not say of what datatype it was made: then there is nothing to save.
  if (at === undefined || (origin !== undefined && originType === undefined)) return;
  if ((origin === undefined) !== (originType === undefined)) return;
  Datatype.keepAt(at, {
    ...{ from: sides.from, to: sides.to, puts: undefined, gets: undefined, code, length },
    originType: origin === undefined ? undefined : originType,
    originCount: sides.from.count,
    targetType: target === undefined ? undefined : targetType,
    targetCount: sides.to.count,
    ...{ layout: undefined, origin: undefined, target: undefined },
  } satisfies KeptSides);
}

/** Whether an object has no other keys, own or inherited. Some 20 ns. */
function onlyKnown(object: object, known: readonly string[]): boolean {
  if (typeof object !== 'object') return false;
  for (const key in object) if (!known.includes(key)) return false;
  return true;
}
