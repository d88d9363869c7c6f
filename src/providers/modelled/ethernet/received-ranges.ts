/** What has come of a stream of bytes: all up to `expected`, and ranges behind gaps. Each range is [from, to). */
export class ReceivedRanges {
  /** The first byte that has not come. */
  expected = 0;
  /** Ascending, disjoint, and with a gap before each. */
  #ahead: { from: number; to: number }[] = [];

  /** Whether something has come that is ahead of a byte that has not. */
  get hasGap(): boolean {
    return this.#ahead.length > 0;
  }

  /** @returns whether `expected` has moved on */
  add(from: number, to: number): boolean {
    if (to <= this.expected) return false;
    if (from > this.expected) {
      this.#keep(from, to);
      return false;
    }
    this.expected = to;
    const ahead = this.#ahead;
    let n = 0;
    for (; n < ahead.length && ahead[n].from <= this.expected; n++)
      this.expected = Math.max(this.expected, ahead[n].to);
    if (n > 0) this.#ahead = ahead.slice(n);
    return true;
  }

  #keep(from: number, to: number): void {
    const ahead = this.#ahead;
    let first = ahead.length;
    while (first > 0 && ahead[first - 1].to >= from) first--;
    let end = first;
    for (; end < ahead.length && ahead[end].from <= to; end++) {
      from = Math.min(from, ahead[end].from);
      to = Math.max(to, ahead[end].to);
    }
    ahead.splice(first, end - first, { from, to });
  }
}
