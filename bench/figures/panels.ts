/**
 * What of a figure is drawn where: charts of many lines in panels of a few, and beside what was measured the numbers
 * that the dissertation prints. Everything here follows from a figure's chart, so pictures can be drawn again without
 * measuring.
 */
import type { Chart, Line } from './figure.ts';

/** What the dissertation prints: a value, a range of values, a place on the x axis, or a point. */
export type Mark =
  | { readonly kind: 'value'; readonly label: string; readonly at: number }
  | { readonly kind: 'range'; readonly label: string; readonly from: number; readonly to: number }
  | { readonly kind: 'place'; readonly label: string; readonly at: number }
  | { readonly kind: 'point'; readonly label: string; readonly x: number; readonly y: number };

export interface Panel {
  readonly title: string;
  readonly chart: Chart;
  readonly marks: readonly Mark[];
}

type Layout = (chart: Chart) => readonly Panel[];

/** One panel, with what is printed. */
const alone =
  (...marks: readonly Mark[]): Layout =>
  (chart) => [{ title: '', chart, marks }];

/** What was measured, and what else was in the same runs. */
const besides =
  (title: string, other: string): Layout =>
  (chart) => {
    const { beside } = chart;
    if (beside === undefined) return [{ title: '', chart, marks: [] }];
    // Schemes and relations: few, with short names.
    const named = (one: Chart): Chart => (one.kind === 'bars' ? { ...one, x: { ...one.x, all: true } } : one);
    return [
      { title, chart: named(chart), marks: [] },
      { title: other, chart: named(beside), marks: [] },
    ];
  };

/** What else was in the same runs, alone. */
const other = ({ beside }: Chart, title: string, ...marks: readonly Mark[]): Panel[] =>
  beside === undefined ? [] : [{ title, chart: beside, marks }];

const value = (at: number, label: string): Mark => ({ kind: 'value', at, label: `paper: ${label}` });
const range = (from: number, to: number, label: string): Mark => ({
  kind: 'range',
  from,
  to,
  label: `paper: ${label}`,
});
const place = (at: number, label: string): Mark => ({ kind: 'place', at, label: `paper: ${label}` });

/** Lines in panels by what stands in their names before the last comma, or elsewhere, as `split` says. */
function byName(
  chart: Chart,
  split: (parts: readonly string[]) => readonly [panel: string, name: string] = (parts) => [
    parts.slice(0, -1).join(', '),
    parts.at(-1)!,
  ],
): Panel[] {
  const panels = new Map<string, Line[]>();
  for (const line of chart.series) {
    const [panel, name] = split(line.name.split(', '));
    const lines = panels.get(panel) ?? [];
    panels.set(panel, lines);
    lines.push({ name, values: line.values, ...(line.deviations && { deviations: line.deviations }) });
  }
  return [...panels].map(([title, series]) => ({ title, chart: { ...chart, series }, marks: [] }));
}

/** By what stands before the first comma: the bus, the operation, the shape. */
const byFirst = (chart: Chart): Panel[] =>
  byName(chart, ([first, ...rest]) => (rest.length === 0 ? ['', first] : [first, rest.join(', ')]));

/** By the number of processes, each with a scale of its own: the paper's slots, and what the bus takes at least. */
const bySlots =
  (bytes: number, slots: Readonly<Record<string, number>>): Layout =>
  (chart) =>
    byFirst(chart).map(({ title, chart: one }) => ({
      title,
      chart: { ...one, y: { ...one.y, name: `${one.y.name}, ${title}` } },
      marks: [
        { kind: 'value', at: (Number(title.split(' ').at(-1)) * bytes * BUS_GAP) / 1000, label: 'least possible' },
        ...(slots[title] === undefined ? [] : [place(slots[title], `${slots[title]} µs`)]),
      ],
    }));

const marked = (panel: Panel, ...marks: readonly Mark[]): Panel => ({ ...panel, marks });

/** One line made of two, place by place. */
function combined(
  chart: Chart,
  name: string,
  [one, other]: readonly [string, string],
  combine: (one: number, other: number) => number,
): Line {
  const valuesOf = (wanted: string): Line['values'] => chart.series.find((line) => line.name === wanted)?.values ?? [];
  const second = valuesOf(other);
  const both = valuesOf(one).map((first, k) => {
    const against = second[k];
    return first === null || against === null || against === undefined ? null : combine(first, against);
  });
  return { name, values: both };
}

