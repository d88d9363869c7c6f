/** How what the dissertation prints is drawn: lines across, bands, and points, each with its label. */
import type { Chart } from './figure.ts';
import type { Mark } from './panels.ts';
import type { Scale } from './scale.ts';

const PAPER = '#000000';
const TEXT = { color: PAPER, fontSize: 11, backgroundColor: 'rgba(255,255,255,0.75)', padding: 1 };
const LINE = { color: PAPER, type: [8, 3, 2, 3], width: 1.2 };

type Value = Extract<Mark, { kind: 'value' }>;

/** @param i the panel */
export function marksOf(
  marks: readonly Mark[],
  chart: Chart,
  across: Scale | undefined,
  up: Scale,
  i: number,
): readonly object[] {
  if (marks.length === 0) return [];
  const axes = { xAxisIndex: 2 * i, yAxisIndex: 2 * i, z: 8 };
  const x = (at: number): number => across?.of(at) ?? at;
  const values = marks.filter((mark): mark is Value => mark.kind === 'value');
  const lowest = values.length > 1 ? Math.min(...values.map(({ at }) => at)) : undefined;
  const lines: object[] = [];
  const bands: object[] = [];
  const points: object[] = [];
  for (const mark of marks) {
    if (mark.kind === 'value') {
      const side = mark.at === lowest ? 'Bottom' : 'Top';
      const label = { ...TEXT, position: `inside${freeEnd(chart, up, mark.at)}${side}`, formatter: mark.label };
      lines.push({ yAxis: up.of(mark.at), lineStyle: LINE, label });
    } else if (mark.kind === 'place') {
      lines.push({ xAxis: x(mark.at), lineStyle: LINE, label: { ...TEXT, position: 'end', formatter: mark.label } });
    } else if (mark.kind === 'range') {
      const label = { ...TEXT, position: 'insideTopRight', formatter: mark.label };
      bands.push([{ yAxis: up.of(mark.from), label }, { yAxis: up.of(mark.to) }]);
    } else {
      points.push({
        value: [x(mark.x), up.of(mark.y)],
        label: { ...TEXT, show: true, position: 'left', formatter: mark.label },
      });
    }
  }
  const band = { color: 'rgba(0,0,0,0.10)', borderColor: PAPER, borderType: 'dashed', borderWidth: 1 };
  return [
    {
      ...axes,
      type: 'line',
      data: [],
      silent: true,
      markLine: { silent: true, symbol: 'none', z: 8, data: lines },
      markArea: { silent: true, z: 8, itemStyle: band, data: bands },
    },
    ...(points.length === 0
      ? []
      : [{ ...axes, type: 'scatter', symbol: 'diamond', symbolSize: 13, itemStyle: { color: PAPER }, data: points }]),
  ];
}

/** The end of a line across at which the data are farther from its label. */
function freeEnd({ series }: Chart, up: Scale, at: number): 'Start' | 'End' {
  const distance = (from: number, to: number): number =>
    Math.min(
      ...series.flatMap(({ values }) =>
        values
          .slice(Math.floor(from * values.length), Math.ceil(to * values.length))
          .filter((value) => value !== null)
          .map((value) => Math.abs(up.of(value) - up.of(at))),
      ),
    );
  return distance(0, 0.5) >= distance(0.5, 1) ? 'Start' : 'End';
}
