/**
 * What a rank tells the analysis while it runs (`--races=throw`): each event is told, and answered, before the call
 * goes on, so that a race is thrown by the call that makes it. What gives is told before the call does it, and what
 * takes after the call has it; so the analysis learns of all ranks' events in an order that is right.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { RmaError } from '../../errors.ts';
import { loadNative } from '../../native.ts';
import { EventRoom } from '../logs/event-room.ts';
import { RaceEvent, type RaceSink } from '../race-events.ts';
import { RaceExchange } from './race-exchange.ts';

/**
 * Told with what comes next: names of things, and operations, whose call tells of its arrays before it does anything.
 */
const WITH_THE_NEXT = new Set<number>([RaceEvent.EPOCH, RaceEvent.COMMUNICATOR, RaceEvent.OPERATION]);

/** Where ranks ask: a memory file by its path, or what threads share. */
export type LivePlace = string | SharedArrayBuffer;

export class RaceAsker implements RaceSink {
  readonly isPrompt = true;
  readonly #ask: (numbers: Float64Array) => string;
  readonly #room = new EventRoom(() => {});

  private constructor(ask: (numbers: Float64Array) => string) {
    this.#ask = ask;
  }

  /** @returns nothing if the place is not that of this rank: it is in another job */
  static at(place: LivePlace, rank: number, size: number): RaceAsker | undefined {
    const exchange = typeof place === 'string' ? mapped(place) : new RaceExchange(place);
    if (exchange?.size !== size || !exchange.take(rank)) return undefined;
    return new RaceAsker(exchange.asker(rank));
  }

  text(id: number, text: string): void {
    this.#room.text(id, text);
  }

  /** Errors: `ERR_RMA_RACE`. */
  event(kind: number, data: Float64Array, length: number): void {
    const room = this.#room;
    room.event(kind, data, length, 0);
    if (WITH_THE_NEXT.has(kind)) return;
    const numbers = room.numbers.subarray(0, room.used);
    room.used = 0;
    const race = this.#ask(numbers);
    if (race !== '') throw new RmaError('ERR_RMA_RACE', race);
  }
}

function mapped(path: string): RaceExchange | undefined {
  const native = loadNative();
  if (native === undefined) return undefined;
  const fd = openSync(path, 'r+');
  try {
    return new RaceExchange(native.memoryMap(fd, 0, fstatSync(fd).size), native);
  } finally {
    closeSync(fd);
  }
}
