/**
 * What puts and gets of layouts take in each way, as it was measured between two ranks, and which is the quickest.
 *
 * A time grows with the number of pieces and with their length nearly as straight lines do, with bends where a list is
 * full, reads wait for others, or what is packed goes in several messages. So it is measured at some places and lies on
 * straight lines between them and beyond.
 */
import type { Way } from './way.ts';

const WAYS: readonly Way[] = ['multi-write', 'pack', 'sgrs'];
const PIECES = [2, 8, 32, 128, 512];
/** Of a piece. */
const BYTES = [16, 64, 256, 4096];
/** Of more in all, nothing is measured: between 128 KiB and the last place there are no bends. */
const MOST = 2 ** 17;
/** Ways, puts and gets, pieces, bytes. */
const TIMES = WAYS.length * 2 * PIECES.length * BYTES.length;

/** A transfer whose time is wanted. */
export interface Place {
  readonly way: Way;
  readonly puts: boolean;
  readonly pieces: number;
  /** Of a piece. */
  readonly bytes: number;
}

function indexOf(way: number, puts: boolean, pieces: number, bytes: number): number {
  return ((2 * way + (puts ? 1 : 0)) * PIECES.length + pieces) * BYTES.length + bytes;
}

/** Where a value lies: from which place on the straight line that it is on begins, and how far along it. */
function along(places: readonly number[], value: number): readonly [from: number, part: number] {
  let from = 0;
  while (from < places.length - 2 && value > places[from + 1]) from++;
  return [from, (value - places[from]) / (places[from + 1] - places[from])];
}

export class LayoutCosts {
  /** Microseconds of each place. */
  readonly times: Float64Array;
  #puts = false;
  #pieces = 0;
  #bytes = 0;
  #way: Way = 'multi-write';

  /** @param times as `times` of another one; absent: zeros, to be filled by `note` and `complete` */
  constructor(times = new Float64Array(TIMES)) {
    this.times = times;
  }

  /** What has to be measured, in this order: the ways of one transfer together. */
  static *places(): Generator<Place> {
    for (const puts of [true, false]) {
      for (const pieces of PIECES) {
        for (const bytes of BYTES) {
          if (pieces * bytes <= MOST) for (const way of WAYS) yield { way, puts, pieces, bytes };
        }
      }
    }
  }

  /** The shortest that is noted of a place counts. */
  note({ way, puts, pieces, bytes }: Place, microseconds: number): void {
    const at = indexOf(WAYS.indexOf(way), puts, PIECES.indexOf(pieces), BYTES.indexOf(bytes));
    if (this.times[at] === 0 || microseconds < this.times[at]) this.times[at] = microseconds;
  }

  /** Fills what was not measured, on the straight line through the two numbers of pieces before. */
  complete(): void {
    for (const [pieces, count] of PIECES.entries()) {
      const [near, far] = [PIECES[pieces - 1], PIECES[pieces - 2]];
      for (const [bytes, length] of BYTES.entries()) {
        if (count * length <= MOST) continue;
        for (let call = 0; call < 2 * WAYS.length; call++) {
          const time = (before: number): number =>
            this.times[indexOf(call >> 1, call % 2 === 1, pieces - before, bytes)];
          const slope = (time(1) - time(2)) / (near - far);
          this.times[indexOf(call >> 1, call % 2 === 1, pieces, bytes)] = time(1) + slope * (count - near);
        }
      }
    }
  }

  /**
   * @param bytes in all
   * @param pieces at least 2
   */
  quickest(puts: boolean, bytes: number, pieces: number): Way {
    // Programs move the same layouts again and again.
    if (puts === this.#puts && bytes === this.#bytes && pieces === this.#pieces) return this.#way;
    const [p, u] = along(PIECES, pieces);
    const [b, v] = along(BYTES, bytes / pieces);
    let best = Number.POSITIVE_INFINITY;
    for (const [i, way] of WAYS.entries()) {
      const at = (piece: number): number => {
        const first = indexOf(i, puts, p + piece, b);
        return (1 - v) * this.times[first] + v * this.times[first + 1];
      };
      const time = (1 - u) * at(0) + u * at(1);
      if (time >= best) continue;
      best = time;
      this.#way = way;
    }
    [this.#puts, this.#bytes, this.#pieces] = [puts, bytes, pieces];
    return this.#way;
  }
}
