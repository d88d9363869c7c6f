/** Draws a chart as SVG, with ECharts' server-side renderer: no browser and no document is needed. */
import * as echarts from 'echarts';
import type { Chart } from './figure.ts';

const WIDTH = 720;
const HEIGHT = 440;

/** @param caption below the title, in as many lines as it takes */
export function svgOf(title: string, caption: string, { kind, x, y, series }: Chart): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: {
      text: title,
      subtext: caption,
      left: 'center',
      textStyle: { fontSize: 15 },
      subtextStyle: { fontSize: 12, color: '#333333', width: WIDTH - 40, overflow: 'break' },
    },
    // Without a document texts are measured by guess: room for those that are longer.
    legend: { bottom: 6, itemGap: 34 },
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
    series: series.map(({ name, values }) => ({
      name,
      type: kind === 'bars' ? 'bar' : 'line',
      symbolSize: 7,
      data: [...values],
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return renumbered(svg);
}

/** Names within the picture go on from one to the next in a process: a picture is to be the same whether others were drawn before it. */
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
