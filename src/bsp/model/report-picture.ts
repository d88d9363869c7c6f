/**
 * A report as a picture: a column for each superstep, its work, communication and synchronization one upon the other,
 * and beside it a black mark for what the model predicts. Below, the h-relation and the process that computed longest.
 * What is unusual is named: the supersteps that took longest.
 *
 * With many supersteps, columns have no gaps, and the marks are a line; with more than there are pixels, a column is
 * the longest superstep of several. A few that took much longer than the others are cut, and say how long they took:
 * otherwise nothing else could be seen. The three greys of the colours differ, so it can be printed without colours.
 */
import { roundUp, sizeOf } from '../../trace/svg.ts';
import { type BspReport, reportTotals, type SuperstepReport } from './report.ts';

/** Pixels. */
const LEFT = 66;
const RIGHT = 22;
const TOP = 112;
const HEIGHT = 250;
const RELATION = 54;
const GAP = 34;
const MOST_WIDTH = 880;
const LEAST_WIDTH = 560;
const WIDEST = 56;
/** Columns that are at least so wide have gaps, marks of their own, or the number of the slowest process below. */
const SEPARATE = 5;
const NUMBERED = 20;
/** Supersteps that are named, of how many that took longest, and the room that a name has. */
const NAMED = 5;
const CANDIDATES = 40;
const NAME_WIDTH = 112;
/** One of so many may be cut, if it took so many times as long as the others. */
const CUT_FROM = 20;
const CUT_SHARE = 0.95;
const CUT_FACTOR = 2.5;

const STYLE = `text { font: 11px system-ui, sans-serif; fill: #1b1f24; paint-order: stroke; stroke: #ffffff; \
stroke-width: 2.5px; } .title { font-size: 14px; font-weight: 600; }
.soft { fill: #59636e; } .end { text-anchor: end; } .middle { text-anchor: middle; } .back { fill: #ffffff; }
.work { fill: #1f4e79; } .communication { fill: #e08e1b; } .sync { fill: #d3d8de; } .relation { fill: #7d8793; }
.grid { stroke: #c9d1d9; stroke-width: 0.6; } .axis { stroke: #59636e; } .halo { stroke: #ffffff; } \
.mark { stroke: #000000; }
.halo, .mark, .axis, .grid { fill: none; } .who { fill: #1b1f24; } .hit { fill: #000000; fill-opacity: 0; }
@media (prefers-color-scheme: dark) { text { stroke: #14181d; } text, .who { fill: #e8edf2; } .soft { fill: #a2aeba; \
} .back { fill: #14181d; }
.work { fill: #5b9bd5; } .communication { fill: #b86f00; } .sync { fill: #46505b; } .grid { stroke: #3a444f; }
.axis { stroke: #a2aeba; } .halo { stroke: #14181d; } .mark { stroke: #ffffff; } }`;

const PARTS = ['work', 'communication', 'sync'] as const;
const NAMES = { work: 'longest computing', communication: 'communication', sync: 'synchronization' } as const;

/** What is drawn: columns, their width, and the scale. */
interface Plot {
  readonly columns: readonly SuperstepReport[];
  /** The first superstep that each column stands for. */
  readonly firsts: readonly number[];
  /** Supersteps that a column stands for. */
  readonly each: number;
  readonly width: number;
  readonly step: number;
  /** Microseconds at the top. */
  readonly top: number;
}

