/**
 * Draws a scene as a message-sequence picture: a lane for each rank, time downwards, boxes for calls and waits, arrows
 * for what passes between ranks. One HTML file that needs nothing else, light or dark as the reader's system is.
 *
 * Time is not to scale: a put takes nanoseconds and a wait may take seconds. Every moment at which something happens
 * gets a row, in order; the longer nothing happens, the greater the distance, by its logarithm. Labels stand right of
 * their lane, and a row moves down until its label is clear of the one above: so none covers another.
 */
import { type Box, microseconds, type Scene } from './scene.ts';
import type { ArrowKind, SceneArrow } from './scene-arrows.ts';

/** Pixels. */
const LEFT = 84;
const TOP = 52;
const LANE = 214;
const BOTTOM = 24;
/** Between two rows. */
const LEAST_GAP = 5;
const MOST_GAP = 34;
/** Between the labels of a lane, and between those of the time axis. */
const LINE = 15;
const TICK = 30;
const CALL = 14;
const WAIT = 8;
const EPOCH = 24;
/** Characters of a label that fit beside a lane. */
const LABEL = 29;

const KINDS: Readonly<Record<ArrowKind, { readonly about: string; readonly dash: string }>> = {
  put: { about: 'put: bytes to memory of another rank', dash: '' },
  get: { about: 'get: bytes from memory of another rank', dash: '7 3' },
  update: { about: 'accumulate and other atomic calls', dash: '2 3' },
  message: { about: 'control message, or request to a device', dash: '9 3 2 3' },
  gather: { about: 'message of a second connection: gathered from pieces, scattered to pieces', dash: '' },
  signal: { about: 'barrier, post, complete: a word that the other rank reads', dash: '4 3' },
  lock: { about: 'lock, from the rank that released it to the rank that waited for it', dash: '' },
  notification: { about: 'notification', dash: '6 2 2 2' },
};

/** A complete HTML document. */
export function drawPage(scene: Scene): string {
  const { title, program, ranks, hidden, start, end } = scene;
  const about =
    `${program}; ${microseconds(end - start)} µs` +
    `${hidden > 0 ? `; ${ranks.length} of ${ranks.length + hidden} ranks` : ''}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${markup(title)}</title>
<style>
${STYLE}
</style>
</head>
<body>
<h1>${markup(title)}</h1>
<p>${markup(about)}. Time runs downward and is not to scale; the numbers on the left are microseconds. \
Point at an element to see its exact times.</p>
${legend(scene)}
<div class="scene">${svgOf(scene)}</div>
</body>
</html>
`;
}

/** The picture alone, for documents. */
export function drawSvg(scene: Scene): string {
  return `${svgOf(scene, `<style>${STYLE}\nsvg { background: var(--back); }</style>\n`)}\n`;
}

const STYLE = `:root { color-scheme: light dark; --back: #ffffff; --ink: #1b1f24; --soft: #5b6570; --line: #c9d1d9; \
--call: #d5e3f5; --call-edge: #4a78b0; --wait: #f2c14e; --wait-edge: #8a6100; --epoch: #eef2f6; --put: #0b5cad; \
--get: #0b7a4b; --update: #8a3ab9; --message: #5b6570; --gather: #0f766e; --signal: #b3261e; --lock: #a04b00; \
--notification: #a3116f; }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --ink: #e8edf2; --soft: #a2aeba; --line: #3a444f; \
--call: #24405f; --call-edge: #7fb0e8; --wait: #8f6a12; --wait-edge: #f5cf6b; --epoch: #1e252d; --put: #6fb3ff; \
--get: #5fd29b; --update: #cf9bf2; --message: #a2aeba; --gather: #5eead4; --signal: #ff8a80; --lock: #ffb066; \
--notification: #ff8fd0; } }
body { margin: 16px; background: var(--back); color: var(--ink); font: 14px/1.4 system-ui, sans-serif; }
h1 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 8px; color: var(--soft); max-width: 70em; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 0 0 10px; padding: 0; list-style: none; \
font-size: 13px; }
.legend li { display: flex; align-items: center; gap: 7px; }
.scene { overflow-x: auto; }
svg { display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); paint-order: stroke; stroke: var(--back); \
stroke-width: 3px; stroke-linejoin: round; }
svg .name { font-weight: 600; font-size: 13px; text-anchor: middle; }
svg .tick { fill: var(--soft); text-anchor: end; }
.lane { stroke: var(--line); stroke-width: 1.5; }
.lane.absent { stroke: var(--signal); stroke-dasharray: 6 5; }
.grid { stroke: var(--line); stroke-width: 0.5; stroke-dasharray: 1 4; }
.epoch { fill: var(--epoch); stroke: var(--line); }
.call { fill: var(--call); stroke: var(--call-edge); }
.wait { fill: var(--wait); stroke: var(--wait-edge); }
.unfinished { stroke-dasharray: 3 2; stroke-width: 2; }
.arrow { fill: none; stroke-width: 1.6; }
${Object.entries(KINDS)
  .map(
    ([kind, { dash }]) =>
      `.${kind} .arrow { stroke: var(--${kind});${dash && ` stroke-dasharray: ${dash};`} } ` +
      `.${kind} .head { fill: var(--${kind}); }`,
  )
  .join('\n')}`;

