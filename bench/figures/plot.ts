/**
 * Draws a figure as SVG, with ECharts' server-side renderer: no browser and no document is needed. A picture says what
 * its figure claims and whether that holds; panels.ts says what is drawn where, styles.ts how a scheme looks.
 */
import * as echarts from 'echarts';
import type { Chart, Line } from './figure.ts';
import { marksOf } from './marks.ts';
import { type Panel, panelsOf } from './panels.ts';
import { numberOf, type Scale, scaleOfPlaces, scaleOfValues } from './scale.ts';
import { named, type Style, styleOf } from './styles.ts';

/** What a picture says besides its chart. */
export interface Words {
  readonly id: string;
  readonly claim: string;
  /** Absent: it is a title, and claims nothing. */
  readonly holds?: boolean;
  /** False: in its shape, not in a factor that it repeats. */
  readonly factor?: boolean;
  /** Below the claim. */
  readonly caption: string;
}

const WIDTH = 800;
const [LEFT, RIGHT, GAP] = [84, 24, 92] as const;
/** Heights of the plot of one panel, and of each of several. */
const [ALONE, SEVERAL] = [320, 210] as const;
/** Below and above a plot: labels and the name of the axis; the panel's title. */
const [BELOW, ABOVE] = [52, 26] as const;
const INK = '#222222';
const DASHES = ['solid', [7, 4], [2, 3], [10, 3, 2, 3]] as const;
const ROW = 22;

/** About the width of a text of so many pixels, in a wide font: without a document texts cannot be measured. */
const widthOf = (text: string, size: number): number => 0.58 * size * text.length;

/** ECharts takes the width of this letter for the height of a line. */
const HEIGHT_OF_LINE = '国';
echarts.setPlatformAPI({
  measureText: (text, font) => {
    const size = Number(/(\d+)px/.exec(font ?? '')?.[1] ?? 12);
    return { width: text === HEIGHT_OF_LINE ? size : widthOf(text, size) };
  },
});

function wrapped(text: string, size: number, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(`${last} ${word}`, size) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

interface Text {
  readonly lines: readonly string[];
  readonly size: number;
  readonly color: string;
  readonly bold?: boolean;
}

/** A rectangle of pixels. */
interface Place {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** @returns the picture, which is the same whatever was drawn before it */
export function svgOf(words: Words, chart: Chart): string {
  const panels = panelsOf(words.id, chart);
  const texts = textsOf(words);
  const head = 14 + texts.reduce((sum, { lines, size }) => sum + lines.length * (size + 5) + 3, 0);
  const places = placesOf(panels, head);
  const entries = legendOf(panels);
  const legend = rowsOf(entries);
  const bottom = Math.max(...places.map(({ top, height }) => top + height)) + BELOW;
  const height = bottom + legend.length * ROW + 12;
  const plot = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  plot.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: [
      ...titles(texts),
      ...panels.map(({ title }, i) => ({
        text: title,
        left: places[i].left,
        top: places[i].top - ABOVE,
        padding: 0,
        textStyle: { fontSize: 13, color: INK },
      })),
    ],
    legend: legend.map((row, i) => ({
      data: row.map((name) => ({ name })),
      top: bottom + i * ROW,
      left: 'center',
      itemGap: 18,
      itemWidth: 42,
      itemHeight: 11,
      selectedMode: false,
      textStyle: { fontSize: 12, color: INK },
    })),
    ...drawn(panels, places),
  });
  const svg = plot.renderToSVGString();
  plot.dispose();
  return renumbered(svg);
}

function textsOf({ id, claim, holds, factor = true, caption }: Words): readonly Text[] {
  const met = factor ? 'holds' : 'holds in its shape, not in its factor';
  const verdict = holds ? met : 'does not hold';
  const width = WIDTH - 36;
  const head = {
    lines: [`${id}: the claim ${verdict}`],
    size: 16,
    color: !holds ? '#a31515' : factor ? '#1a6b2f' : '#8a5a00',
    bold: true,
  };
  return [
    ...(holds === undefined ? [] : [head]),
    { lines: wrapped(claim, 14, width), size: 14, color: INK, bold: true },
    { lines: wrapped(caption, 12, width), size: 12, color: '#444444' },
  ];
}

function titles(texts: readonly Text[]): readonly object[] {
  let top = 10;
  return texts.flatMap(({ lines, size, color, bold = false }) => {
    const each = lines.map((text, i) => ({
      text,
      left: 18,
      top: top + i * (size + 5),
      padding: 0,
      textStyle: { fontSize: size, color, fontWeight: bold ? 'bold' : 'normal' },
    }));
    top += lines.length * (size + 5) + 3;
    return each;
  });
}

