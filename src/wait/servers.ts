/**
 * What a rank does for others, and for its own operations, whenever it is about to sleep (`Progress.serve`).
 *
 * Most servers are looked at each time. Those of windows are not, since of a thousand windows few have something to do.
 * They say so themselves when they begin something (`stir`), and are looked at until they are quiet. The device tells
 * what comes from other ranks: it counts completions of queues that announce them (`Context.news`), and when that count
 * has changed, all servers are asked. So a look costs as much as there is to do.
 *
 * No news is lost. A completion's producer first puts it into its queue, then takes the queue's wish to be told, then
 * counts it, then rings. This rank reads the count, and then asks whether the wish still stands in each queue. If it
 * does, nothing had come that was not taken in. If the wish was taken after that, the count changes after this rank has
 * read it, and the bell rings, so there is another look.
 */
import type { Concerned } from './concerned.ts';

/** Something that need not be looked at while it is quiet. */
export interface Stirred {
  /** It is not quiet any more: cheap while it has been stirred already. */
  stir(): void;
  /** Ends it. */
  end(): void;
}

interface Quiet {
  readonly serve: () => number;
  readonly isQuiet: () => boolean;
  readonly concerned: Concerned;
}

export class Servers {
  readonly #news: () => number | undefined;
  readonly #always = new Map<() => number, Concerned>();
  readonly #quiet = new Set<Quiet>();
  readonly #stirred = new Set<Quiet>();
  #seen: number | undefined;

  /** @param news as of `Context.news` */
  constructor(news: () => number | undefined) {
    this.#news = news;
    this.#seen = news();
  }

  add(serve: () => number, concerned: Concerned): void {
    this.#always.set(serve, concerned);
  }

  delete(serve: () => number): void {
    this.#always.delete(serve);
  }

  /** @param isQuiet whether it has nothing to do, and nothing has come for it: cheap, and throws nothing */
  addQuiet(serve: () => number, isQuiet: () => boolean, concerned: Concerned): Stirred {
    if (this.#news() === undefined) {
      this.add(serve, concerned);
      return { stir() {}, end: () => this.delete(serve) };
    }
    const quiet: Quiet = { serve, isQuiet, concerned };
    this.#quiet.add(quiet);
    this.#stirred.add(quiet);
    return {
      stir: () => {
        if (this.#quiet.has(quiet)) this.#stirred.add(quiet);
      },
      end: () => {
        this.#quiet.delete(quiet);
        this.#stirred.delete(quiet);
      },
    };
  }

  /** Looks at all that may have something to do. @returns the milliseconds until something is due */
  run(): number {
    let due = Number.POSITIVE_INFINITY;
    for (const [serve, concerned] of this.#always) due = Math.min(due, call(serve, concerned));
    if (this.#quiet.size === 0) return due;
    const news = this.#news();
    if (news !== this.#seen) {
      this.#seen = news;
      for (const quiet of this.#quiet) if (!quiet.isQuiet()) this.#stirred.add(quiet);
    }
    for (const quiet of this.#stirred) {
      due = Math.min(due, call(quiet.serve, quiet.concerned));
      if (quiet.isQuiet()) this.#stirred.delete(quiet);
    }
    return due;
  }

  clear(): void {
    this.#always.clear();
    this.#quiet.clear();
    this.#stirred.clear();
  }
}

function call(serve: () => number, concerned: Concerned): number {
  try {
    return serve();
  } catch (error) {
    concerned.note(error);
    return Number.POSITIVE_INFINITY;
  }
}
