/**
 * What the ranks print, line by line: `[2] ` before each line, and no line inside another.
 *
 * A chunk from a rank is cut at its last line feed. The whole lines go on at once; the rest waits for its end. Cutting
 * at a byte that is a line feed never cuts a UTF-8 sequence, so bytes are handled as Latin-1 strings, which are as long
 * as their bytes.
 *
 * Memory is bounded: when the destination is full, all ranks that write to it are paused, and a line longer than
 * {@link MAX_LINE} is broken.
 *
 * On a terminal, a line that has not ended yet (a question, a progress bar that ends in a carriage return) is shown
 * after a short while, and is replaced when it goes on or when something else is printed. Elsewhere carriage returns
 * are passed on unchanged.
 */
import type { Readable } from 'node:stream';

/** Where output goes. */
export interface Destination extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly writableNeedDrain?: boolean;
}

/** Bytes of the longest line that is kept whole. */
const MAX_LINE = 1 << 16;
/** Milliseconds after which an unfinished line is shown on a terminal. */
const SHOW_AFTER = 40;
const ERASE_LINE = '\r\x1b[2K';
/** ANSI foreground colours that can be told apart on dark and on light ground. */
const COLOURS = [36, 33, 32, 35, 34, 31];

/** `[ 3] `, as wide for every rank; coloured by rank if asked. */
export function prefixOf(rank: number, size: number, colour: boolean): string {
  const label = `[${String(rank).padStart(String(size - 1).length)}]`;
  return colour ? `\x1b[${COLOURS[rank % COLOURS.length]}m${label}\x1b[0m ` : `${label} `;
}

/** Whether a destination gets colours: a terminal, unless `NO_COLOR` is set (no-color.org). */
export function wantsColour(destination: Destination, env: NodeJS.ProcessEnv = process.env): boolean {
  return destination.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}

/** What destinations on the same terminal know of each other: whether an unfinished line stands on it. */
export interface Terminal {
  showsPartial: boolean;
  columns(): number | undefined;
}

/** Text in, text out, Latin-1 for bytes; it may keep some back until the end. */
export interface Sieve {
  feed(text: string): string;
  end(): string;
}

/** Joins the streams of many ranks into one destination. */
export class LineMerger {
  readonly #destination: Destination;
  readonly #terminal: Terminal | undefined;
  readonly #sources = new Set<Readable>();
  readonly #onDrain = (): void => this.#resume();
  readonly #onError = (error: Error): void => this.#fail(error);
  readonly #failed: (error: Error) => void;
  #blocked = false;
  #broken = false;

