/**
 * Draws a scene as a message-sequence picture: a lane for each rank, time downwards, boxes for calls and waits, arrows
 * for what passes between ranks. One file that needs nothing else, a page or an SVG.
 *
 * Time is not to scale: a put takes nanoseconds and a wait may take seconds. Every moment at which something happens
 * gets a row, in order; the longer nothing happens, the greater the distance, by its logarithm. Labels stand right of
 * their lane, and a row moves down until its label is clear of the one above: so none covers another.
 */
import { type Box, microseconds, type Scene } from './scene.ts';
import type { ArrowKind, SceneArrow } from './scene-arrows.ts';
import { type Drawing, type Key, look, markup, overLines, pageOf, svgOf } from './svg.ts';

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
  message: { about: 'control message, or request for a lock or a fence', dash: '9 3 2 3' },
  gather: { about: 'message of a second connection: gathered from pieces, scattered to pieces', dash: '' },
  signal: { about: 'barrier, post, complete: a word that the other rank reads', dash: '4 3' },
  lock: { about: 'lock, from the rank that released it to the rank that waited for it', dash: '' },
  notification: { about: 'notification', dash: '6 2 2 2' },
};

/** A complete HTML document. */
export function drawPage(scene: Scene): string {
  return pageOf(drawing(scene));
}

/** The picture alone, for documents. */
export function drawSvg(scene: Scene): string {
  return svgOf(drawing(scene));
}

function drawing(scene: Scene): Drawing {
  const { title, program, ranks, hidden, start, end } = scene;
  const about =
    `${program}; ${microseconds(end - start)} µs` +
    `${hidden > 0 ? `; ${ranks.length} of ${ranks.length + hidden} ranks` : ''}`;
  const reading =
    'Time runs downward and is not to scale; the numbers on the left are microseconds. ' +
    'Point at an element to see its exact times.';
  return { title, about, reading, keys: keysOf(scene), ...chart(scene) };
}

function keysOf({ boxes, arrows }: Scene): Key[] {
  const box = (kind: Box['kind'], about: string): Key => ({
    sign: `<rect ${look(kind)} x="2" y="1" width="14" height="12"/>`,
    width: 18,
    about,
  });
  const keys: Key[] = [];
  if (boxes.some(({ kind }) => kind === 'epoch')) keys.push(box('epoch', 'epoch'));
  keys.push(box('call', 'call'));
  if (boxes.some(({ kind }) => kind === 'wait')) keys.push(box('wait', 'wait within it'));
  for (const kind of Object.keys(KINDS) as ArrowKind[]) {
    if (!arrows.some((arrow) => arrow.kind === kind)) continue;
    keys.push({
      sign: `${shaft(kind, 'M1 7H32')}<path ${look(`tip-${kind}`)} d="M39 7l-8-4v8z"/>`,
      width: 40,
      about: KINDS[kind].about,
    });
  }
  return keys;
}

function chart(scene: Scene): Pick<Drawing, 'width' | 'height' | 'parts'> {
  const { ranks, start, boxes, arrows, absent } = scene;
  const laneOf = new Map(ranks.map((rank, i) => [rank, LEFT + 30 + i * LANE]));
  const x = (rank: number): number => laneOf.get(rank)!;
  const labels = labelsOf(scene);
  const missing = new Set(absent.map(({ rank }) => rank));
  const y = rowsOf(scene, labels);
  const width = LEFT + 30 + ranks.length * LANE;
  const bottom = Math.max(...y.values());
  const parts: string[] = [`<text ${look('tick')} x="${LEFT - 14}" y="${TOP - 24}">time, µs</text>`];
  let lastTick = Number.NEGATIVE_INFINITY;
  for (const [time, at] of y) {
    if (at - lastTick < TICK) continue;
    lastTick = at;
    parts.push(`<line ${look('grid')} x1="${LEFT - 8}" x2="${width}" y1="${at}" y2="${at}"/>`);
    parts.push(`<text ${look('tick')} x="${LEFT - 14}" y="${at + 4}">${microseconds(time - start)}</text>`);
  }
  for (const rank of ranks) {
    const line = missing.has(rank) ? look('absent') : look('lane');
    parts.push(`<line ${line} x1="${x(rank)}" x2="${x(rank)}" y1="${TOP - 14}" y2="${bottom + 8}"/>`);
    parts.push(`<text ${look('name')} x="${x(rank)}" y="${TOP - 24}">rank ${rank}</text>`);
  }
  // Epochs behind calls, calls behind waits; all of them behind the arrows.
  for (const kind of ['epoch', 'call', 'wait'] as const) {
    for (const box of boxes)
      if (box.kind === kind) parts.push(drawBox(box, x(box.rank), y.get(box.start)!, y.get(box.end)!));
  }
  for (const arrow of arrows) parts.push(drawArrow(arrow, x, y, start));
  for (const { rank, time, text, drop } of labels) {
    parts.push(overLines('label', `x="${x(rank) + EPOCH / 2 + 6}" y="${y.get(time)! + drop}"`, text));
  }
  return { width, height: bottom + BOTTOM, parts };
}

interface Label {
  readonly rank: number;
  readonly time: number;
  readonly text: string;
  /** Pixels from the row of its moment to its baseline: an arrow begins below its label, or comes in above it. */
  readonly drop: number;
}

/**
 * Right of its lane, where it begins: what a call is, how long it took, for whom it waits, what an arrow carries; or
 * that the rank never came. By time.
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
  for (const { kind, rank, start, label, alone, awaits } of boxes) {
    if (awaits !== undefined) labels.push({ rank, time: start, text: clip(awaits), drop: 4 });
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
  const open = unfinished ? ' stroke-dasharray="3 2" stroke-width="2"' : '';
  return (
    `<rect ${look(kind)}${open} x="${x - width / 2}" y="${from}" width="${width}" ` +
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
    return `<g>${about}${shaft(kind, path)}${head(kind, x1, high, 1, 0)}</g>`;
  }
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const tip = `${(x2 - 7 * dx).toFixed(1)} ${(y2 - 7 * dy).toFixed(1)}`;
  return `<g>${about}${shaft(kind, `M${x1} ${y1}L${tip}`)}${head(kind, x2, y2, dx, dy)}</g>`;
}

function shaft(kind: ArrowKind, path: string): string {
  const { dash } = KINDS[kind];
  const dashes = dash && ` stroke-dasharray="${dash}"`;
  return `<path ${look(`stroke-${kind}`, 'arrow')} stroke-width="1.6"${dashes} d="${path}"/>`;
}

/** A tip that points along (dx, dy). */
function head(kind: ArrowKind, x: number, y: number, dx: number, dy: number): string {
  const at = (back: number, aside: number): string =>
    `${(x - back * dx - aside * dy).toFixed(1)} ${(y - back * dy + aside * dx).toFixed(1)}`;
  return `<path ${look(`tip-${kind}`, 'head')} d="M${at(0, 0)}L${at(9, 4)}L${at(9, -4)}z"/>`;
}
