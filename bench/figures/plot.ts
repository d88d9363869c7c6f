/** Draws a chart as SVG, with ECharts' server-side renderer: no browser and no document is needed. */
import * as echarts from 'echarts';
import type { Chart } from './figure.ts';

const WIDTH = 720;
const HEIGHT = 440;
/** ECharts' own. */
const COLORS = ['#5470c6', '#91cc75', '#fac858', '#ee6666', '#73c0de', '#3ba272', '#fc8452', '#9a60b4', '#ea7ccc'];

/** @param caption below the title, in as many lines as it takes */
export function svgOf(title: string, caption: string, { kind, x, y, series }: Chart): string {
  const first = series.filter(({ like }) => like === undefined);
  const colors = new Map(first.map(({ name }, i) => [name, COLORS[i % COLORS.length]]));
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: {
      text: title,
      subtext: caption,
      left: 'center',
      textStyle: { fontSize: 15 },
      subtextStyle: { fontSize: 12, color: '#333333', width: WIDTH - 150, overflow: 'break' },
    },
    // Without a document texts are measured by guess: room for those that are longer.
    // What is dashed or pale, the caption says.
    legend: { bottom: 6, itemGap: 34, data: first.map(({ name }) => name) },
    grid: { left: 78, right: 28, top: 84, bottom: 84 },
    xAxis: {
      type: 'category',
      name: x.name,
      nameLocation: 'middle',
      nameGap: 30,
      data: x.places.map(String),
      boundaryGap: kind === 'bars',
    },
    yAxis: {
      type: y.logarithmic === true ? 'log' : 'value',
      name: y.name,
      nameLocation: 'middle',
      nameGap: 54,
      nameRotate: 90,
    },
    series: series.map(({ name, values, like }) => ({
      name,
      type: kind === 'bars' ? 'bar' : 'line',
      symbolSize: 7,
      data: [...values],
      itemStyle: { color: colors.get(like ?? name), opacity: like !== undefined && kind === 'bars' ? 0.5 : 1 },
      lineStyle: { color: colors.get(like ?? name), type: like === undefined ? 'solid' : 'dashed' },
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return renumbered(svg);
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