/** One panel takes the whole width; several two in a row, and a last one without a neighbour the whole row. */
function placesOf(panels: readonly Panel[], head: number): readonly Place[] {
  const whole = WIDTH - LEFT - RIGHT;
  if (panels.length === 1) return [{ left: LEFT, top: head + 18, width: whole, height: ALONE }];
  const half = (whole - GAP) / 2;
  return panels.map((_, i) => ({
    left: LEFT + (i % 2) * (half + GAP),
    top: head + 16 + ABOVE + Math.floor(i / 2) * (SEVERAL + BELOW + ABOVE + 8),
    width: i % 2 === 0 && i === panels.length - 1 ? whole : half,
    height: SEVERAL,
  }));
}

function legendOf(panels: readonly Panel[]): string[] {
  return [...new Set(panels.flatMap(({ chart }) => chart.series.map(({ name }) => name)))];
}

/** Entries of the legend, in rows that are not wider than the picture. */
function rowsOf(names: readonly string[]): string[][] {
  const rows: string[][] = [];
  let width = 0;
  for (const name of names) {
    const own = 42 + 24 + widthOf(name, 12);
    if (rows.length === 0 || width + own > WIDTH - 20) {
      rows.push([]);
      width = 0;
    }
    rows.at(-1)!.push(name);
    width += own;
  }
  return rows;
}

/** Axes and lines of all panels. */
function drawn(panels: readonly Panel[], places: readonly Place[]): object {
  const turns = turnsOf(panels);
  const across = panels.map(({ chart }, i) => acrossOf(chart, places[i].width));
  const up = panels.map((panel) => upOf(panels.filter(({ chart }) => chart.y.name === panel.chart.y.name)));
  return {
    grid: places.map((place) => ({ ...place, outerBoundsMode: 'none' })),
    xAxis: panels.flatMap(({ chart }, i) => acrossAxes(chart, across[i], i)),
    yAxis: panels.flatMap(({ chart }, i) => upAxes(chart, up[i], i)),
    series: panels.flatMap(({ chart, marks }, i) => [
      ...chart.series.map((line) => seriesOf(line, chart, across[i], up[i], i, turns)),
      ...chart.series.flatMap((line) => deviationsOf(line, chart, across[i], up[i], i)),
      ...marksOf(marks, chart, across[i], up[i], i),
    ]),
  };
}

/** Which of its scheme's variants a line is, from 0, in the whole picture. */
function turnsOf(panels: readonly Panel[]): ReadonlyMap<string, number> {
  const turns = new Map<string, number>();
  const count = new Map<string, number>();
  for (const { name, printed } of panels.flatMap(({ chart }) => chart.series)) {
    if (printed === true || turns.has(name)) continue;
    const { scheme } = named(name);
    const turn = count.get(scheme) ?? 0;
    turns.set(name, turn);
    count.set(scheme, turn + 1);
  }
  return turns;
}

const acrossOf = ({ kind, x }: Chart, width: number): Scale | undefined =>
  kind === 'bars' ? undefined : scaleOfPlaces(x.places, Math.floor(width / 34));

/** Panels of the same quantity have the same scale. */
function upOf(panels: readonly Panel[]): Scale {
  const values = panels.flatMap(({ chart, marks }) => [
    ...chart.series.flatMap((line) => line.values.filter((value) => value !== null)),
    ...chart.series.flatMap((line) => line.values.flatMap((_, k) => endsOf(line, k) ?? [])),
    ...marks.flatMap((mark) =>
      mark.kind === 'value'
        ? [mark.at]
        : mark.kind === 'range'
          ? [mark.from, mark.to]
          : mark.kind === 'point'
            ? [mark.y]
            : [],
    ),
  ]);
  return scaleOfValues(values, panels[0].chart.y.logarithmic === true);
}

/** Two axes on the same line: one has the labels and the grid, the other the small ticks. */
function acrossAxes({ x }: Chart, scale: Scale | undefined, i: number): readonly object[] {
  const name = { name: x.name, nameLocation: 'middle', nameGap: 30, nameTextStyle: { color: INK, fontSize: 12 } };
  if (scale === undefined) {
    const axisLabel = { color: INK, ...(x.all && { interval: 0 }) };
    const common = { gridIndex: i, type: 'category', data: x.places.map(String), axisLabel };
    return [
      { ...common, ...name, axisTick: { show: false } },
      { ...common, show: false },
    ];
  }
  return axes(scale, i, name);
}

function upAxes({ y }: Chart, scale: Scale, i: number): readonly object[] {
  const name = {
    name: y.name,
    nameLocation: 'middle',
    nameGap: 58,
    nameRotate: 90,
    nameTextStyle: { color: INK, fontSize: 12 },
  };
  return axes(scale, i, name).map((axis) => ({ ...axis, position: 'left', offset: 0 }));
}

