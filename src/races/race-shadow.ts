/**
 * The shadow of some memory: which accesses to each byte may still race with a later one. It is kept in pages, each a
 * sorted list of stretches without gaps between equal ones; a stretch has the accesses that all its bytes had.
 *
 * Cost: an access looks at the stretches that it touches. Memory: a stretch is about a hundred bytes, whatever its
 * length; a rank's shadow is bounded (races.ts says what was forgotten).
 */
import { covers, endsWith, isConflict, type Moment, Order, orderOf, type RaceAccess } from './race-access.ts';

const PAGE = 4096;

/** Stretches of a page, by place: bytes `low[i]` … `high[i] − 1`. */
class Page {
  readonly low: number[] = [];
  readonly high: number[] = [];
  readonly accesses: (readonly RaceAccess[])[] = [];

  /** The first stretch that ends behind `at`. */
  find(at: number): number {
    let [begin, end] = [0, this.low.length];
    while (begin < end) {
      const middle = (begin + end) >>> 1;
      if (this.high[middle] <= at) begin = middle + 1;
      else end = middle;
    }
    return begin;
  }

  insert(i: number, low: number, high: number, accesses: readonly RaceAccess[]): void {
    this.low.splice(i, 0, low);
    this.high.splice(i, 0, high);
    this.accesses.splice(i, 0, accesses);
  }

  remove(i: number): void {
    this.low.splice(i, 1);
    this.high.splice(i, 1);
    this.accesses.splice(i, 1);
  }

  /** Joins stretch `i` to the one before it, if they meet and have had the same. */
  join(i: number): boolean {
    if (i <= 0 || i >= this.low.length || this.high[i - 1] !== this.low[i]) return false;
    const [a, b] = [this.accesses[i - 1], this.accesses[i]];
    if (a !== b && (a.length !== b.length || !a.every((access, at) => access === b[at]))) return false;
    this.high[i - 1] = this.high[i];
    this.remove(i);
    return true;
  }
}

/** Nothing is ever added to it. */
const NONE = new Map<number, Page>();

interface Stretch {
  readonly low: number;
  readonly high: number;
  accesses: readonly RaceAccess[];
}

/** Is told of two accesses that nothing orders, the earlier one first. */
export type Found = (a: RaceAccess, b: RaceAccess, low: number, high: number) => void;

export class RaceShadow {
  /** By number; none as long as there is but one stretch. */
  #pages: Map<number, Page> = NONE;
  /**
   * The only stretch, as long as there is but one: most memories of one rank alone are arguments of one operation.
   */
  #only: Stretch | undefined;
  /** Only one rank has this memory: loads and stores of it are in order anyhow, so they are not kept. */
  isPrivate = true;
  /** Stretches, and accesses in them. */
  stretches = 0;

  /**
   * An access to bytes `low` … `high − 1`, at a moment of its rank. One record may stand for several operations of a
   * line, as long as nothing completes one of them and not the others.
   */
  access(access: RaceAccess, low: number, high: number, moment: Moment, found: Found): void {
    const keep = !this.isPrivate || access.side !== undefined;
    if (this.stretches === 0) {
      if (!keep || low >= high) return;
      this.#only = { low, high, accesses: [access] };
      this.stretches = 1;
      return;
    }
    const only = this.#only;
    if (only !== undefined) {
      if (only.low === low && only.high === high) {
        only.accesses = meet(only.accesses, access, moment, keep, (a) => found(a, access, low, high));
        return;
      }
      this.#intoPages(only);
    }
    for (let page = Math.floor(low / PAGE); page * PAGE < high; page++) {
      let own = this.#pages.get(page);
      if (own === undefined) {
        if (!keep) continue;
        own = new Page();
        this.#pages.set(page, own);
      }
      this.#touch(own, access, Math.max(low, page * PAGE), Math.min(high, (page + 1) * PAGE), moment, found, keep);
    }
  }

