/**
 * Ranges of a file that can be given out again, in pages. Ranges that touch are one range, so a file whose memory has
 * all been freed is one range again, whatever it was cut into.
 *
 * A request gets the smallest range that holds it, of several the first: what is left over is as small as it can be,
 * and large ranges stay for large requests. Both calls look at all ranges, of which there are at most as many as there
 * is live memory, plus one.
 */
export class FreeRanges {
  /** In ascending order. */
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];

  /** How many ranges there are. */
  get count(): number {
    return this.#starts.length;
  }

  /** @returns where `pages` pages begin, which are free no longer; `undefined` if no range is that long */
  take(pages: number): number | undefined {
    const lengths = this.#lengths;
    let best = -1;
    for (let i = 0; i < lengths.length; i++) {
      if (lengths[i] >= pages && (best < 0 || lengths[i] < lengths[best])) best = i;
    }
    return best < 0 ? undefined : this.#cut(best, pages);
  }

  /**
   * Takes the range that ends at page `end`, for a caller that can go on behind it. @returns where it begins; `end` if
   * there is none
   */
  takeLast(end: number): number {
    const last = this.#starts.length - 1;
    if (last < 0 || this.#starts[last] + this.#lengths[last] !== end) return end;
    return this.#cut(last, this.#lengths[last]);
  }

  /** The pages from `start` on are free: none of them is so already. */
  give(start: number, pages: number): void {
    const starts = this.#starts;
    const lengths = this.#lengths;
    const at = this.#firstFrom(start);
    const joinsLeft = at > 0 && starts[at - 1] + lengths[at - 1] === start;
    const joinsRight = at < starts.length && start + pages === starts[at];
    if (joinsLeft) {
      lengths[at - 1] += pages;
      if (!joinsRight) return;
      lengths[at - 1] += lengths[at];
      starts.splice(at, 1);
      lengths.splice(at, 1);
    } else if (joinsRight) {
      starts[at] = start;
      lengths[at] += pages;
    } else {
      starts.splice(at, 0, start);
      lengths.splice(at, 0, pages);
    }
  }

  #cut(at: number, pages: number): number {
    const start = this.#starts[at];
    if (this.#lengths[at] === pages) {
      this.#starts.splice(at, 1);
      this.#lengths.splice(at, 1);
    } else {
      this.#starts[at] += pages;
      this.#lengths[at] -= pages;
    }
    return start;
  }

  /** The index of the first range that begins at `page` or behind it. */
  #firstFrom(page: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#starts[middle] < page) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
