/** Pictures of more ranks than there is room for lanes: an overview of all of them, of bounded size. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeTrace } from '../../src/trace/chrome-trace.ts';
import { type Overview, overviewOf, stepOverview } from '../../src/trace/overview.ts';
import { overviewPage, overviewSvg } from '../../src/trace/overview-picture.ts';
import { recordInMemory } from '../../src/trace/recorder.ts';
import { selectionOf } from '../../src/trace/scene.ts';
import type { Trace, TraceSpan } from '../../src/trace/trace-reader.ts';
import { onesided } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { elementsOf } from './xml.ts';

const WINDOW = { windowId: '4.1', window: 'grid' };
const END = 1_000_000;

/** A fence of so many ranks: each computes, puts, and waits; `late` longer than the others. */
function fenceOf(ranks: number, late: number, never: readonly number[] = []): Trace {
  const spans: TraceSpan[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    const span = (category: TraceSpan['category'], name: string, start: number, end: number, args = {}): void =>
      void spans.push({ rank, category, name, start, end, args: { ...args, ...(category !== 'wait' && WINDOW) } });
    span('call', 'fence', 0, 1000, { fence: 1 });
    if (never.includes(rank)) {
      span('call', 'lock', 2000, END, { target: 0, unfinished: true });
      continue;
    }
    const comes = rank === late ? 800_000 : 200_000 + rank;
    span('epoch', 'fence epoch', 1000, END, { fence: 1 });
    span('operation', 'put', comes - 50_000, comes - 49_950, { target: 0, bytes: 8, disp: 0 });
    span('call', 'fence', comes, END, { fence: 2 });
    span('wait', 'fence of window grid', comes + 100, END);
  }
  return { program: 'grid.js', ranks, spans, arrows: [] };
}

const fence = (trace: Trace, ranks?: readonly number[]): Overview =>
  overviewOf(trace, selectionOf(trace, { fence: 2 }), ranks);

/** Strokes of a kind: line, place and length in pixels of the chart. */
function strokesOf(svg: string, kind: string): { y: number; x: number; length: number }[] {
  const [, d = ''] =
    new RegExp(`class="run-${kind}" [^>]*stroke-width="[^"]*" d="(M\\d+ [\\d.]+h\\d+M[^"]*)"`).exec(svg) ?? [];
  return [...d.matchAll(/M(\d+) ([\d.]+)h(\d+)/g)].map(([, x, y, length]) => ({
    x: Number(x),
    y: Number(y),
    length: Number(length),
  }));
}

/** So many ranks take the lock of rank 0 one after the other; each has it for 10 µs. */
function locksOf(ranks: number): Trace {
  const spans: TraceSpan[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    const [has, gives] = [10_000 * (rank + 1), 10_000 * (rank + 2)];
    const args = { ...WINDOW, target: 0 };
    spans.push({ rank, category: 'call', name: 'lock', start: 0, end: has, args });
    spans.push({ rank, category: 'wait', name: 'lock of rank 0', start: 100, end: has, args: {} });
    spans.push({ rank, category: 'epoch', name: 'exclusive lock', start: has, end: gives, args });
    spans.push({ rank, category: 'call', name: 'unlock', start: gives - 100, end: gives, args });
  }
  return { program: 'grid.js', ranks, spans, arrows: [] };
}

