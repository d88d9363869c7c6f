/**
 * Draws many ranks: a thin line for each, from left to right in the course of time, to scale, in the colours of what
 * the rank does; no labels but those of the axes.
 *
 * However much a trace has, the picture is bounded. Time is cut into columns. Each column has the colour of what the
 * rank did longest in it, and neighbours of one colour are one stroke; if there are more strokes than `MOST_RUNS`,
 * columns become twice as broad. More than `MOST_ROWS` ranks share lines.
 */
import type { Overview, Row, RunKind } from './overview.ts';
import { microseconds } from './scene.ts';
import { type Drawing, type Key, look, markup, pageOf, roundUp, svgOf } from './svg.ts';

/** Pixels. */
const LEFT = 70;
const TOP = 44;
const RIGHT = 24;
const BOTTOM = 24;
const WIDTH = 900;
/** Between labels of the axes. */
const RANK_LABEL = 14;
const TIME_LABEL = 90;

const MOST_ROWS = 1024;
const MOST_RUNS = 40_000;

const KINDS = ['epoch', 'call', 'wait', 'put', 'get', 'update', 'absent'] as const satisfies readonly RunKind[];

/** A complete HTML document. */
export function overviewPage(overview: Overview): string {
  return pageOf(drawing(overview));
}

/** The picture alone, for documents. */
export function overviewSvg(overview: Overview): string {
  return svgOf(drawing(overview));
}

function drawing(overview: Overview): Drawing {
  const { title, program, start, end, rows, note, words } = overview;
  const each = Math.ceil(rows.length / MOST_ROWS);
  const lines = Array.from({ length: Math.ceil(rows.length / each) }, (_, i) => rows.slice(each * i, each * (i + 1)));
  const height = heightOf(lines.length);
  const strokes = strokesOf(overview, lines);
  const parts = [...axes(overview, lines, height)];
  for (const kind of KINDS) {
    const own = strokes.filter((stroke) => stroke.kind === kind);
    if (own.length === 0) continue;
    const d = own.map(({ line, x, length }) => `M${LEFT + x} ${TOP + height * (line + 0.5)}h${length}`).join('');
    const broad = height >= 4 ? height - 1 : height;
    parts.push(`<path ${look(`run-${kind}`)} stroke-width="${broad}" d="${d}"/>`);
  }
  const frame = frameOf(overview, lines, height);
  if (frame !== undefined) parts.push(frame);
  for (const [i, line] of lines.entries()) {
    const place = `x="${LEFT}" y="${TOP + height * i}" width="${WIDTH}" height="${height}"`;
    parts.push(`<rect fill="none" pointer-events="all" ${place}><title>${markup(aboutOf(line))}</title></rect>`);
  }
  const used = new Set(strokes.map(({ kind }) => kind));
  const keys = KINDS.filter((kind) => used.has(kind)).map(
    (kind): Key => ({
      sign: `<path ${look(`run-${kind}`)} stroke-width="9" d="M1 7h16"/>`,
      width: 18,
      about: words[kind] ?? kind,
    }),
  );
  if (frame !== undefined) {
    const sign = `<rect ${look('chosen')} x="1" y="2" width="16" height="10"/>`;
    keys.push({ sign, width: 18, about: 'the lock that was chosen' });
  }
  const shared = each > 1 ? `; ${each} ranks a line` : '';
  return {
    title,
    about: `${program}; ${rows.length} ranks${shared}; ${microseconds(end - start)} µs${note && `; ${note}`}`,
    reading:
      'A line for each rank, time from left to right in microseconds, to scale. Point at a line to see its rank. ' +
      'What passes between ranks is drawn for up to 16 of them: choose them with --ranks.',
    keys,
    width: LEFT + WIDTH + RIGHT,
    height: TOP + height * lines.length + BOTTOM,
    parts,
  };
}

/** Around what was asked for: however thin the line and however short the time, it is seen. */
function frameOf(
  { chosen, start, end }: Overview,
  lines: readonly (readonly Row[])[],
  height: number,
): string | undefined {
  if (chosen === undefined) return undefined;
  const line = lines.findIndex((rows) => rows.some(({ rank }) => rank === chosen.rank));
  const pixel = (time: number): number => Math.round(LEFT + (WIDTH * (time - start)) / Math.max(1, end - start));
  const x = pixel(chosen.start) - 1;
  const width = Math.max(4, pixel(chosen.end) + 1 - x);
  return `<rect ${look('chosen')} x="${x}" y="${TOP + height * line - 1}" width="${width}" height="${height + 2}"/>`;
}

