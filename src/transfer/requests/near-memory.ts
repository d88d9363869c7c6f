/**
 * Memory of this rank and of ranks on its host that this rank's processor reaches, in a window whose requests go by a
 * device: its words and its part. What the library itself does there (remote-access.ts) is then done at once, where
 * the device's atomics and the processor's agree (`Capabilities.atomicsAgree`). To others, and at other times to this
 * rank, the same memory is reached by requests; why both can meet:
 *
 * - Words are changed by atomics of 64 bits alone, by the processor here and by the device elsewhere, and these agree.
 * - Bytes are read and written under a stripe, which is such a word. Who releases it has written before, and who
 *   acquires it reads behind; the device carries out a connection's requests in order, and the processor's atomics
 *   order what is around them.
 * - The processor overtakes what this rank has posted. So it is used only while nothing of this rank is under way to
 *   the target (`Outstanding.isSilentTo`); then whatever is posted later comes behind.
 * - Who asks again and again is woken by the answer of a device, so that goes by the device; and so does a swap that
 *   finds another value, as it may be asked again.
 *
 * Both ends of the memory count bytes alike: an address of the device less that of its region is a place in the part.
 */
import type { RemotePart } from '../loads/remote-part.ts';
import type { Answer } from './answers.ts';
import { ByRank } from './by-rank.ts';
import type { RemoteRegion } from './regions.ts';

/** A region, and the memory behind it. */
export interface NearRegion extends RemoteRegion {
  readonly part: RemotePart;
}

const NONE: readonly NearRegion[] = [];

/** For the halves of a word. */
const wide = new BigInt64Array(2);
const narrow = new Uint32Array(wide.buffer);

function join(lo: number, hi: number): bigint {
  narrow[0] = lo;
  narrow[1] = hi;
  return wide[0];
}

function answerWith(found: bigint, answer: Answer): void {
  wide[0] = found;
  answer(narrow[0], narrow[1]);
}

export class NearMemory {
  readonly #regions: ByRank<readonly NearRegion[]>;
  #part!: RemotePart;

  /** @param regionsOf maps what can be reached of a rank; asked once for each */
  constructor(regionsOf: (rank: number) => readonly NearRegion[]) {
    this.#regions = new ByRank((rank) => {
      try {
        return regionsOf(rank);
      } catch {
        // The rank has just died, most likely. Requests will say why.
        return NONE;
      }
    });
  }

  /** The memory behind a region; `undefined`: requests reach it alone, or it was transferred since. */
  partOf(rank: number, { rkey, address }: RemoteRegion): RemotePart | undefined {
    return this.#find(rank, rkey, address, 1) < 0 ? undefined : this.#part;
  }

  /** Adds to a word of 64 bits, and answers. @returns whether it could */
  fetchAdd(rank: number, rkey: number, address: number, lo: number, hi: number, answer: Answer): boolean {
    const place = this.#find(rank, rkey, address, 8);
    if (place < 0) return false;
    answerWith(Atomics.add(this.#part.i64, place / 8, join(lo, hi)), answer);
    return true;
  }

  /**
   * Replaces a word of 64 bits by (`swapLo`, `swapHi`) if it is (`lo`, `hi`), and answers.
   * @returns whether it was; if not, nothing is answered
   */
  swapped(
    rank: number,
    rkey: number,
    address: number,
    lo: number,
    hi: number,
    swapLo: number,
    swapHi: number,
    answer: Answer,
  ): boolean {
    const place = this.#find(rank, rkey, address, 8);
    if (place < 0) return false;
    const expected = join(lo, hi);
    if (Atomics.compareExchange(this.#part.i64, place / 8, expected, join(swapLo, swapHi)) !== expected) return false;
    answerWith(expected, answer);
    return true;
  }

  /** Reads bytes into `into` from `to` on. @returns whether it could */
  read(rank: number, rkey: number, address: number, bytes: number, into: ArrayBufferLike, to: number): boolean {
    const place = this.#find(rank, rkey, address, bytes);
    if (place < 0) return false;
    new Uint8Array(into, to, bytes).set(this.#part.u8.subarray(place, place + bytes));
    return true;
  }

  /** Writes the bytes of `from` from `at` on. @returns whether it could */
  write(rank: number, rkey: number, address: number, bytes: number, from: ArrayBufferLike, at: number): boolean {
    const place = this.#find(rank, rkey, address, bytes);
    if (place < 0) return false;
    this.#part.u8.set(new Uint8Array(from, at, bytes), place);
    return true;
  }

  /** The place in the views of `#part`; −1: requests reach it alone, or it was transferred since. */
  #find(rank: number, rkey: number, address: number, bytes: number): number {
    for (const region of this.#regions.of(rank)) {
      if (region.rkey !== rkey) continue;
      const { part } = region;
      const place = address - region.address + part.skew;
      if (place < 0 || place + bytes > part.u8.length) return -1;
      this.#part = part;
      return place;
    }
    return -1;
  }
}
