/**
 * When the bytes of communication calls have arrived, for calls that are not done when they return. It is when the last
 * of the requests that the call has made has taken effect, or, where the device does not say when that was, when that
 * request was known to be complete.
 *
 * The requests of a call bear its turn, which the rank records right before the call itself. The requests need not be
 * posted during the call: some wait for room, some for the answers of others.
 *
 * Other calls are queued, and carried out by the target's processor when a message has brought them. Those to a rank
 * are counted at both ends. They are queued in their call, so the record of the call is the next one of its kind; or
 * they bear its turn, too.
 */
import type { Span } from './span.ts';

/** Names of what is queued begin so; a queue's own name follows. */
export const QUEUED = 'queued in ';

export function isQueued(name: string): boolean {
  return name.startsWith(QUEUED);
}

interface Operation {
  readonly span: Span;
  readonly peer: number;
  /** Of its requests. */
  readonly turn: string;
  /** Those that were queued in its call. */
  readonly queued: readonly Posted[];
}

interface Posted {
  /** Absent of what is queued. */
  readonly span: Span | undefined;
  readonly key: string;
}

export class OperationArrivals {
  readonly #operations: Operation[] = [];
  /** By turn. */
  readonly #byTurn = new Map<string, Posted[]>();
  readonly #posted = new Map<string, Span>();
  readonly #effects = new Map<string, number>();
  readonly #completions = new Map<string, number>();
  /** By rank: what was queued in a call whose record comes. */
  readonly #queued = new Map<number, Posted[]>();
  /** By rank: the turn of the call that comes next. */
  readonly #next = new Map<number, number>();

  issued(rank: number, turn: number): void {
    this.#next.set(rank, turn);
  }

  /** @returns whether it is one whose bytes arrive later */
  began(span: Span, window: string, peer: number): boolean {
    const { rank } = span;
    const turn = this.#next.get(rank);
    this.#next.delete(rank);
    const queued = this.#queued.get(rank) ?? [];
    this.#queued.delete(rank);
    if ((turn === undefined && queued.length === 0) || peer < 0) return false;
    this.#operations.push({ span, peer, turn: `${window}|${rank}|${turn}`, queued });
    return true;
  }

  /** A call of another kind, or one that has failed: what was queued before was not for the next one. */
  forget(rank: number): void {
    this.#queued.delete(rank);
    this.#next.delete(rank);
  }

  /** @param turn 0: of the call whose record comes */
  queued(rank: number, window: string, turn: number, key: string): void {
    const posted = { span: undefined, key };
    if (turn === 0) push(this.#queued, rank, posted);
    else push(this.#byTurn, `${window}|${rank}|${turn}`, posted);
  }

  /** @param window its id */
  posted(span: Span, window: string, turn: number, key: string): void {
    this.#posted.set(key, span);
    push(this.#byTurn, `${window}|${span.rank}|${turn}`, { span, key });
  }

  tookEffect(key: string, time: number): void {
    this.#effects.set(key, time);
  }

  /** @returns where it was posted, if the trace still has that */
  completed(key: string, time: number): Span | undefined {
    this.#completions.set(key, time);
    return this.#posted.get(key);
  }

  /** Tells of each operation that has arrived. An operation of which a request never took effect has not. */
  arrive(arrived: (span: Span, peer: number, time: number) => void): void {
    for (const { span, peer, turn, queued } of this.#operations) {
      const requests = [...queued, ...(this.#byTurn.get(turn) ?? [])];
      if (requests.length > 1) span.args['requests'] = requests.length;
      let last = span.start;
      for (const request of requests) {
        // Pictures show the call in their place.
        if (request.span !== undefined) request.span.args['of'] = span.name;
        last = Math.max(last, this.#effects.get(request.key) ?? this.#completions.get(request.key) ?? Number.NaN);
      }
      if (requests.length > 0 && !Number.isNaN(last)) arrived(span, peer, last);
    }
  }
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