  /**
   * @param terminal shared by the destinations that are the same terminal; `undefined` if this is none
   * @param failed called once when nothing more can be written (`EPIPE`: the reader is gone); output is dropped from
   * then on
   */
  constructor(destination: Destination, terminal: Terminal | undefined, failed: (error: Error) => void) {
    this.#destination = destination;
    this.#terminal = terminal;
    this.#failed = failed;
    destination.on('error', this.#onError);
  }

  /** Whether the destination takes no more at the moment. */
  get blocked(): boolean {
    return this.#blocked;
  }

  /**
   * Passes on what `source` gives until it ends. `prefix` stands before each line. Calls `ended` when all of it is
   * passed on.
   * @param sieve takes out what must not be passed on
   */
  connect(source: Readable, prefix: string, ended: () => void, sieve?: Sieve): void {
    const stream = new RankStream(prefix, this.#terminal, (text) => this.#write(text));
    this.#sources.add(source);
    source.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      stream.feed(sieve === undefined ? text : sieve.feed(text));
    });
    const end = (): void => {
      if (!this.#sources.delete(source)) return;
      if (sieve !== undefined) stream.feed(sieve.end());
      stream.end();
      ended();
    };
    source.on('end', end).on('close', end).on('error', end);
    if (this.#blocked) source.pause();
  }

  /** Writes whole lines. */
  print(text: string, prefix: string): void {
    const stream = new RankStream(prefix, this.#terminal, (bytes) => this.#write(bytes));
    stream.feed(Buffer.from(`${text}\n`).toString('latin1'));
  }

  /** Lets go of the destination, which stays open. */
  close(): void {
    for (const source of this.#sources) source.destroy();
    this.#destination.off('drain', this.#onDrain);
    // The handler for errors stays until what is buffered has gone out, and for good if that fails.
    if (this.#broken) return;
    this.#destination.write('', (error) => {
      if (error == null) this.#destination.off('error', this.#onError);
    });
  }

  #write(text: string): void {
    if (this.#broken) return;
    if (this.#destination.write(text, 'latin1') || this.#blocked) return;
    this.#blocked = true;
    for (const source of this.#sources) source.pause();
    this.#destination.once('drain', this.#onDrain);
  }

  #resume(): void {
    this.#blocked = false;
    for (const source of this.#sources) source.resume();
  }

  #fail(error: Error): void {
    if (this.#broken) return;
    this.#broken = true;
    this.#resume();
    this.#failed(error);
  }
}

/** The stream of one rank: finished lines go on, the unfinished one is kept. All text is Latin-1 for bytes. */
class RankStream {
  readonly #prefix: string;
  readonly #between: string;
  readonly #terminal: Terminal | undefined;
  readonly #write: (text: string) => void;
  #rest = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(prefix: string, terminal: Terminal | undefined, write: (text: string) => void) {
    this.#prefix = prefix;
    this.#between = `\n${prefix}`;
    this.#terminal = terminal;
    this.#write = write;
  }

  feed(chunk: string): void {
    const text = this.#rest === '' ? chunk : this.#rest + chunk;
    const end = text.lastIndexOf('\n');
    if (end >= 0) this.#put(text.slice(0, end));
    this.#rest = text.slice(end + 1);
    if (this.#terminal !== undefined) this.#rest = lastOverwrite(this.#rest);
    while (this.#rest.length > MAX_LINE) {
      const cut = characterStart(this.#rest, MAX_LINE);
      this.#put(this.#rest.slice(0, cut));
      this.#rest = this.#rest.slice(cut);
    }
    if (this.#terminal !== undefined && this.#rest !== '') this.#timer ??= setTimeout(() => this.#show(), SHOW_AFTER);
  }

  end(): void {
    clearTimeout(this.#timer);
    if (this.#rest !== '') this.#put(this.#rest);
    this.#rest = '';
  }

  #put(lines: string): void {
    if (this.#terminal === undefined) {
      this.#write(`${this.#prefix}${this.#prefix === '' ? lines : lines.replaceAll('\n', this.#between)}\n`);
      return;
    }
    const shown = lines
      .split('\n')
      .map((line) => this.#prefix + lastOverwrite(line).replace(/\r$/, ''))
      .join('\n');
    this.#write(`${this.#terminal.showsPartial ? ERASE_LINE : ''}${shown}\n`);
    this.#terminal.showsPartial = false;
  }

  #show(): void {
    this.#timer = undefined;
    const terminal = this.#terminal!;
    let text = this.#rest.replace(/\r$/, '');
    if (text === '') return;
    // A line that wraps could not be erased. The width is counted in bytes: never too much; text with escape sequences
    // is left whole.
    const room = Math.max(8, (terminal.columns() || 80) - 8);
    if (!text.includes('\x1b') && text.length > room) text = text.slice(0, characterStart(text, room));
    this.#write(`${terminal.showsPartial ? ERASE_LINE : ''}${this.#prefix}${text}`);
    terminal.showsPartial = true;
  }
}

/** What a terminal shows of a line in which carriage returns go back to its start: the last part that is not empty. */
function lastOverwrite(line: string): string {
  const end = line.endsWith('\r') ? line.length - 1 : line.length;
  return line.slice(line.lastIndexOf('\r', end - 1) + 1);
}

/** The last index at or before `index` where a UTF-8 sequence begins. */
function characterStart(bytes: string, index: number): number {
  let start = index;
  while (start > index - 4 && (bytes.charCodeAt(start) & 0xc0) === 0x80) start--;
  return start === index - 4 ? index : start;
}
