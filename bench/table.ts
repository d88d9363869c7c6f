/** The benchmark's table on the terminal, row by row as they are measured. */
import type { RowResult } from './statistics.ts';

const COLUMNS = [26, 6, 11, 11, 11, 9, 9, 9] as const;

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i < 2 ? cell.padEnd(COLUMNS[i]) : cell.padStart(COLUMNS[i])))
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
  return line(['row', 'unit', 'onesided', ...peers, 'ratio', 'memcpy', 'Sync']);
}

export function tableRow(result: RowResult, peers: readonly string[]): string {
  const { id, unit, onesided, ratio, ofMemcpy, timesBeside } = result;
  const times = (value: number | null | undefined): string => (value == null ? '' : `${value.toFixed(2)} ×`);
  return line([
    id,
    unit,
    onesided === undefined ? 'failed' : digits(onesided.median),
    ...peers.map((name) => (result.peers[name] === undefined ? '' : digits(result.peers[name].median))),
    ...[ratio, ofMemcpy, timesBeside].map(times),
  ]);
}

/**
 * The last lines: how many rows there are, and which of them a peer wins, by how much.
 * @param check names rows that miss what `--check` asks for
 */
export function closing(results: readonly RowResult[], seconds: number, check: boolean): string {
  const compared = results.flatMap(({ id, ratio }) => (ratio === null ? [] : [{ id, ratio }]));
  const behind = compared.filter(({ ratio }) => ratio < 1);
  const named = behind.map(({ id, ratio }) => `${id} (${ratio.toFixed(2)} ×)`).join(', ');
  const lines = [
    `${results.length} rows in ${seconds} s; ${compared.length - behind.length} of ${compared.length} at least ` +
      `as fast as the best peer${behind.length === 0 ? '' : `; slower: ${named}`}`,
  ];
  const failed = check ? results.filter(({ ok, onesided }) => ok === false || onesided === undefined) : [];
  if (failed.length > 0) {
    const asked = failed.map(({ id, required, onesided }) => `${id} (${onesided === undefined ? 'failed' : required})`);
    lines.push(`--check: these rows miss their threshold: ${asked.join(', ')}`);
  }
  return lines.join('\n');
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
