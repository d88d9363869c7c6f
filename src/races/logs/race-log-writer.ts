/** Writes what a rank tells to a file of its own. The clock is that of the host: all its ranks have the same. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { RaceSink } from '../race-events.ts';
import { logFile, TEXT } from './race-log-format.ts';

const ROOM = 32_768;

function now(): number {
  return Number(process.hrtime.bigint());
}

export class RaceLogWriter implements RaceSink {
  readonly isPrompt = false;
  readonly #rank: number;
  #room = new Float64Array(ROOM);
  #used = 0;
  #file: number | undefined;
  #time: number | undefined;
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

  at(time: number | undefined): number {
    this.#time = time;
    return now();
  }

  text(id: number, text: string): void {
    const bytes = Buffer.from(text);
    const words = Math.ceil(bytes.length / 8);
    this.#need(3 + words);
    const at = this.#used;
    this.#room[at] = TEXT;
    this.#room[at + 1] = id;
    this.#room[at + 2] = bytes.length;
    new Uint8Array(this.#room.buffer, 8 * (at + 3), bytes.length).set(bytes);
    this.#used += 3 + words;
  }

  event(kind: number, data: Float64Array, length: number): void {
    this.#need(3 + length);
    const room = this.#room;
    let at = this.#used;
    room[at++] = kind;
    room[at++] = length;
    room[at++] = this.#time ?? now();
    for (let i = 0; i < length; i++) room[at++] = data[i];
    this.#used = at;
  }

  #need(numbers: number): void {
    if (this.#used + numbers <= this.#room.length) return;
    if (this.#file !== undefined) this.flush();
    if (this.#used + numbers <= this.#room.length) return;
    const more = new Float64Array(2 * Math.max(this.#room.length, this.#used + numbers));
    more.set(this.#room.subarray(0, this.#used));
    this.#room = more;
  }

  flush(): void {
    if (this.#file === undefined) return;
    const bytes = new Uint8Array(this.#room.buffer, 0, 8 * this.#used);
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    this.#used = 0;
  }

  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}
