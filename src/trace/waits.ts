/**
 * Which rank a wait was for. Where the wait ended, that is the rank from which the last thing came that arrived in it:
 * the partner of a fence, or the rank that posted, completed, let go of a lock, or sent a message. Where nothing
 * arrived, or the wait never ended, it is what the rank itself said when it began to wait.
 */

import { arrowKind } from './scene-arrows.ts';
import type { Trace, TraceArrow, TraceSpan } from './trace-reader.ts';

/** What a rank says that it waits for, with ranks of the window. */
const SAID = [
  /waiting (?:in the barrier )?for (?:the \w+ of )?(ranks? \d[\d, ]*)/,
  /\((rank \d+) (?:holds|held) it/,
  /operations at (rank \d[\d, ]*)/,
  /(?:from|request to) (rank \d+)/,
];

export class Waits {
  /** By rank: what comes to it from others, in the order of arrival. */
  readonly #arrivals = new Map<number, TraceArrow[]>();
  readonly #ofWorld: boolean;

  /** @param ranks whose waits are asked for, @param ofWorld the window's ranks are those of the world */
  constructor({ arrows }: Trace, ranks: readonly number[], ofWorld: boolean) {
    this.#ofWorld = ofWorld;
    for (const rank of ranks) this.#arrivals.set(rank, []);
    for (const arrow of arrows) {
      const kind = arrowKind(arrow.name);
      const tells = kind === 'signal' || kind === 'lock' || kind === 'notification' || arrow.name === 'message';
      if (tells && arrow.from.rank !== arrow.to.rank) this.#arrivals.get(arrow.to.rank)?.push(arrow);
    }
    for (const arrivals of this.#arrivals.values()) arrivals.sort((a, b) => a.to.end - b.to.end);
  }

  /** @param call in which it is; `undefined` if that is not known */
  awaited(wait: TraceSpan, call: TraceSpan | undefined): string | undefined {
    // No other rank sends what a flush waits for.
    const target = call?.args['target'];
    if (/^flush of/.test(wait.name) && target !== undefined) return `waits for requests to ${target}`;
    const last = wait.args['unfinished'] === true ? undefined : this.#lastWithin(wait);
    if (last !== undefined) return `waits for rank ${last.from.rank}`;
    for (const said of SAID) {
      const who = said.exec(wait.name)?.[1].trim();
      if (who !== undefined) return `waits for ${who}${this.#ofWorld ? '' : ' of its window'}`;
    }
    return undefined;
  }

  #lastWithin({ rank, start, end }: TraceSpan): TraceArrow | undefined {
    const arrivals = this.#arrivals.get(rank) ?? [];
    let [low, high] = [0, arrivals.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (arrivals[middle].to.end <= end) low = middle + 1;
      else high = middle;
    }
    const last = arrivals[low - 1];
    return last !== undefined && last.to.end > start ? last : undefined;
  }
}