function axes(scale: Scale, i: number, name: object): readonly object[] {
  const labels = new Map(scale.major);
  const common = {
    gridIndex: i,
    type: 'value',
    min: scale.min,
    max: scale.max,
    axisLine: { show: true, onZero: false },
  };
  return [
    {
      ...common,
      ...name,
      axisTick: { show: true, length: 6, customValues: [...labels.keys()] },
      axisLabel: {
        color: INK,
        customValues: [...labels.keys()],
        formatter: (at: number) => labelAt(scale, at),
        hideOverlap: false,
        showMinLabel: true,
        showMaxLabel: true,
      },
      splitLine: { show: true, lineStyle: { color: '#e4e4e4' } },
    },
    {
      ...common,
      position: 'bottom',
      offset: 0,
      axisTick: { show: true, length: 3, customValues: [...scale.minor] },
      axisLabel: { show: false },
      splitLine: { show: false },
    },
  ];
}

/** The label of the nearest tick: positions are computed. */
function labelAt({ major }: Scale, at: number): string {
  return major.reduce((best, tick) => (Math.abs(tick[0] - at) < Math.abs(best[0] - at) ? tick : best))[1];
}

function seriesOf(
  line: Line,
  { kind, x }: Chart,
  across: Scale | undefined,
  up: Scale,
  i: number,
  turns: ReadonlyMap<string, number>,
): object {
  const style = styleOf(named(line.name).scheme);
  const printed = line.printed === true;
  const turn = printed ? 0 : turns.get(line.name)!;
  const at = (value: number | null): number | null =>
    value === null || !Number.isFinite(up.of(value)) ? null : up.of(value);
  const common = { name: line.name, xAxisIndex: 2 * i, yAxisIndex: 2 * i };
  if (kind === 'bars') {
    const label = { show: printed, position: 'top', color: INK, fontSize: 11, formatter: '{c}' };
    const itemStyle = barStyle(style, printed, turn);
    return { ...common, type: 'bar', data: line.values.map(at), barGap: '8%', itemStyle, label };
  }
  return {
    ...common,
    type: 'line',
    symbol: style.symbol,
    symbolSize: 9,
    showAllSymbol: true,
    connectNulls: line.deviations !== undefined,
    data: line.values.map((value, k) =>
      across === undefined ? at(value) : [across.of(numberOf(x.places[k])!), at(value)],
    ),
    itemStyle: printed
      ? { color: '#ffffff', borderColor: style.color, borderWidth: 1.5 }
      : { color: style.color, borderColor: '#ffffff', borderWidth: 0.5 },
    lineStyle: { color: style.color, width: printed ? 1.2 : 2, type: printed ? [2, 4] : dash(turn) },
  };
}

/** The ends of a bar of one deviation on both sides of a value. */
function endsOf({ values, deviations }: Line, k: number): readonly [from: number, to: number] | undefined {
  const [value, deviation] = [values[k], deviations?.[k] ?? null];
  return value === null || deviation === null ? undefined : [value - deviation, value + deviation];
}

interface Drawing {
  value(dimension: number): number;
  coord(at: readonly number[]): readonly number[];
}

function deviationsOf(line: Line, { x }: Chart, across: Scale | undefined, up: Scale, i: number): readonly object[] {
  if (line.deviations === undefined || across === undefined) return [];
  const bars = line.values.flatMap((_, k) => {
    const ends = endsOf(line, k);
    return ends === undefined ? [] : [[across.of(numberOf(x.places[k])!), ...ends.map(up.of)]];
  });
  const style = { stroke: styleOf(named(line.name).scheme).color, lineWidth: 1, opacity: 0.8 };
  const renderItem = (_: unknown, api: Drawing): object => {
    const [x1, y1] = api.coord([api.value(0), api.value(1)]);
    const [, y2] = api.coord([api.value(0), api.value(2)]);
    return { type: 'line', shape: { x1, y1, x2: x1, y2 }, style };
  };
  return [{ type: 'custom', xAxisIndex: 2 * i, yAxisIndex: 2 * i, z: 1, silent: true, renderItem, data: bars }];
}

const dash = (turn: number): string | number[] => {
  const found = DASHES[turn % DASHES.length];
  return typeof found === 'string' ? found : [...found];
};

/** What is printed is hollow; another variant is pale. */
function barStyle({ color, stripes }: Style, printed: boolean, turn: number): object {
  if (printed) return { color: '#ffffff', borderColor: color, borderWidth: 2, borderType: [4, 3] };
  const decal =
    stripes === undefined
      ? undefined
      : {
          symbol: 'rect',
          color: 'rgba(255,255,255,0.75)',
          dashArrayX: [1, 0],
          dashArrayY: [2, 5],
          rotation: (stripes * Math.PI) / 180,
        };
  return {
    color,
    opacity: turn === 0 ? 1 : 0.5,
    borderColor: color,
    borderWidth: 1,
    ...(decal === undefined ? {} : { decal }),
  };
}

/**
 * Names within the picture go on from one to the next in a process: a picture is to be the same whether others were
 * drawn before it.
 */
function renumbered(svg: string): string {
  const names = new Map<string, string>();
  return svg.replace(/zr\d+-[a-z-]*\d+/g, (name) => {
    const known = names.get(name);
    if (known !== undefined) return known;
    const made = `n${names.size}`;
    names.set(name, made);
    return made;
  });
}
