/**
 * The supersteps of one rank as spans: one for each superstep, and within it computing, waiting for all, delivery. A
 * superstep that has not ended lasts to the end of the trace, and says `unfinished`.
 */

import type { Span } from './span.ts';
import { readScope } from './supersteps.ts';
import { Field, Kind } from './trace-ring.ts';

export class StepSpans {
  readonly #rank: number;
  readonly #origin: number;
  readonly #last: number;
  readonly #spans: Span[] = [];
  /** By computation: the superstep that has not ended, and its last phase, where the next one begins. */
  readonly #open = new Map<string, { readonly whole: Span; phase: Span }>();

  /**
   * @param origin the first event, by the ranks' clock
   * @param last the last event, from there
   */
  constructor(rank: number, origin: number, last: number) {
    this.#rank = rank;
    this.#origin = origin;
    this.#last = last;
  }

  /** @param record of COMPUTED, GATHERED or DELIVERED */
  add(scope: string, record: Float64Array): void {
    const named = readScope(scope);
    if (named === undefined) return;
    const { id, pid, processes } = named;
    const superstep = record[Field.PLACE];
    const start = Math.round(record[Field.TIME] - this.#origin);
    const end = Math.round(record[Field.TIME] - this.#origin + record[Field.VALUE]);
    const kind = record[Field.KIND];
    if (kind === Kind.COMPUTED) {
      const args = { computation: id, superstep, process: pid, processes };
      const whole = this.#span(`superstep ${superstep}`, start, this.#last, args);
      const phase = this.#span('computing', start, end, { ...args, messages: record[Field.BYTES] });
      this.#open.set(id, { whole, phase });
      return;
    }
    // Without its beginning it is left out.
    const open = this.#open.get(id);
    if (open?.whole.args['superstep'] !== superstep) return;
    const { whole, phase } = open;
    const args = { computation: id, superstep };
    if (kind === Kind.GATHERED) {
      open.phase = this.#span('waiting for all', phase.end, Math.max(phase.end, end), args);
      return;
    }
    const [out, into] = [record[Field.PEER] / 8, record[Field.BYTES] / 8];
    const words = { h: Math.max(out, into), out, in: into };
    const { end: last } = this.#span('delivery', phase.end, Math.max(phase.end, end), { ...args, ...words });
    Object.assign(whole.args, words);
    whole.end = last;
    this.#open.delete(id);
  }

  finish(): Span[] {
    for (const { whole } of this.#open.values()) whole.args['unfinished'] = true;
    return this.#spans;
  }

  #span(name: string, start: number, end: number, args: Span['args']): Span {
    const span: Span = { rank: this.#rank, category: 'superstep', name, start, end, args: { ...args }, lane: 0 };
    this.#spans.push(span);
    return span;
  }
}
