/** Reads a trace as its viewers do, and holds it against what the Trace Event Format says. */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';

export interface Slice {
  readonly name: string;
  readonly cat: string;
  readonly pid: number;
  readonly tid: number;
  /** Nanoseconds. */
  readonly start: number;
  readonly end: number;
  readonly args: Record<string, unknown>;
}

export interface Flow {
  readonly name: string;
  readonly from: Slice;
  readonly to: Slice;
}

export interface Checked {
  readonly other: { ranks: number; dropped: number[]; disordered: number; program: string; clock: string };
  readonly slices: readonly Slice[];
  readonly flows: readonly Flow[];
  /** By process and thread number: `1/3`. */
  readonly lanes: ReadonlyMap<string, string>;
  /** What a rank has done, on whatever lanes. */
  of(rank: number, cat?: string): Slice[];
  flowsOf(name: string): Flow[];
}

type Json = Record<string, unknown>;

/**
 * Every thread that has something is named; slices of one thread nest; each flow has two ends, in this order of time,
 * both within a slice.
 */
export function checkTrace(file: string): Checked {
  const { traceEvents, otherData, displayTimeUnit } = JSON.parse(readFileSync(file, 'utf8')) as {
    traceEvents: Json[];
    otherData: Checked['other'];
    displayTimeUnit: string;
  };
  expect(displayTimeUnit).toBe('ns');
  const slices: Slice[] = [];
  const lanes = new Map<string, string>();
  const processes = new Set<unknown>();
  const ends = new Map<number, { name?: string; s?: Slice; f?: Slice; sent?: number; seen?: number }>();
  for (const event of traceEvents) {
    const { ph, pid, tid, name, cat, ts, dur, args, id } = event as Json & { ph: string };
    expect([typeof pid, typeof tid, typeof name]).toEqual(['number', 'number', 'string']);
    const lane = `${pid}/${tid}`;
    if (ph === 'M') {
      if (name === 'thread_name') lanes.set(lane, (args as { name: string }).name);
      if (name === 'process_name') processes.add(pid);
      continue;
    }
    expect(ts).toBeGreaterThanOrEqual(0);
    const start = nanoseconds(ts);
    if (ph === 'X') {
      expect(dur).toBeGreaterThanOrEqual(0);
      const times = { start, end: start + nanoseconds(dur) };
      slices.push({ name, cat, pid, tid, args, ...times } as Slice);
      continue;
    }
    expect(['s', 'f']).toContain(ph);
    expect(typeof id).toBe('number');
    if (ph === 'f') expect(event['bp']).toBe('e');
    // A viewer takes the slice that is open on the thread at that time: the one that stands before it in the file.
    const slice = slices.at(-1)!;
    expect(`${slice.pid}/${slice.tid}`).toBe(lane);
    expect(slice.start <= start && start <= slice.end).toBe(true);
    const flow = ends.get(id as number) ?? {};
    expect(flow[ph as 's' | 'f']).toBeUndefined();
    expect(flow.name ?? name).toBe(name);
    ends.set(id as number, { ...flow, name: name as string, [ph]: slice, [ph === 's' ? 'sent' : 'seen']: start });
  }
  for (const { pid, tid } of slices) {
    expect(lanes.has(`${pid}/${tid}`), `lane ${pid}/${tid} has a name`).toBe(true);
    expect(processes.has(pid)).toBe(true);
  }
  checkNesting(slices);
  const flows = [...ends.values()].map(({ name, s, f, sent, seen }) => {
    expect([s, f]).not.toContain(undefined);
    expect(sent).toBeLessThanOrEqual(seen!);
    return { name: name!, from: s!, to: f! };
  });
  return {
    other: otherData,
    slices,
    flows,
    lanes,
    of: (rank, cat) => slices.filter((s) => s.pid === 1 && rankOf(s) === rank && (cat === undefined || s.cat === cat)),
    flowsOf: (name) => flows.filter((flow) => flow.name === name),
  };
}

export function rankOf({ tid }: Slice): number {
  return (tid - 1) % 10_000;
}

function nanoseconds(microseconds: unknown): number {
  return Math.round((microseconds as number) * 1000);
}

function checkNesting(slices: readonly Slice[]): void {
  const lanes = new Map<string, Slice[]>();
  for (const slice of slices) {
    const lane = `${slice.pid}/${slice.tid}`;
    const own = lanes.get(lane);
    if (own === undefined) lanes.set(lane, [slice]);
    else own.push(slice);
  }
  for (const [lane, own] of lanes) {
    const open: Slice[] = [];
    for (const slice of own) {
      expect(slice.start, `slices of lane ${lane} are in order`).toBeGreaterThanOrEqual(open.at(-1)?.start ?? 0);
      while (open.length > 0 && open.at(-1)!.end <= slice.start) open.pop();
      const outer = open.at(-1);
      if (outer !== undefined && outer.end < slice.end) {
        throw new Error(
          `lane ${lane}: ${slice.name} ${slice.start}–${slice.end} overlaps ${outer.name} ${outer.start}–${outer.end}`,
        );
      }
      open.push(slice);
    }
  }
}