describe('an overview', () => {
  it('of a lock among many ranks marks the one that was asked for, at its rank', () => {
    const trace = locksOf(40);
    const frames = (lock: number, ranks?: readonly number[]): number[][] => {
      const svg = overviewSvg(overviewOf(trace, selectionOf(trace, { lock }), ranks));
      const parts = svg.matchAll(/<rect class="chosen" [^>]*x="([\d.]+)" y="([\d.]+)" width="(\d+)" height="(\d+)"/g);
      return [...parts].map(([, ...numbers]) => numbers.map(Number));
    };
    // The first one is in the legend, or the other way round.
    const sign = [1, 2, 16, 10];
    for (const lock of [1, 20, 39]) {
      const found = frames(lock).filter((frame) => `${frame}` !== `${sign}`);
      // The picture ends with the lock: its last 10 of 10 × (lock + 1) µs, at the line of the rank that has it.
      const width = Math.round(900 / (lock + 1)) + 2;
      expect(found.map(([x, y, w]) => [x + w, y, Math.abs(w - width) <= 1])).toEqual([
        [971, 43 + 10 * (lock - 1), true],
      ]);
      expect(frames(lock)).toContainEqual(sign);
    }
    const titles = overviewSvg(overviewOf(trace, selectionOf(trace, { lock: 20 })));
    expect(titles.match(/<title>rank \d+: waited [\d.]+ µs; has the lock for 10(\.0)? µs<\/title>/g)).toHaveLength(1);
    expect(titles).toMatch(/<title>rank 19: waited [\d.]+ µs; has the lock/);
    // Its rank is not shown.
    expect(frames(20, [1, 2, 3])).toEqual([]);
  });

  it('of a fence of 1,024 ranks has a line for each, shows who came last, and is small', () => {
    const overview = fence(fenceOf(1024, 77));
    expect(overview.note).toBe('rank 77 came last, at 799 µs');
    const svg = overviewSvg(overview);
    expect(svg.length).toBeLessThan(300_000);
    const titles = [...svg.matchAll(/<title>rank (\d+): waited (\d+) µs<\/title>/g)];
    expect(titles.map(([, rank]) => Number(rank))).toEqual(Array.from({ length: 1024 }, (_, rank) => rank));
    const waits = strokesOf(svg, 'wait');
    expect(waits.length).toBe(1024);
    // 900 pixels are 999 µs.
    const lengths = waits.map(({ length }) => length);
    expect(lengths.filter((length) => length < 200)).toEqual([180]);
    expect(lengths.indexOf(180)).toBe(77);
    expect(Math.min(...lengths.filter((length) => length !== 180))).toBeGreaterThan(715);
    expect(strokesOf(svg, 'put').length).toBe(1024);
    expect(svg).toContain('1024 ranks; 999 µs; rank 77 came last');
  });

  it('is bounded, whatever ranks do', () => {
    const trace = fenceOf(3000, 5);
    const busy = trace.spans.flatMap((span) =>
      span.category !== 'operation'
        ? [span]
        : Array.from({ length: 200 }, (_, i) => ({
            ...span,
            name: ['put', 'get', 'accumulate'][(i + span.rank) % 3],
            start: 1000 + 900 * i + span.rank,
            end: 1400 + 900 * i + span.rank,
          })),
    );
    const svg = overviewSvg(fence({ ...trace, spans: busy }));
    expect(svg.length).toBeLessThan(2_000_000);
    expect(svg).toContain('3000 ranks; 3 ranks a line');
    expect(strokesOf(svg, 'put').length).toBeGreaterThan(1000);
  });

  it('is well-formed, and needs no style sheet', () => {
    const elements = elementsOf(overviewSvg(fence(fenceOf(40, 3))));
    for (const { name, attributes } of elements) {
      if (name === 'path') expect(attributes).toMatch(/ fill="none" stroke="#\w{6}"/);
      if (name === 'text') expect(attributes).toMatch(/ fill="#\w{6}"/);
    }
    expect(overviewPage(fence(fenceOf(40, 3)))).toMatch(/^<!doctype html>\n.*<li>.*waits<\/li>/s);
  });

  it('shows ranks that never came, and what they did instead', () => {
    const overview = fence(fenceOf(64, 3, [9, 20]));
    expect(overview.title).toBe('Fence 2 of window grid: ranks 9, 20 never came');
    expect(overview.rows.length).toBe(64);
    expect(overview.rows[9].about).toBe('never came; in lock of window grid');
    const svg = overviewSvg(overview);
    const [first, second] = strokesOf(svg, 'absent');
    expect([first.length, second.y - first.y]).toEqual([900, 11 * 10]);
  });

  it('of supersteps has what each process computes, waits and delivers', () => {
    const boxes = Array.from({ length: 20 }, (_, rank) => [
      { rank, kind: 'call' as const, label: 'computing, 1 µs', start: 0, end: 500 + 10 * rank },
      { rank, kind: 'wait' as const, label: 'waiting for all, 1 µs', start: 500 + 10 * rank, end: 800 },
      { rank, kind: 'call' as const, label: 'delivery, h 3, 1 µs', start: 800, end: 1000 },
    ]).flatMap((own) => own.map((box) => ({ ...box, detail: '', unfinished: false })));
    const ranks = Array.from({ length: 20 }, (_, rank) => rank);
    const scene = {
      title: 'Superstep 3',
      program: 'p',
      ranks,
      hidden: 0,
      start: 0,
      end: 1000,
      boxes,
      arrows: [],
      absent: [],
    };
    const svg = overviewSvg(stepOverview(scene));
    expect([strokesOf(svg, 'call').length, strokesOf(svg, 'wait').length, strokesOf(svg, 'put').length]).toEqual([
      20, 20, 20,
    ]);
    expect(svg).toContain('>waits for all</text>');
  });
});

describe('the command', () => {
  const folder = temporaryFolder('overview');

  it('draws it of more than 16 ranks, and lanes of those that are chosen', async () => {
    const file = join(folder, 'trace.json');
    const recordings = Array.from({ length: 24 }, (_, rank) => {
      let now = 0;
      const { recorder, recording } = recordInMemory(rank, () => now, 256);
      const scope = recorder.text('4.1|grid');
      for (let fence = 1; fence <= 2; fence++) {
        const call = recorder.begin('call', 'fence', { scope, place: fence });
        now += 1000 + rank;
        recorder.end(call);
      }
      return recording();
    });
    writeTrace(file, recordings, { title: 'grid.js' });
    const draw = async (...args: string[]): Promise<string> => {
      const picture = join(folder, 'picture.svg');
      const { code, stderr } = await onesided('trace', 'draw', file, '--fence', '2', '-o', picture, ...args);
      expect([code, stderr]).toEqual([0, '']);
      return readFileSync(picture, 'utf8');
    };
    expect((await draw()).match(/<title>rank \d+: waited/g)?.length).toBe(24);
    expect((await draw('--ranks', '0-19')).match(/<title>rank \d+: waited/g)?.length).toBe(20);
    const lanes = await draw('--ranks', '3,20');
    expect([...lanes.matchAll(/class="name" [^>]*>(rank \d+)</g)].map(([, name]) => name)).toEqual([
      'rank 3',
      'rank 20',
    ]);
  });
});