  #intoPages({ low, high, accesses }: Stretch): void {
    this.#only = undefined;
    this.stretches = 0;
    this.#pages = new Map();
    for (let page = Math.floor(low / PAGE); page * PAGE < high; page++, this.stretches++) {
      const own = new Page();
      own.insert(0, Math.max(low, page * PAGE), Math.min(high, (page + 1) * PAGE), accesses);
      this.#pages.set(page, own);
    }
  }

  #touch(page: Page, access: RaceAccess, low: number, high: number, moment: Moment, found: Found, keep: boolean): void {
    const before = page.low.length;
    let i = page.find(low);
    let at = low;
    const first = i;
    while (at < high) {
      if (i >= page.low.length || page.low[i] >= high) {
        if (keep) page.insert(i, at, high, [access]);
        i++;
        break;
      }
      const next = page.low[i];
      if (next > at) {
        if (keep) page.insert(i++, at, next, [access]);
        at = next;
        continue;
      }
      const end = Math.min(page.high[i], high);
      const had = page.accesses[i];
      const has = meet(had, access, moment, keep, (a) => found(a, access, at, end));
      if (has !== had) {
        if (page.low[i] < at) {
          page.insert(i, page.low[i], at, had);
          i++;
          page.low[i] = at;
        }
        if (page.high[i] > end) {
          page.insert(i + 1, end, page.high[i], had);
          page.high[i] = end;
        }
        page.accesses[i] = has;
      }
      at = end;
      i++;
    }
    for (let j = Math.min(i, page.low.length - 1); j >= Math.max(1, first); j--) page.join(j);
    this.stretches += page.low.length - before;
  }

  /** Whether nothing else than this access is kept, in one stretch. */
  hasOnly(access: RaceAccess): boolean {
    const accesses = this.#only?.accesses;
    return accesses !== undefined && accesses.length === 1 && accesses[0] === access;
  }

  /** Forgets accesses that nothing can race with any more. */
  sweep(isOver: (access: RaceAccess) => boolean): void {
    if (this.#only !== undefined) {
      this.#only.accesses = this.#only.accesses.filter((access) => !isOver(access));
      if (this.#only.accesses.length > 0) return;
      this.#only = undefined;
      this.stretches = 0;
    }
    for (const [number, page] of this.#pages) {
      const before = page.low.length;
      for (let i = page.low.length - 1; i >= 0; i--) {
        const left = page.accesses[i].filter((access) => !isOver(access));
        if (left.length === 0) page.remove(i);
        else if (left.length < page.accesses[i].length) page.accesses[i] = left;
      }
      for (let i = page.low.length - 1; i > 0; i--) page.join(i);
      this.stretches += page.low.length - before;
      if (page.low.length === 0) this.#pages.delete(number);
    }
  }

  /** Forgets some pages, the oldest first. @returns how many bytes are forgotten */
  forget(stretches: number): number {
    let bytes = 0;
    if (this.#only !== undefined && stretches > 0) {
      bytes = this.#only.high - this.#only.low;
      this.#only = undefined;
      this.stretches = 0;
    }
    for (const [number, page] of this.#pages) {
      if (stretches <= 0) break;
      stretches -= page.low.length;
      this.stretches -= page.low.length;
      for (let i = 0; i < page.low.length; i++) bytes += page.high[i] - page.low[i];
      this.#pages.delete(number);
    }
    return bytes;
  }
}

/** Whether `a` need not be kept once `b` comes. @param order of `a` to `b` */
function isReplaced(a: RaceAccess, b: RaceAccess, order: number): boolean {
  return (order === Order.BEFORE || endsWith(a, b)) && covers(b, a);
}

/** What a stretch has had once `b` comes. The same list, if that changes nothing. */
function meet(
  had: readonly RaceAccess[],
  b: RaceAccess,
  moment: Moment,
  keep: boolean,
  found: (a: RaceAccess) => void,
): readonly RaceAccess[] {
  let gone = 0;
  let isThere = false;
  for (const a of had) {
    if (a === b) {
      isThere = true;
      // Two operations of one line: nothing has completed the first, or `b` would be another record.
      if (b.side !== undefined && isConflict(b, b)) found(a);
      continue;
    }
    const order = orderOf(a, b, moment);
    if (order === Order.NONE && isConflict(a, b)) found(a);
    if (keep && isReplaced(a, b, order)) gone++;
  }
  if (!keep || (isThere && gone === 0)) return had;
  if (gone === 0) return [...had, b];
  const left = had.filter((a) => a !== b && !isReplaced(a, b, orderOf(a, b, moment)));
  left.push(b);
  return left;
}
