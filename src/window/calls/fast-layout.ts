/**
 * The fast path of puts and gets with layouts: a mapped target, and a transfer whose sides were kept since it was last
 * made (datatype/kept-sides.ts). One native call copies it, be it ever so little: loops here were no faster. It checks
 * everything that the slow path checks, and allocates nothing. As the other fast paths (fast-path.ts), it decides
 * nothing: what it does not take on goes to the slow path.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { copiedNatively } from '../../datatype/copy.ts';
import { findSides, type KeptSides } from '../../datatype/kept-sides.ts';
import { isOverlapping } from '../../datatype/layout.ts';
import type { Side, TransferLayout } from '../../datatype/sides.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { Target } from '../path/target.ts';
import { aliases, within } from './fast-path.ts';

/** A few runs of at least so many bytes are left to the slow path, which copies long ones as fits the processor. */
const LONG = 4096;

/**
 * @param puts whether it is a put, or a get
 * @returns false if it has touched nothing
 */
export function fastLayout(
  epochs: Epochs,
  t: Target,
  origin: TypedArray,
  disp: number,
  layout: TransferLayout,
  puts: boolean,
): boolean {
  if (t.fastLimit < 0) return false;
  // Reading the layout may run code of the caller's, which may end the epoch: all else is looked at afterwards.
  const kept = findSides(origin, layout);
  if (kept === undefined || !epochs.allows(t) || !within(t.fastLimit, disp)) return false;
  const { from, to } = kept;
  const { u8 } = t.part;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  if (at + to.low < t.skew || at + to.high > u8.length || to.bytes === 0 || aliases(t, origin)) return false;
  const { kernels } = t;
  const runs = to.runs ?? from.runs;
  if (kernels === undefined || runs === undefined || !mayWrite(kept, puts)) return false;
  const least = runs.block < LONG ? 1 : undefined;
  return puts
    ? copiedNatively(from, origin, 0, to, u8, at, kernels, least)
    : copiedNatively(to, u8, at, from, origin, 0, kernels, least);
}

/** Whether the side that is written to has no byte twice: the target's of a put, the origin's of a get. */
function mayWrite(kept: KeptSides, puts: boolean): boolean {
  if (puts) {
    kept.puts ??= isApart(kept.to);
    return kept.puts;
  }
  kept.gets ??= isApart(kept.from);
  return kept.gets;
}

/** A side that is too large to tell is left to the slow path, which says so. */
function isApart(side: Side): boolean {
  try {
    return !isOverlapping('', side);
  } catch {
    return false;
  }
}