/** The report as an SVG of its own. For each column, it has a title that names its numbers. */
export function reportPicture(report: BspReport): string {
  const plot = plotOf(report);
  const { width, step } = plot;
  const lanes = step >= NUMBERED ? 16 : Math.min(110, Math.max(28, 9 * report.processes));
  const base = TOP + HEIGHT;
  const relationTop = base + GAP;
  const whoTop = relationTop + RELATION + GAP - 6;
  const height = whoTop + lanes + 22;
  const all = LEFT + width + RIGHT;
  const parts = [
    ...head(report, plot),
    ...axis(plot, base),
    ...stacks(plot, base),
    ...(report.machine === undefined ? [] : marks(plot, base)),
    ...names(plot, base),
    ...relation(plot, relationTop),
    ...slowest(report, plot, whoTop, lanes),
    ...hits(plot, whoTop + lanes),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${titleOf(report)}" ${sizeOf(all, height)}>
<style>${STYLE}</style>
<rect class="back" width="${all}" height="${height}"/>
${parts.join('\n')}
</svg>
`;
}

function plotOf({ supersteps }: BspReport): Plot {
  const n = Math.max(1, supersteps.length);
  const each = Math.ceil(n / MOST_WIDTH);
  const columns: SuperstepReport[] = [];
  const firsts: number[] = [];
  for (let at = 0; at < supersteps.length; at += each) {
    const some = supersteps.slice(at, at + each);
    firsts.push(some[0].superstep);
    columns.push(some.reduce((longest, row) => (row.measured > longest.measured ? row : longest)));
  }
  const width = Math.max(LEAST_WIDTH, Math.min(MOST_WIDTH, WIDEST * columns.length));
  const tops = columns.map(({ measured, predicted = 0 }) => Math.max(measured, predicted)).sort((a, b) => a - b);
  const highest = Math.max(1e-6, tops.at(-1) ?? 0);
  const usual = tops[Math.floor(CUT_SHARE * (tops.length - 1))] ?? highest;
  const isCut = tops.length >= CUT_FROM && highest > CUT_FACTOR * usual && usual > 0;
  const step = Math.min(WIDEST, width / Math.max(1, columns.length));
  return { columns, firsts, each, width, step, top: 1.06 * (isCut ? 1.25 * usual : highest) };
}

const xOf = ({ step }: Plot, i: number): number => LEFT + step * i;
const yOf = ({ top }: Plot, base: number, value: number): number => base - (HEIGHT * Math.min(value, top)) / top;
const px = (value: number): string => String(Math.round(10 * value) / 10);
const isWide = ({ step }: Plot): boolean => step >= SEPARATE;

function time(microseconds: number): string {
  const [value, unit] = microseconds >= 10_000 ? [microseconds / 1000, 'ms'] : [microseconds, 'µs'];
  return `${value >= 1000 ? Math.round(value).toLocaleString('en-US') : Number(value.toPrecision(3))} ${unit}`;
}

/** What it is, in a line. */
function titleOf(report: BspReport): string {
  const { supersteps, processes } = report;
  const { measured, predicted, error } = reportTotals(report);
  const sign = (part: number): string => `${part < 0 ? '−' : '+'}${Math.abs(100 * part).toFixed(0)} %`;
  const said = predicted === undefined ? '' : `, ${time(predicted)} predicted (${sign(error!)})`;
  const count = supersteps.length.toLocaleString('en-US');
  return `${count} supersteps of ${processes} processes: ${time(measured)} measured${said}`;
}

function head(report: BspReport, { each }: Plot): string[] {
  const { machine, open } = report;
  const { work, communication, sync, measured } = reportTotals(report);
  const share = (part: number): string => `${measured > 0 ? Math.round((100 * part) / measured) : 0} %`;
  const rates = (): string => {
    const { s, g, l, o } = machine!;
    const perCall = o === undefined ? '' : `, o ${time(o / s)} a call`;
    return (
      `prediction: work + h·g + l${o === undefined ? '' : ' + messages·o'}, with g ${time(g / s)} a word, ` +
      `l ${time(l / s)}${perCall}`
    );
  };
  const notes = [
    ...(machine === undefined ? [] : [rates()]),
    ...(each > 1 ? [`a column is the longest of ${each} supersteps`] : []),
    ...(open === undefined ? [] : [`superstep ${open.superstep} did not end`]),
  ];
  const shares = { work, communication, sync };
  let x = LEFT;
  const legend = PARTS.map((part) => {
    const text = `${NAMES[part]} ${share(shares[part])}`;
    const box = `<rect class="${part}" x="${x}" y="53" width="11" height="11"/>`;
    const item = `${box}<text x="${x + 16}" y="62.5">${text}</text>`;
    x += 30 + 6.2 * text.length;
    return item;
  });
  if (machine !== undefined) {
    legend.push(`<path class="mark" stroke-width="2" d="M${x} 58.5h14"/><text x="${x + 20}" y="62.5">predicted</text>`);
  }
  return [
    `<text class="title" x="14" y="22">${titleOf(report)}</text>`,
    `<text class="soft" x="14" y="40">${notes.join('; ')}</text>`,
    ...legend,
  ];
}

function axis(plot: Plot, base: number): string[] {
  const { columns, firsts, width, step, top } = plot;
  const lines: string[] = [];
  const unit = roundUp(top / 5);
  for (let k = 0; k * unit <= top; k++) {
    const y = px(yOf(plot, base, k * unit));
    lines.push(`<path class="grid" d="M${LEFT} ${y}H${LEFT + width}"/>`);
    lines.push(`<text class="soft end" x="${LEFT - 7}" y="${y}" dy="4">${k === 0 ? '0' : time(k * unit)}</text>`);
  }
  const every = Math.max(1, roundUp(columns.length / (width / 46)));
  for (let i = 0; i < columns.length; i += every) {
    const text = `<text class="soft middle" x="${px(xOf(plot, i) + step / 2)}" y="${base + 14}">${firsts[i]}</text>`;
    lines.push(text);
  }
  lines.push(`<text class="soft end" x="${LEFT - 7}" y="${base + 14}">superstep</text>`);
  return lines;
}

/** One path for each part; columns that are cut have a notch. */
function stacks(plot: Plot, base: number): string[] {
  const { columns, step, top } = plot;
  const inset = isWide(plot) ? Math.min(6, 0.14 * step) : 0;
  const paths = { work: '', communication: '', sync: '' };
  let notches = '';
  for (const [i, row] of columns.entries()) {
    const [x, w] = [px(xOf(plot, i) + inset), px(step - 2 * inset)];
    let below = 0;
    for (const part of PARTS) {
      const [from, to] = [yOf(plot, base, below), yOf(plot, base, below + row[part])];
      below += row[part];
      if (from - to > 0.05) paths[part] += `M${x} ${px(from)}v${px(to - from)}h${w}v${px(from - to)}z`;
    }
    if (row.measured > top) notches += `M${px(xOf(plot, i) - 2)} ${TOP + 12}l${px(step + 4)} -7`;
  }
  return [
    ...PARTS.map((part) => `<path class="${part}" d="${paths[part]}"/>`),
    ...(notches === '' ? [] : [`<path class="halo" stroke-width="3" d="${notches}"/>`]),
    `<path class="axis" d="M${LEFT} ${base}h${plot.width}"/>`,
  ];
}

function marks(plot: Plot, base: number): string[] {
  const { columns, step } = plot;
  let d = '';
  for (const [i, { predicted = 0 }] of columns.entries()) {
    const y = px(yOf(plot, base, predicted));
    const x = xOf(plot, i);
    if (isWide(plot)) d += `M${px(x)} ${y}h${px(step)}`;
    else d += `${i === 0 ? 'M' : 'L'}${px(x)} ${y}H${px(x + step)}`;
  }
  const [outer, inner] = isWide(plot) ? [4.5, 2] : [2.4, 1];
  return [
    `<path class="halo" stroke-width="${outer}" d="${d}"/>`,
    `<path class="mark" stroke-width="${inner}" d="${d}"/>`,
  ];
}

/** Names those that took longest, where there is room. */
function names(plot: Plot, base: number): string[] {
  const { columns, step, width, top } = plot;
  if (columns.length < 2) return [];
  const order = [...columns.keys()].sort((a, b) => columns[b].measured - columns[a].measured).slice(0, CANDIDATES);
  const placed: number[] = [];
  const texts: string[] = [];
  for (const i of order) {
    const middle = xOf(plot, i) + step / 2;
    const x = Math.min(LEFT + width - NAME_WIDTH / 2, Math.max(LEFT + NAME_WIDTH / 2, middle));
    if (placed.length === NAMED) break;
    if (placed.some((other) => Math.abs(other - x) < NAME_WIDTH + 6)) continue;
    placed.push(x);
    const { superstep, measured, slowest } = columns[i];
    const y = measured > top ? TOP - 4 : yOf(plot, base, Math.max(measured, columns[i].predicted ?? 0)) - 6;
    const from = px(Math.max(TOP - 22, y - 12));
    texts.push(`<text class="middle" x="${px(x)}" y="${from}">${superstep}: ${time(measured)}</text>`);
    texts.push(`<text class="soft middle" x="${px(x)}" y="${from}" dy="12">process ${slowest} slowest</text>`);
  }
  return texts;
}

function relation(plot: Plot, top: number): string[] {
  const { columns, step, width } = plot;
  const most = Math.max(1, ...columns.map(({ h }) => h));
  const inset = isWide(plot) ? Math.min(6, 0.14 * step) : 0;
  const base = top + RELATION;
  let d = '';
  for (const [i, { h }] of columns.entries()) {
    const high = (RELATION * h) / most;
    if (high > 0.05) d += `M${px(xOf(plot, i) + inset)} ${base}v${px(-high)}h${px(step - 2 * inset)}v${px(high)}z`;
  }
  return [
    `<path class="grid" d="M${LEFT} ${top}h${width}"/>`,
    `<path class="relation" d="${d}"/>`,
    `<path class="axis" d="M${LEFT} ${base}h${width}"/>`,
    `<text class="soft end" x="${LEFT - 7}" y="${top + 4}">${Math.ceil(most).toLocaleString('en-US')}</text>`,
    `<text class="soft end" x="${LEFT - 7}" y="${base - 12}">h,</text>`,
    `<text class="soft end" x="${LEFT - 7}" y="${base}">words</text>`,
  ];
}

/** The process that computed longest: its number, or a dot on its lane. */
function slowest({ processes }: BspReport, plot: Plot, top: number, height: number): string[] {
  const { columns, step, width } = plot;
  const label = (y: number, text: string): string =>
    `<text class="soft end" x="${LEFT - 7}" y="${px(y)}" dy="4">${text}</text>`;
  if (step >= NUMBERED) {
    const cells = columns.map(
      ({ slowest: pid }, i) => `<text class="middle" x="${px(xOf(plot, i) + step / 2)}" y="${top + 12}">${pid}</text>`,
    );
    return [label(top + 8, 'slowest'), ...cells];
  }
  const laneOf = (pid: number): number => top + (height * (pid + 0.5)) / processes;
  const high = Math.max(1, Math.min(6, height / processes - 1));
  let d = '';
  for (const [i, { slowest: pid }] of columns.entries()) {
    d += `M${px(xOf(plot, i))} ${px(laneOf(pid) - high / 2)}h${px(step)}v${px(high)}h${px(-step)}z`;
  }
  return [
    `<path class="grid" d="M${LEFT} ${top}h${width}M${LEFT} ${px(top + height)}h${width}"/>`,
    `<path class="who" d="${d}"/>`,
    label(laneOf(0), '0'),
    ...(processes > 1 ? [label(laneOf(processes - 1), String(processes - 1))] : []),
    `<text class="soft" x="${LEFT}" y="${px(top + height + 14)}">who computed longest: a lane for each process</text>`,
  ];
}

/** What is said where one points at a column. */
function hits(plot: Plot, bottom: number): string[] {
  const { columns, step } = plot;
  return columns.map((row, i) => {
    const { superstep, work, communication, sync, measured, predicted, slowest: pid, messages } = row;
    const parts = `work ${time(work)}, communication ${time(communication)}, synchronization ${time(sync)}`;
    const said = predicted === undefined ? '' : `, ${time(predicted)} predicted`;
    const words = `out ${Math.ceil(row.out)} words, in ${Math.ceil(row.in)}, ${messages} messages`;
    const times = `${time(measured)} measured${said}; ${parts}`;
    const title = `superstep ${superstep}: ${times}; ${words}; process ${pid} slowest`;
    const place = `x="${px(xOf(plot, i))}" y="${TOP}" width="${px(step)}" height="${px(bottom - TOP)}"`;
    return `<g><title>${title}</title><rect class="hit" ${place}/></g>`;
  });
}
