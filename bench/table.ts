/** The benchmark's table on the terminal, row by row as they are measured. */
import type { RowResult } from './statistics.ts';

const COLUMNS = [26, 6, 11, 11, 11, 9, 9, 22] as const;

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i < 2 || i === 7 ? cell.padEnd(COLUMNS[i]) : cell.padStart(COLUMNS[i])))
    .join(' ')
    .trimEnd();
}

/** Four digits that count, without an exponent. */
export function digits(value: number): string {
  if (value === 0) return '0';
  const places = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 4));
}

export function heading(peers: readonly string[]): string {
  return line(['row', 'unit', 'onesided', ...peers, 'ratio', 'memcpy', '  required']);
}

export function tableRow(result: RowResult, peers: readonly string[]): string {
  const { id, unit, onesided, ratio, ofMemcpy, timesSync, required = '', ok } = result;
  const mark = ok === undefined ? ' ' : ok ? '✓' : '✗';
  const times = timesSync === undefined ? '' : ` ${timesSync.toFixed(2)} × Sync`;
  return line([
    id,
    unit,
    onesided === undefined ? 'failed' : digits(onesided.median),
    ...peers.map((name) => (result.peers[name] === undefined ? '' : digits(result.peers[name].median))),
    ratio === null ? '' : `${ratio.toFixed(2)} ×`,
    ofMemcpy === undefined ? '' : `${ofMemcpy.toFixed(2)} ×`,
    `${mark} ${required}${times}`,
  ]);
}

/** A line on a terminal that says what is being done, and leaves no trace. */
export class Status {
  readonly #stream: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  show(text: string): void {
    if (this.#stream.isTTY) this.#stream.write(`\r\x1b[2K${text.slice(0, (this.#stream.columns ?? 80) - 1)}`);
  }

  /** Prints a whole line in its place. */
  print(text: string): void {
    this.#stream.write(this.#stream.isTTY ? `\r\x1b[2K${text}\n` : `${text}\n`);
  }
}