/** Microseconds a byte of 10 Mbit/s. */
const BUS_GAP = 0.8;

const percentMore = (after: number, before: number): number => 100 * (after / before - 1);
const percentLess = (after: number, before: number): number => 100 * (1 - after / before);
const quotient = (one: number, other: number): number => one / other;

/** Another panel: what follows from the lines that were measured. */
function derived(chart: Chart, title: string, y: string, series: readonly Line[], ...marks: readonly Mark[]): Panel {
  return { title, chart: { ...chart, y: { name: y }, series }, marks };
}

const BUSES = ['PCI-X', 'PCI-Express'] as const;
const PIECES = ['64 pieces', '128 pieces'] as const;

/** D8.3 and D8.4: each bus with each number of pieces, and how sgrs compares with multi-write. */
function vectors(
  y: string,
  compare: (sgrs: number, multiWrite: number) => number,
  printed: Readonly<Record<(typeof BUSES)[number], readonly Mark[]>>,
  times: Readonly<Record<(typeof BUSES)[number], readonly Mark[]>> = { 'PCI-X': [], 'PCI-Express': [] },
  bothWays: readonly Mark[] = [],
): Layout {
  return (chart) => [
    ...byName(chart).map((panel) =>
      marked(panel, ...times[panel.title.startsWith('PCI-X,') ? 'PCI-X' : 'PCI-Express']),
    ),
    ...BUSES.map((bus) =>
      derived(
        chart,
        bus,
        y,
        PIECES.map((n) => combined(chart, `sgrs, ${n}`, [`${bus}, ${n}, sgrs`, `${bus}, ${n}, multi-write`], compare)),
        ...printed[bus],
      ),
    ),
    ...(chart.beside === undefined
      ? []
      : [{ title: 'PCI-X, 128 pieces, both ways', chart: chart.beside, marks: bothWays }]),
  ];
}

/** D10: each bus, and what a schedule gains. */
function schedules(
  y: string,
  gain: (after: number, before: number) => number,
  after: readonly string[],
  printed: Readonly<Record<string, readonly Mark[]>>,
  marks: readonly Mark[] = [],
): Layout {
  return (chart) => [
    ...byFirst(chart).map((panel) => (panel.title === 'PCI-Express' ? marked(panel, ...marks) : panel)),
    ...['PCI-Express', 'PCI-X'].map((bus) =>
      derived(
        chart,
        bus,
        y,
        after.map((name) =>
          combined(chart, name, [`${bus}, ${name}`, `${bus}, ${name.replace(/[^ ]+$/, 'issue-order')}`], gain),
        ),
        ...printed[bus],
      ),
    ),
  ];
}

const NOTIFY = 'remote-notify';

/** Lines that say so are printed: they have the colour of what was measured, and hollow markers. */
const withPrinted = (chart: Chart): Chart => ({
  ...chart,
  series: chart.series.map((line) =>
    /^dissertation$|, (dissertation|table \d)/.test(line.name) ? { ...line, printed: true } : line,
  ),
});

