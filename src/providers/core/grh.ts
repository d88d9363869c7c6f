/**
 * The global routing header in front of a datagram's data, as a router would find it: that of IPv6, with InfiniBand's
 * numbers (InfiniBand specification, 8.3).
 */
/** The packet behind it: base header, datagram header, and the check at the end. */
const OTHER_BYTES = 12 + 8 + 4;
const NEXT_HEADER = 0x1b;
const HOP_LIMIT = 64;

/** Writes the header. @param bytes of data @param from and to: the words of the GIDs */
export function writeGrh(out: Uint8Array, bytes: number, from: ArrayLike<number>, to: ArrayLike<number>): void {
  out.fill(0, 0, 8);
  out[0] = 6 << 4;
  out[4] = (bytes + OTHER_BYTES) >>> 8;
  out[5] = (bytes + OTHER_BYTES) & 0xff;
  out[6] = NEXT_HEADER;
  out[7] = HOP_LIMIT;
  for (let i = 0; i < 16; i++) {
    const shift = 24 - 8 * (i & 3);
    out[8 + i] = from[i >> 2] >>> shift;
    out[24 + i] = to[i >> 2] >>> shift;
  }
}
