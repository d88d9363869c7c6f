/** What becomes of samples, and of rows. */
import type { Row } from './rows.ts';

export interface Summary {
  /** The median of the rounds' medians. */
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** All samples, round by round. */
  readonly samples: readonly number[];
}

export interface RowResult {
  readonly id: string;
  readonly unit: string;
  readonly better: 'lower' | 'higher';
  readonly onesided?: Summary;
  /** Those that are installed and worked. */
  readonly peers: Readonly<Record<string, Summary>>;
  readonly bestPeer: string | null;
  /** Above 1: ahead of the best peer. */
  readonly ratio: number | null;
  readonly memcpy?: Summary;
  /** Share of what memcpy moves. */
  readonly ofMemcpy?: number;
  /** For promise forms: how many times the `Sync` form's time. */
  readonly timesBeside?: number;
  /** What the row has to reach, in words. */
  readonly required?: string;
  /** Whether it does; absent if nothing is asked or if what it is compared with is missing. */
  readonly ok?: boolean;
  /** What was peculiar: a peer that failed, and what was done about it. */
  readonly notes: readonly string[];
}

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('the median of no values');
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @returns undefined if there are no samples */
export function summarize(rounds: readonly (readonly number[])[]): Summary | undefined {
  const some = rounds.filter((samples) => samples.length > 0);
  if (some.length === 0) return undefined;
  const samples = some.flat();
  return { median: median(some.map(median)), min: Math.min(...samples), max: Math.max(...samples), samples };
}

/** How many times better `ours` is: above 1 is ahead. */
export function ratioOf(ours: number, other: number, better: 'lower' | 'higher'): number {
  return better === 'lower' ? other / ours : ours / other;
}

export interface Measurements {
  readonly onesided: Summary | undefined;
  readonly peers: Readonly<Record<string, Summary>>;
  readonly memcpy: Summary | undefined;
  /** Of the row that it is compared with. */
  readonly beside: Summary | undefined;
  readonly notes: readonly string[];
}

/** Compares, and judges. */
export function judge(
  row: Pick<Row, 'id' | 'unit' | 'better' | 'required' | 'beside'>,
  { onesided, peers, memcpy, beside, notes }: Measurements,
): RowResult {
  const { id, unit, better, required = {} } = row;
  const names = Object.keys(peers);
  const bestPeer = names.reduce<string | null>(
    (best, name) => (best === null || ratioOf(peers[name].median, peers[best].median, better) > 1 ? name : best),
    null,
  );
  const ours = onesided?.median;
  const ratio = ours === undefined || bestPeer === null ? undefined : ratioOf(ours, peers[bestPeer].median, better);
  const ofMemcpy = ours === undefined || memcpy === undefined ? undefined : ratioOf(ours, memcpy.median, better);
  const timesBeside = ours === undefined || beside === undefined ? undefined : ours / beside.median;

  const words: string[] = [];
  const met: boolean[] = [];
  const ask = (what: string, value: number | undefined, holds: (value: number) => boolean): void => {
    words.push(what);
    if (value !== undefined) met.push(holds(value));
  };
  const { ratio: least, ofMemcpy: share, below, timesBeside: times } = required;
  if (least !== undefined) ask(`≥ ${least}`, ratio, (value) => value >= least);
  if (share !== undefined) ask(`≥ ${share} memcpy`, ofMemcpy, (value) => value >= share);
  if (below !== undefined) ask(`< ${below} ${unit}`, ours, (value) => value < below);
  if (times !== undefined) ask(`< ${times} × ${row.beside}`, timesBeside, (value) => value < times);
  return {
    id,
    unit,
    better,
    ...(onesided === undefined ? {} : { onesided }),
    peers,
    bestPeer,
    ratio: ratio ?? null,
    ...(memcpy === undefined ? {} : { memcpy }),
    ...(ofMemcpy === undefined ? {} : { ofMemcpy }),
    ...(timesBeside === undefined ? {} : { timesBeside }),
    ...(words.length === 0 ? {} : { required: words.join(' or ') }),
    ...(met.length === 0 ? {} : { ok: met.includes(true) }),
    notes,
  };
}