function legend({ boxes, arrows }: Scene): string {
  const items: string[] = [];
  const box = (name: string, about: string): void => {
    items.push(
      '<li><svg width="18" height="14" aria-hidden="true">' +
        `<rect class="${name}" x="2" y="1" width="14" height="12"/></svg>${about}</li>`,
    );
  };
  if (boxes.some(({ kind }) => kind === 'epoch')) box('epoch', 'epoch');
  box('call', 'call');
  if (boxes.some(({ kind }) => kind === 'wait')) box('wait', 'wait within it');
  for (const [kind, { about }] of Object.entries(KINDS)) {
    if (!arrows.some((arrow) => arrow.kind === kind)) continue;
    items.push(
      `<li><svg class="${kind}" width="40" height="12" aria-hidden="true">` +
        `<path class="arrow" d="M1 6H32"/><path class="head" d="M39 6l-8-4v8z"/></svg>${about}</li>`,
    );
  }
  return `<ul class="legend">${items.join('')}</ul>`;
}

function svgOf(scene: Scene, style = ''): string {
  const { title, ranks, start, boxes, arrows, absent } = scene;
  const laneOf = new Map(ranks.map((rank, i) => [rank, LEFT + 30 + i * LANE]));
  const x = (rank: number): number => laneOf.get(rank)!;
  const labels = labelsOf(scene);
  const missing = new Set(absent.map(({ rank }) => rank));
  const y = rowsOf(scene, labels);
  const width = LEFT + 30 + ranks.length * LANE;
  const bottom = Math.max(...y.values());
  const height = bottom + BOTTOM;
  const parts: string[] = [];
  let lastTick = Number.NEGATIVE_INFINITY;
  for (const [time, at] of y) {
    if (at - lastTick < TICK) continue;
    lastTick = at;
    parts.push(`<line class="grid" x1="${LEFT - 8}" x2="${width}" y1="${at}" y2="${at}"/>`);
    parts.push(`<text class="tick" x="${LEFT - 14}" y="${at + 4}">${microseconds(time - start)}</text>`);
  }
  for (const rank of ranks) {
    parts.push(
      `<line class="lane${missing.has(rank) ? ' absent' : ''}" x1="${x(rank)}" x2="${x(rank)}" ` +
        `y1="${TOP - 14}" y2="${bottom + 8}"/>`,
    );
    parts.push(`<text class="name" x="${x(rank)}" y="${TOP - 24}">rank ${rank}</text>`);
  }
  // Epochs behind calls, calls behind waits; all of them behind the arrows.
  for (const kind of ['epoch', 'call', 'wait'] as const) {
    for (const box of boxes)
      if (box.kind === kind) parts.push(drawBox(box, x(box.rank), y.get(box.start)!, y.get(box.end)!));
  }
  for (const arrow of arrows) parts.push(drawArrow(arrow, x, y, start));
  for (const { rank, time, text, drop } of labels) {
    parts.push(`<text class="label" x="${x(rank) + EPOCH / 2 + 6}" y="${y.get(time)! + drop}">${markup(text)}</text>`);
  }
  const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${markup(title)}" ${size}>
${style}${parts.join('\n')}
</svg>`;
}

interface Label {
  readonly rank: number;
  readonly time: number;
  readonly text: string;
  /** Pixels from the row of its moment to its baseline: an arrow begins below its label, or comes in above it. */
  readonly drop: number;
}

/**
 * Right of its lane, where it begins: what a call is, how long a wait took, what an arrow carries; or that the rank
 * never came. By time.
 */
function labelsOf({ boxes, arrows, absent, start: begin }: Scene): Label[] {
  const labels: Label[] = absent.flatMap(({ rank, instead }) =>
    ['never came', ...(instead === '' ? [] : [instead])].map((text) => ({
      rank,
      time: begin,
      text: clip(text),
      drop: 4,
    })),
  );
  for (const { kind, rank, start, label, alone } of boxes) {
    // A wait is within a call, which says how long it took.
    if (kind !== 'wait' || alone === true) labels.push({ rank, time: start, text: clip(label), drop: 4 });
  }
  for (const { label, labelAtEnd, from, to, sent, arrived } of arrows) {
    if (label === '') continue;
    const text = clip(label);
    labels.push(labelAtEnd ? { rank: to, time: arrived, text, drop: 12 } : { rank: from, time: sent, text, drop: -3 });
  }
  return labels.sort((a, b) => a.time - b.time);
}

function clip(text: string): string {
  return text.length > LABEL ? `${text.slice(0, LABEL - 1)}…` : text;
}

/** Where each moment stands. Two labels of one lane at the same moment: the second one's moment is a little later. */
function rowsOf({ boxes, arrows, start, end }: Scene, labels: Label[]): Map<number, number> {
  const times = new Set([start, end]);
  for (const box of boxes) times.add(box.start).add(box.end);
  for (const { sent, arrived } of arrows) times.add(sent).add(arrived);
  const taken = new Set<string>();
  for (const [i, label] of labels.entries()) {
    let { time } = label;
    // A thousandth of a nanosecond: between this moment and the next one.
    while (taken.has(`${label.rank} ${time}`)) time += 1 / 1024;
    taken.add(`${label.rank} ${time}`);
    labels[i] = { ...label, time };
    times.add(time);
  }
  const rows = new Map<number, number>();
  const labelled = new Map<number, Label[]>();
  for (const label of labels) labelled.set(label.time, [...(labelled.get(label.time) ?? []), label]);
  const lastLabel = new Map<number, number>();
  let y = TOP;
  let before = start;
  for (const time of [...times].sort((a, b) => a - b)) {
    if (time > before) y += Math.min(MOST_GAP, LEAST_GAP + 3 * Math.log2(1 + (time - before) / 100));
    for (const { rank, drop } of labelled.get(time) ?? []) {
      y = Math.max(y, (lastLabel.get(rank) ?? Number.NEGATIVE_INFINITY) + LINE - drop);
      lastLabel.set(rank, y + drop);
    }
    y = Math.round(y * 10) / 10;
    rows.set(time, y);
    before = time;
  }
  return rows;
}

function drawBox({ kind, detail, unfinished }: Box, x: number, from: number, to: number): string {
  const width = kind === 'epoch' ? EPOCH : kind === 'call' ? CALL : WAIT;
  const name = unfinished ? `${kind} unfinished` : kind;
  return (
    `<rect class="${name}" x="${x - width / 2}" y="${from}" width="${width}" ` +
    `height="${Math.max(1, to - from).toFixed(1)}" rx="2"><title>${markup(detail)}</title></rect>`
  );
}

function drawArrow(
  arrow: SceneArrow,
  x: (rank: number) => number,
  y: ReadonlyMap<number, number>,
  origin: number,
): string {
  const { kind, from, to, sent, arrived, label } = arrow;
  const [x1, y1, x2] = [x(from), y.get(sent)!, x(to)];
  const y2 = y.get(arrived)!;
  const times = `${microseconds(sent - origin)} to ${microseconds(arrived - origin)} µs`;
  const about = `<title>${markup(`${kind}${label && ` (${label})`}, rank ${from} to rank ${to}, ${times}`)}</title>`;
  if (from === to) {
    const [low, high] = [y1, Math.max(y2, y1 + 6)];
    const path = `M${x1} ${low}C${x1 - 34} ${low} ${x1 - 34} ${high} ${x1 - 7} ${high}`;
    return `<g class="${kind}">${about}<path class="arrow" d="${path}"/>${head(x1, high, 1, 0)}</g>`;
  }
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const tip = `${(x2 - 7 * dx).toFixed(1)} ${(y2 - 7 * dy).toFixed(1)}`;
  return `<g class="${kind}">${about}<path class="arrow" d="M${x1} ${y1}L${tip}"/>${head(x2, y2, dx, dy)}</g>`;
}

/** A tip that points along (dx, dy). */
function head(x: number, y: number, dx: number, dy: number): string {
  const at = (back: number, aside: number): string =>
    `${(x - back * dx - aside * dy).toFixed(1)} ${(y - back * dy + aside * dx).toFixed(1)}`;
  return `<path class="head" d="M${at(0, 0)}L${at(9, 4)}L${at(9, -4)}z"/>`;
}

function markup(text: string): string {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}
