/**
 * Prediction beside measurement: what each superstep of a computation took, and what the model says for its work and
 * its h-relation (`Bsp.report`).
 */
import { type BspMachine, microseconds } from './machines.ts';

/** A superstep, of all processes. */
export interface SuperstepReport {
  readonly superstep: number;
  /** Microseconds of computing of the process that computed longest, and which that was. */
  readonly work: number;
  readonly slowest: number;
  /** Its computing over the mean of all: 1 where all have the same. */
  readonly imbalance: number;
  /** Words of 8 bytes that a process sent or received, whichever is more, of the one that has most. */
  readonly h: number;
  /** Microseconds from the end of the superstep before, of the process for which it was longest. */
  readonly measured: number;
  /** What the model says: work + h·g + l, in microseconds; absent without a machine. */
  readonly predicted?: number;
}

export interface BspReport {
  readonly processes: number;
  readonly machine?: BspMachine;
  readonly supersteps: readonly SuperstepReport[];
}

/** What one process says of each superstep: computing and `sync` (µs), bytes sent and received. */
export const REPORT_NUMBERS = 4;

/** @param all of each process, its numbers of all supersteps one after the other */
export function reportOf(all: readonly Float64Array[], machine: BspMachine | undefined): BspReport {
  const steps = all[0].length / REPORT_NUMBERS;
  const supersteps = Array.from({ length: steps }, (_, superstep): SuperstepReport => {
    const numbers = all.map((one) => one.subarray(REPORT_NUMBERS * superstep, REPORT_NUMBERS * (superstep + 1)));
    const works = numbers.map(([work]) => work);
    const work = Math.max(...works);
    const mean = works.reduce((sum, one) => sum + one, 0) / works.length;
    const h = Math.max(...numbers.map(([, , sent, received]) => Math.max(sent, received))) / 8;
    const measured = Math.max(...numbers.map(([computing, sync]) => computing + sync));
    const row = { superstep, work, slowest: works.indexOf(work), imbalance: mean > 0 ? work / mean : 1, h, measured };
    return machine === undefined ? row : { ...row, predicted: work + microseconds(machine, h * machine.g + machine.l) };
  });
  return { processes: all.length, ...(machine !== undefined && { machine }), supersteps };
}

const COLUMNS = ['superstep', 'work µs', 'h words', 'measured µs', 'predicted µs', 'error', 'slowest', 'imbalance'];

/** The report as a table of text, and a line with the sums. */
export function reportTable({ supersteps, processes }: BspReport): string {
  const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  const errorOf = (predicted: number | undefined, measured: number): string =>
    predicted === undefined ? '' : `${(100 * (predicted / measured - 1)).toFixed(0)} %`;
  const rows = supersteps.map(({ superstep, work, h, measured, predicted, slowest, imbalance }) => [
    ...[String(superstep), number(work), String(Math.ceil(h)), number(measured)],
    predicted === undefined ? '' : number(predicted),
    ...[errorOf(predicted, measured), String(slowest), imbalance.toFixed(2)],
  ]);
  const widths = COLUMNS.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i].length)));
  const line = (cells: readonly string[]): string => cells.map((cell, i) => cell.padStart(widths[i])).join('  ');
  const sum = (of: (row: SuperstepReport) => number | undefined): number =>
    supersteps.reduce((total, row) => total + (of(row) ?? 0), 0);
  const measured = sum((row) => row.measured);
  const isPredicted = supersteps.some(({ predicted }) => predicted !== undefined);
  const predicted = sum((row) => row.predicted);
  const end = `${supersteps.length} supersteps of ${processes} processes: ${number(measured)} µs measured${isPredicted ? `, ${number(predicted)} predicted (${errorOf(predicted, measured)})` : ''}`;
  return [line(COLUMNS), ...rows.map(line), end].join('\n');
}

/** Pixels. */
const BAR = 18;
const HEIGHT = 240;
const LEFT = 64;
const TOP = 56;
const BOTTOM = 44;
const COLOURS = { work: '#3b6fb6', words: '#e8a33d', sync: '#b7bcc4' } as const;