const LAYOUTS: Readonly<Record<string, Layout>> = {
  services: (chart) => [...byFirst(chart), ...(chart.beside === undefined ? [] : byFirst(chart.beside))],
  B2: besides('by the relation', 'where messages are lost'),
  B3: besides('a word', 'a superstep'),
  B7: (chart) => [
    ...byName(chart, ([program, ...rest]) => [program, [program, ...rest].join(', ')]),
    ...other(chart, 'against the Origin', { kind: 'value', at: 1, label: 'the Origin' }),
  ],
  B8: (chart) => [
    ...byName(chart, (parts) => [parts.slice(0, 2).join(', '), parts.slice(2).join(', ')]).map((panel) =>
      marked(panel, { kind: 'value', at: 1.05, label: '5 % more' }),
    ),
    ...(chart.beside === undefined ? [] : byName(chart.beside)),
  ],
  M1: (chart) =>
    besides(
      'communication, prediction',
      'time',
    )(chart).map((panel, k) => ({
      ...panel,
      chart: { ...panel.chart, x: { ...panel.chart.x, all: true } },
      marks: k === 0 ? [{ kind: 'range', from: -15, to: 15, label: 'within 15 %' }] : [],
    })),
  M3: (chart) => {
    const named = { ...chart, x: { ...chart.x, all: true } };
    if (chart.beside === undefined) return alone()(named);
    return [...byFirst(chart.beside), { title: 'programs', chart: named, marks: [] }];
  },
  N1: besides('time of a processor', 'packets of the protocol'),
  N2: (chart) => {
    const [together, apart] = besides('nodes begin at one time', 'by the adapters, nodes begin apart')(chart);
    const printed = [
      { kind: 'point', x: 16, y: 25.72, label: 'paper: 25.72' },
      { kind: 'point', x: 16, y: 86.93, label: 'paper: 86.93' },
    ] as const;
    return apart === undefined ? [marked(together, ...printed)] : [marked(together, ...printed), apart];
  },
  N3: alone(
    { kind: 'point', x: 8, y: 14.2, label: 'paper: 14.20' },
    { kind: 'point', x: 8, y: 37.49, label: 'paper: 37.49' },
  ),
  N4: alone(
    { kind: 'point', x: 8, y: 5.6, label: 'paper: 5.60' },
    { kind: 'point', x: 8, y: 13.89, label: 'paper: 13.89' },
  ),
  N6: besides('where packets are lost', 'where ranks enter apart'),
  T1: besides('throughput', 'contention for a slot'),
  T2: besides('packets of four processes', 'load'),
  T3: bySlots(100_000, { 'p = 2': 1200, 'p = 4': 1450, 'p = 6': 1650, 'p = 8': 1700 }),
  T4: bySlots(33_332, { 'p = 8': 1200 }),
  T5: (chart) => {
    const { beside } = chart;
    const panels = bySlots(100_000, {})(chart);
    return beside === undefined ? panels : [...panels, { title: 'losses', chart: beside, marks: [] }];
  },
  T6: (chart) =>
    [chart, chart.beside, chart.beside?.beside, chart.beside?.beside?.beside]
      .filter((one) => one !== undefined)
      .map((one, k) => ({
        title: ['pace', 'order of targets', 'processes apart', 'auto, after its tries'][k],
        chart: { ...one, x: { ...one.x, all: true } },
        marks: [],
      })),
  'D4.6': alone({ kind: 'point', x: 64, y: 4.5, label: 'paper: two-sided about 4.5 at 64' }),
  'D4.7': (chart) => {
    const large = ', n = 3000';
    const sizes = [
      ['n = 2048', '', range(25, 81, '25 to 81 %')],
      ['n = 3000', large, range(58, 87, '58 to 87 %')],
    ] as const;
    const gains = sizes.filter(([title]) => chart.series.some(({ name }) => name === title));
    if (gains.length > 0) {
      return gains.map(([title, , printed]) => ({
        title,
        chart: { ...chart, series: chart.series.filter(({ name }) => name === title) },
        marks: [printed],
      }));
    }
    const ofSize = (line: Line, suffix: string): boolean => line.name.endsWith(large) === (suffix === large);
    return [
      ...sizes.map(([title, suffix]) => ({
        title,
        chart: {
          ...chart,
          series: chart.series
            .filter((line) => ofSize(line, suffix))
            .map(({ name, values }) => ({ name: name.replace(large, ''), values })),
        },
        marks: [],
      })),
      ...sizes.map(([title, suffix, printed]) =>
        derived(
          chart,
          title,
          'two-sided takes longer by (%)',
          [combined(chart, 'two-sided', [`two-sided${suffix}`, `direct${suffix}`], percentMore)],
          printed,
        ),
      ),
    ];
  },
  'D4.8': (chart) => {
    if (chart.series.some(({ printed }) => printed)) return alone()(chart);
    const unlock = chart.x.places.indexOf('unlock');
    const only = (name: string, at: number): Line => ({
      name: `${name}, dissertation`,
      values: chart.x.places.map((_, k) => (k === unlock ? at : null)),
      like: name,
      printed: true,
    });
    return [
      {
        title: '',
        chart: { ...chart, series: [...chart.series, only('two-sided', 832), only('direct', 421)] },
        marks: [],
      },
    ];
  },
  'D5.8': besides('time', 'hybrid against the best other'),
  'D5.9': (chart) => {
    const { beside } = chart;
    if (beside === undefined) return alone()(chart);
    const printed: Line = {
      name: 'hybrid, table 5.2',
      values: [0, 9346, 10_180, 16_400],
      like: 'hybrid',
      printed: true,
    };
    return [
      { title: 'time', chart, marks: [] },
      { title: 'changes of mode', chart: { ...beside, series: [...beside.series, printed] }, marks: [] },
    ];
  },
  'D6.3': alone(value(90, 'about 90 % beyond 64 KiB'), place(16_384, 'from 16 KiB on')),
  'D6.7': (chart) => {
    const computed = chart.series.some(({ name }) => name.endsWith(' µs')) ? ['800 µs'] : [];
    const judged: Mark = { kind: 'place', at: 16_384, label: 'judged from 16 KiB on' };
    const panels = byName(chart, ([name, neighbours = '8', ...compute]) => [
      [`${neighbours} neighbours`, ...(compute.length > 0 ? compute : computed)].join(', '),
      name,
    ]);
    const against = panels.map(({ title, chart: { series } }): Line => {
      const timesOf = (k: number, which: (name: string) => boolean): number[] =>
        series.flatMap(({ name, values }) => (which(name) ? (values[k] ?? []) : []));
      const values = chart.x.places.map((_, k) => {
        const [time] = timesOf(k, (name) => name === NOTIFY);
        return time === undefined ? null : percentMore(time, Math.min(...timesOf(k, (name) => name !== NOTIFY)));
      });
      return { name: `${NOTIFY}, ${title}`, values };
    });
    return [
      ...panels.map((panel) => marked(panel, judged)),
      derived(chart, `${NOTIFY} against the best of the others`, 'takes longer by (%)', against, judged),
    ];
  },
  'D8.1': (chart) => {
    const { beside } = chart;
    if (beside === undefined) return byFirst(chart);
    return [...byFirst(chart).map((panel) => ({ ...panel, title: `${panel.title}, 64 blocks` })), ...byName(beside)];
  },
  'D8.3': vectors(
    'sgrs below multi-write (%)',
    percentLess,
    { 'PCI-X': [value(61, 'up to 61 %')], 'PCI-Express': [value(69, 'up to 69 %')] },
    { 'PCI-X': [place(32_768, 'cut-off 32 KiB')], 'PCI-Express': [] },
  ),
  'D8.4': vectors(
    'sgrs over multi-write (times)',
    quotient,
    { 'PCI-X': [range(1.12, 4, '1.12 to 4.0')], 'PCI-Express': [value(7.2, 'up to 7.2')] },
    undefined,
    [value(548, 'pack 548'), value(910, 'sgrs 910, of 941')],
  ),
  'D8.5': byName,
  'D8.6': byName,
  'D8.7': (chart) =>
    byFirst(chart).map((panel) =>
      marked(
        {
          ...panel,
          chart: {
            ...panel.chart,
            series: panel.chart.series.map(({ name, values }) => ({ name: `sgrs, ${name}`, values })),
          },
        },
        value(10, 'about 10 % where small'),
      ),
    ),
  'D8.8': byFirst,
  'D8.10': byFirst,
  'O.2': byName,
  'O.5': (chart) =>
    byFirst(chart).map(({ title, chart: one, marks }) => ({
      title,
      chart: { ...one, y: { name: `${one.y.name}, ${title}` } },
      marks,
    })),
  'D9.3': alone(
    value(99, 'direct above 99 %'),
    value(90, 'buffered about 90 %'),
    place(16_384, 'messages drop beyond 16 KiB'),
  ),
  'D9.4': (chart) => [
    ...byFirst(chart).map((panel) =>
      panel.title === 'MG' ? marked(panel, range(10, 37, 'blocking 10 to 37 %')) : panel,
    ),
    ...other(chart, 'non-blocking against blocking', range(5, 20, 'MG 5 to 20 %')),
  ],
  'D10.1': schedules(
    'gain (%)',
    percentMore,
    ['interleave'],
    { 'PCI-Express': [value(76, 'up to 76 %')], 'PCI-X': [value(8, 'up to 8 %')] },
    [value(1788, '1,788')],
  ),
  'D10.2': schedules('lower by (%)', percentLess, ['gets-first'], {
    'PCI-Express': [value(40, 'up to 40 %')],
    'PCI-X': [value(20, 'up to 20 %')],
  }),
  'D10.3': schedules('lower by (%)', percentLess, ['put, aggregate', 'get, aggregate-gets'], {
    'PCI-Express': [value(44, 'put up to 44 %'), value(42, 'get up to 42 %')],
    'PCI-X': [value(38, 'put up to 38 %'), value(42, 'get up to 42 %')],
  }),
};

/** The panels of a figure, by its id. */
export function panelsOf(id: string, chart: Chart): readonly Panel[] {
  return (LAYOUTS[id] ?? alone())(withPrinted(chart));
}
