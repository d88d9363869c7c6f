/**
 * Passes this process's standard input on to rank 0, no faster than the rank takes it. A terminal is read only while
 * this process is in its foreground: one in the background would be stopped.
 */
import { readFileSync } from 'node:fs';

/** Bytes that may be under way. */
const MOST_UNDER_WAY = 1 << 16;
/** Milliseconds between two looks whether this process has come to the foreground. */
const LOOK_EVERY = 500;

export class InputFeed {
  readonly #send: (text: string | null) => void;
  readonly #onData = (data: Buffer): void => this.#pass(data);
  readonly #onEnd = (): void => this.#send(null);
  readonly #onError = (): void => this.#send(null);
  #underWay = 0;
  #timer: NodeJS.Timeout | undefined;
  #open = false;
  #over = false;

  /** @param send passes bytes on as a text of Latin-1, and then the end */
  constructor(send: (text: string | null) => void) {
    this.#send = send;
  }

  start(): void {
    if (this.#over || this.#open) return;
    if (process.stdin.isTTY && !inForeground()) {
      this.#timer = setTimeout(() => this.start(), LOOK_EVERY).unref();
      return;
    }
    this.#open = true;
    process.stdin.on('data', this.#onData).once('end', this.#onEnd).once('error', this.#onError);
  }

  /** @param bytes that the rank has taken; negative: it takes no more */
  taken(bytes: number): void {
    if (bytes < 0) {
      this.stop();
      return;
    }
    this.#underWay -= bytes;
    if (this.#open && this.#underWay < MOST_UNDER_WAY) process.stdin.resume();
  }

  stop(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    if (!this.#open) return;
    this.#open = false;
    process.stdin.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError);
    process.stdin.pause();
  }

  #pass(data: Buffer): void {
    this.#underWay += data.length;
    if (this.#underWay >= MOST_UNDER_WAY) process.stdin.pause();
    this.#send(data.toString('latin1'));
  }
}

/** Whether the terminal is this process's group's. */
function inForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return true;
  }
}