/**
 * The report as a picture: for each superstep a bar of what the model predicts (work, h·g and l, one upon the other)
 * and a mark for what was measured. Without a machine, work and the rest of the measured time.
 */
export function reportPicture({ supersteps, machine, processes }: BspReport): string {
  const partsOf = ({ work, h, measured }: SuperstepReport): readonly (readonly [keyof typeof COLOURS, number])[] =>
    machine === undefined
      ? [
          ['work', work],
          ['sync', measured - work],
        ] // prettier-ignore
      : [
          ['work', work],
          ['words', (h * machine.g) / machine.s],
          ['sync', machine.l / machine.s],
        ]; // prettier-ignore
  const highest = Math.max(1e-9, ...supersteps.map(({ measured, predicted = 0 }) => Math.max(measured, predicted)));
  const y = (value: number): number => TOP + HEIGHT * (1 - value / highest);
  const width = LEFT + BAR * Math.max(12, supersteps.length) + 24;
  const bars = supersteps.map((row, i) => {
    const x = LEFT + BAR * i;
    let below = 0;
    const parts = partsOf(row).map(([kind, value]) => {
      const from = below;
      below += value;
      return `<rect x="${x + 2}" y="${y(below).toFixed(1)}" width="${BAR - 4}" height="${(y(from) - y(below)).toFixed(1)}" fill="${COLOURS[kind]}"/>`;
    });
    const mark = `<line x1="${x}" x2="${x + BAR}" y1="${y(row.measured).toFixed(1)}" y2="${y(row.measured).toFixed(1)}" stroke="currentColor" stroke-width="2"/>`;
    const title = `superstep ${row.superstep}: ${row.measured.toFixed(2)} µs measured${row.predicted === undefined ? '' : `, ${row.predicted.toFixed(2)} predicted`}; h ${Math.ceil(row.h)} words; process ${row.slowest} computed longest, ${row.work.toFixed(2)} µs`;
    return `<g><title>${title}</title>${parts.join('')}${mark}</g>`;
  });
  const ticks = [0, 0.5, 1].map((part) => {
    const at = y(part * highest).toFixed(1);
    return `<line x1="${LEFT - 4}" x2="${width - 16}" y1="${at}" y2="${at}" stroke="currentColor" stroke-opacity="0.2"/><text x="${LEFT - 8}" y="${at}" dy="4" text-anchor="end">${(part * highest).toPrecision(3)}</text>`;
  });
  const names =
    machine === undefined
      ? [
          ['work', 'longest computing'],
          ['sync', 'the rest'],
        ] // prettier-ignore
      : [
          ['work', 'longest computing'],
          ['words', 'h·g'],
          ['sync', 'l'],
        ]; // prettier-ignore
  const legend = names.map(
    ([kind, name], i) =>
      `<rect x="${LEFT + 130 * i}" y="30" width="10" height="10" fill="${COLOURS[kind as keyof typeof COLOURS]}"/><text x="${LEFT + 130 * i + 15}" y="39">${name}</text>`,
  );
  const places = supersteps
    .filter((_, i) => i % Math.ceil(supersteps.length / 20) === 0)
    .map(
      ({ superstep }) =>
        `<text x="${LEFT + BAR * (superstep + 0.5)}" y="${TOP + HEIGHT + 16}" text-anchor="middle">${superstep}</text>`,
    );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${TOP + HEIGHT + BOTTOM}" font-family="sans-serif" font-size="11" fill="currentColor" style="color: #222; background: #fff">
<text x="${LEFT}" y="18" font-size="13">${supersteps.length} supersteps of ${processes} processes, µs; the black marks are what was measured</text>
${[...legend, ...ticks, ...bars, ...places].join('\n')}
<text x="${LEFT}" y="${TOP + HEIGHT + 34}">superstep</text>
</svg>
`;
}
