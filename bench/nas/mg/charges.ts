/**
 * The right-hand side of multigrid (NPB 1, §2.4): a grid of random numbers, of which the ten largest become 1, the ten
 * smallest -1, and all others 0. Point (x, y, z) has the number x + n (y + n z) of the sequence, so each rank draws
 * those of its own block and jumps over the others.
 */
import type { Communicator } from 'onesided';
import { fraction, MULTIPLIER, power, product, SEED } from '../random.ts';
import type { Block, Level, Place } from './grid.ts';

const CHARGES = 10;

/** The greatest of what it was shown, in falling order, and where they were. */
class Greatest {
  readonly values = new Float64Array(CHARGES).fill(Number.NEGATIVE_INFINITY);
  readonly places = new Float64Array(CHARGES);

  see(value: number, place: number): void {
    if (value <= this.values[CHARGES - 1]) return;
    let at = CHARGES - 1;
    for (; at > 0 && this.values[at - 1] < value; at--) {
      this.values[at] = this.values[at - 1];
      this.places[at] = this.places[at - 1];
    }
    this.values[at] = value;
    this.places[at] = place;
  }
}

/** Fills a block of zeros, if it has any. Collective. */
export async function placeCharges(world: Communicator, place: Place, level: Level, block: Block): Promise<void> {
  const { n, points, lengths } = level;
  const [left, top, front] = [0, 1, 2].map((axis) => place.at[axis] * points[axis]);
  const [largest, smallest] = [new Greatest(), new Greatest()];
  const indexOf = (x: number, y: number, z: number): number => x + 1 + lengths[0] * (y + 1 + lengths[1] * (z + 1));
  for (let z = 0; block.data !== undefined && z < points[2]; z++) {
    for (let y = 0; y < points[1]; y++) {
      const before = left + n * (top + y + n * (front + z));
      let state = product(SEED, power(MULTIPLIER, before));
      for (let x = 0; x < points[0]; x++) {
        state = product(state, MULTIPLIER);
        const value = fraction(state);
        largest.see(value, indexOf(x, y, z));
        smallest.see(-value, indexOf(x, y, z));
      }
    }
  }
  for (const [kind, sign] of [
    [largest, 1],
    [smallest, -1],
  ] as const) {
    const all = new Float64Array(CHARGES * world.size);
    await world.allgather(kind.values, all);
    const least = all.sort().at(-CHARGES)!;
    // No two numbers of the sequence are the same.
    for (const [i, value] of kind.values.entries()) {
      if (block.data !== undefined && value >= least) block.data[kind.places[i]] = sign;
    }
  }
}
