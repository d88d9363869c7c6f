/** Writes what a rank tells to a file of its own. The clock is that of the host: all its ranks have the same. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { RaceSink } from '../race-events.ts';
import { EventRoom } from './event-room.ts';
import { logFile } from './race-log-format.ts';

/** Nanoseconds, by the clock of this host. */
export function now(): number {
  return Number(process.hrtime.bigint());
}

export class RaceLogWriter implements RaceSink {
  readonly isPrompt = false;
  readonly #rank: number;
  readonly #room = new EventRoom(() => this.flush());
  #file: number | undefined;
  #isClosed = false;

  constructor(rank: number) {
    this.#rank = rank;
  }

  /** Until then everything is kept in memory. */
  open(folder: string): void {
    if (this.#file !== undefined || this.#isClosed) return;
    this.#file = openSync(logFile(folder, this.#rank), 'w');
    this.flush();
  }

  text(id: number, text: string): void {
    this.#room.text(id, text);
  }

  event(kind: number, data: Float64Array, length: number): void {
    this.#room.event(kind, data, length, now());
  }

  flush(): void {
    if (this.#file === undefined) return;
    const { bytes } = this.#room;
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    this.#room.used = 0;
  }

  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}
