/**
 * How puts and gets move whose elements are not consecutive, where memory is reached by requests (hint `noncontiguous`;
 * dissertation, chapter 8).
 *
 * A way that is not `multi-write` needs the target's processor, so it is never chosen unless the hint asks for it: a
 * window by requests promises that a target which computes delays nobody (`win.progress`). `host-assisted` keeps that
 * promise: a helper is there while the target computes, or layouts move as by `multi-write` (host-assisted.ts).
 */

/** `multi-write`: a request for each stretch of bytes that both sides share. */
export type Way = 'multi-write' | 'pack' | 'sgrs';

interface NoncontiguousKind<N extends string> {
  /** Its value of the hint. */
  readonly name: N;
  /** A window has it whose hints name none. It needs no messages: each piece is a request. */
  readonly isDefault?: true;
  /** It sends messages that are gathered and scattered, by second connections. */
  readonly gathers?: boolean;
  /** A helper at the target serves it while the target's program computes; where none is there, the default is used. */
  readonly helped?: boolean;
  /**
   * How a put or a get moves.
   * @param puts whether it is a put
   * @param bytes in all
   * @param pieces stretches of consecutive bytes on the side that has more of them; at least 2
   * @param offloads adapters carry requests out (`Capabilities.offloads`)
   */
  wayOf(puts: boolean, bytes: number, pieces: number, offloads: boolean): Way;
}

function kind<const N extends string>(it: NoncontiguousKind<N>): NoncontiguousKind<N> {
  return it;
}

/** From here on, a get of so many pieces takes several lists one after the other. */
const MANY = 200;

/**
 * What is quickest for one put or get with its flush. The numbers are fitted to the modelled fabrics infinihost-64,
 * infinihost-express and infinihost-pci-x, 2 to 512 pieces of 16 bytes to 4 KiB: nowhere there is another way quicker
 * by more than a tenth (test/transfer/auto.test.ts). They have not been fitted to adapters that exist.
 *
 * A piece costs a request of its own most, an entry of a list a quarter of that, and nothing in a message that is
 * packed; but packing copies each byte twice. A put that is gathered takes a round trip before it begins, a get none.
 */
function cheapest(puts: boolean, bytes: number, pieces: number, offloads: boolean): Way {
  if (!offloads) return cheapestByProcessors(bytes, pieces);
  if (pieces <= 4) return 'multi-write';
  const packed = puts ? 1300 + 83 * pieces : (pieces > MANY ? 83 : 60) * pieces;
  if (bytes <= packed) return 'pack';
  return puts && pieces <= 12 ? 'multi-write' : 'sgrs';
}

/**
 * The same where the processors of both sides are the device. Fitted to what both ranks execute on Soft-RoCE, 2 to 128
 * pieces of 16 bytes to 1 KiB (bench/device/layouts.sh), in thousands of instructions: a request for each piece 90 and
 * 12.5 a piece and 12 for each 1,000 bytes; packed 230 and 32 for each 1,000 bytes. Lists save no work there, since the
 * processor looks up and copies each piece, and take a round trip more: with 64 pieces of 64 bytes, and 128 of 1 KiB,
 * they are slower than the better of the two, in C as well.
 */
function cheapestByProcessors(bytes: number, pieces: number): Way {
  return bytes <= 600 * pieces - 8400 ? 'pack' : 'multi-write';
}

/** Their order gives the numbers by which ranks compare their hints. */
const KINDS = [
  kind({ name: 'multi-write', isDefault: true, wayOf: () => 'multi-write' }),
  kind({ name: 'pack', wayOf: () => 'pack' }),
  kind({ name: 'sgrs', gathers: true, wayOf: () => 'sgrs' }),
  kind({ name: 'host-assisted', gathers: true, helped: true, wayOf: () => 'sgrs' }),
  kind({ name: 'auto', gathers: true, wayOf: cheapest }),
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