/** Of a line: all together are to fit a screen, or a few. */
function heightOf(lines: number): number {
  return Math.max(1, Math.min(10, Math.floor(900 / lines)));
}

function aboutOf(line: readonly Row[]): string {
  const [first] = line;
  return line.length === 1
    ? `rank ${first.rank}: ${first.about}`
    : `ranks ${first.rank} to ${line.at(-1)!.rank}; first: ${first.about}`;
}

function axes({ start, end }: Overview, lines: readonly (readonly Row[])[], height: number): string[] {
  const parts = [
    `<text ${look('tick')} x="${LEFT - 8}" y="${TOP - 24}">rank</text>`,
    `<text ${look('label')} x="${LEFT}" y="${TOP - 24}">time, µs</text>`,
  ];
  const bottom = TOP + height * lines.length;
  const length = Math.max(1, end - start);
  const step = roundUp(length * (TIME_LABEL / WIDTH));
  for (let time = 0; time <= length; time += step) {
    const x = Math.round(LEFT + (WIDTH * time) / length);
    parts.push(`<line ${look('axis')} x1="${x}" x2="${x}" y1="${TOP - 5}" y2="${TOP}"/>`);
    parts.push(`<line ${look('axis')} x1="${x}" x2="${x}" y1="${bottom}" y2="${bottom + 5}"/>`);
    const text = String(Number((time / 1000).toPrecision(6)));
    parts.push(`<text ${look('middle')} x="${x}" y="${TOP - 8}">${text}</text>`);
    parts.push(`<text ${look('middle')} x="${x}" y="${bottom + 17}">${text}</text>`);
  }
  const every = Math.max(1, roundUp(RANK_LABEL / height));
  for (let i = 0; i < lines.length; i += every) {
    const y = TOP + height * (i + 0.5) + 4;
    parts.push(`<text ${look('tick')} x="${LEFT - 8}" y="${y}">${lines[i][0].rank}</text>`);
  }
  return parts;
}

interface Stroke {
  readonly line: number;
  readonly kind: RunKind;
  /** Pixels. */
  readonly x: number;
  readonly length: number;
}

function strokesOf(overview: Overview, lines: readonly (readonly Row[])[]): Stroke[] {
  for (let columns = WIDTH; ; columns = Math.ceil(columns / 2)) {
    const strokes = lines.flatMap((line, i) => strokesOfLine(overview, line, i, columns));
    if (strokes.length <= MOST_RUNS || columns === 1) return strokes;
  }
}

function strokesOfLine({ start, end }: Overview, line: readonly Row[], at: number, columns: number): Stroke[] {
  const column = Math.max(1, end - start) / columns;
  /** By kind and column: how long. A communication call counts, however short it was. */
  const times = KINDS.map(() => new Float64Array(columns));
  for (const { runs } of line) {
    for (const run of runs) {
      const took = times[KINDS.indexOf(run.kind)];
      const last = Math.min(columns - 1, Math.floor((run.end - start) / column));
      for (let c = Math.floor((run.start - start) / column); c <= last; c++) {
        const overlap = Math.min(run.end, start + (c + 1) * column) - Math.max(run.start, start + c * column);
        took[c] += Math.max(overlap, Number.MIN_VALUE);
      }
    }
  }
  const strokes: Stroke[] = [];
  let begin = 0;
  let before: RunKind | undefined;
  for (let c = 0; c <= columns; c++) {
    const kind = c === columns ? undefined : kindOf(times, c, column * line.length);
    if (kind === before) continue;
    if (before !== undefined) {
      const [x, to] = [begin, c].map((place) => Math.round((WIDTH * place) / columns));
      strokes.push({ line: at, kind: before, x, length: to - x });
    }
    before = kind;
    begin = c;
  }
  return strokes;
}

/** What was done longest in a column; nothing, if nothing was. Epochs contain calls, and calls contain waits. */
function kindOf(times: readonly Float64Array[], column: number, length: number): RunKind | undefined {
  const [epoch, call, wait, put, get, update, absent] = times.map((took) => took[column]);
  if (absent > 0) return 'absent';
  const alone: [RunKind | undefined, number][] = [
    [undefined, length - Math.max(epoch, call)],
    ['epoch', epoch - call],
    ['call', call - wait],
    ['wait', wait],
  ];
  const [longest] = alone.reduce((a, b) => (b[1] > a[1] ? b : a));
  const operations: [RunKind, number][] = [
    ['put', put],
    ['get', get],
    ['update', update],
  ];
  const [operation, took] = operations.reduce((a, b) => (b[1] > a[1] ? b : a));
  if (took > length / 2 || (took > 0 && longest !== 'call' && longest !== 'wait')) return operation;
  return longest;
}
