/**
 * Races as a picture: for each one a lane for each of its two ranks, downwards in the order of the two lines, the edge
 * that is between them if there is one, and the one that is missing. Time is not to scale, and not known between ranks.
 */
import { type Drawing, type Key, look, markup, overLines, svgOf } from '../trace/svg.ts';
import { EDGE_TEXTS, memoryText, type Race, type RaceReport, type RaceSide, shortSite } from './race-findings.ts';

/** Pixels. */
const LEFT = 40;
const LANE = 400;
const LINE = 15;
const ROW = 34;
const BOX = 14;
/** From a heading to its lanes, and below them. */
const HEAD = 34;
const FOOT = 30;
/** Characters of a label beside a lane. */
const LABEL = 58;

const WORDS = 130;
const TITLE = 110;

const DASHES = 'stroke-dasharray="7 4" stroke-width="2"';
const DOTS = 'stroke-dasharray="2 3" stroke-width="2"';

/** More than these are not drawn: the report has them all. */
const MOST = 50;

export function drawRaces({ races, ranks }: RaceReport): string {
  const parts: string[] = [];
  let y = 24;
  for (const race of races.slice(0, MOST)) y = drawRace(race, parts, y) + FOOT;
  const title = races.length === 0 ? 'No race' : races.length === 1 ? 'One race' : `${races.length} races`;
  const more = races.length > MOST ? `; the first ${MOST} are drawn` : '';
  const drawing: Drawing = {
    title,
    about: `between ${ranks} ranks${more}`,
    reading: '',
    keys: KEYS,
    width: LEFT + 2 * LANE,
    height: y,
    parts,
  };
  return svgOf(drawing);
}

const KEYS: readonly Key[] = [
  { sign: `<rect ${look('call')} x="2" y="1" width="14" height="12"/>`, width: 18, about: 'one of the two lines' },
  {
    sign: `<path ${look('stroke-put')} ${DOTS} d="M1 7H32"/>`,
    width: 34,
    about: 'an operation that is not complete',
  },
  {
    sign: `<path ${look('stroke-signal')} d="M1 7H32"/><path ${look('tip-signal')} d="M39 7l-8-4v8z"/>`,
    width: 40,
    about: 'what the one rank has heard from the other',
  },
  {
    sign: `<path ${look('stroke-lock')} ${DASHES} d="M1 7H32"/>` + `<path ${look('tip-lock')} d="M39 7l-8-4v8z"/>`,
    width: 40,
    about: 'what is missing',
  },
];

/** Where a race is drawn. */
interface Place {
  readonly a: number;
  readonly b: number;
  /** Rows: what opened the epochs, the first line, where the other rank hears of it, the second line; below all. */
  readonly head: number;
  readonly opened: number;
  readonly first: number;
  readonly met: number;
  readonly second: number;
  readonly end: number;
}

function placeOf({ accesses: [a, b], heard }: Race, head: number): Place {
  const [x, opened] = [LEFT + 30, head + ROW];
  const first = opened + (a.epoch === undefined && b.epoch === undefined ? 0 : ROW);
  const met = first + (heard === undefined ? 0 : ROW + LINE);
  const second = met + ROW + LINE;
  return { a: x, b: a.rank === b.rank ? x : x + LANE, head, opened, first, met, second, end: second + 2 * LINE };
}

/** @returns where it ends */
function drawRace(race: Race, parts: string[], top: number): number {
  const { where, accesses, heard, missing, mend, count } = race;
  const [a, b] = accesses;
  const title = overflow(`${memoryText(where)}${count > 1 ? `, ${count} times` : ''}`, TITLE);
  parts.push(`<text ${look('key')} font-weight="bold" x="${LEFT - 20}" y="${top}">${markup(title)}</text>`);
  const place = placeOf(race, top + HEAD);
  const isLocal = place.a === place.b;
  const sides = [
    { side: a, x: place.a, y: place.first },
    { side: b, x: place.b, y: place.second },
  ];
  for (const { side, x } of isLocal ? sides.slice(1) : sides) {
    parts.push(`<line ${look('lane')} x1="${x}" x2="${x}" y1="${place.head + 6}" y2="${place.end}"/>`);
    parts.push(`<text ${look('name')} x="${x}" y="${place.head}">rank ${side.rank}</text>`);
    const epoch = side.epoch ?? (isLocal ? a.epoch : undefined);
    if (epoch !== undefined)
      parts.push(labelled(x, place.opened, `${epoch.kind} at ${shortSite(epoch.opened)}`, 'epoch'));
  }
  for (const { side, x, y } of sides) {
    if (side.target !== undefined) parts.push(`<path ${strand(side)} d="M${x} ${y}V${place.end}"/>`);
    parts.push(labelled(x, y, lineOf(side), 'call'));
  }
  parts.push(...edgesOf(place, heard));
  for (const [i, text] of [`missing: ${missing}`, `to mend it: ${mend}`].entries())
    parts.push(overLines('label', `x="${LEFT - 20}" y="${place.end + LINE * (i + 1)}"`, overflow(text, WORDS)));
  return place.end + 3 * LINE;
}

/** What is there, and what is missing: one way, or where nothing is there in either of the two. */
function edgesOf({ a, b, first, met, second }: Place, heard: Race['heard']): string[] {
  if (a === b) {
    const bow = `M${a - 8} ${first + BOX / 2}C${a - 34} ${first} ${a - 34} ${second} ${a - 10} ${second}`;
    return [`<path ${look('stroke-lock')} ${DASHES} d="${bow}"/>`, tip('lock', a - 8, second, 0)];
  }
  if (heard === undefined) {
    const back = tip('lock', a + 8, first + BOX / 2, 180 + slope(a, first, b, second));
    return [arrow('lock', DASHES, a + 14, first + BOX / 2 + 1, b, second), back];
  }
  return [
    arrow('signal', '', a, first + 2 * LINE, b, met),
    overLines('label', `x="${a + 60}" y="${first + 2 * LINE - 5}"`, EDGE_TEXTS[heard]),
    arrow('lock', DASHES, a, first + 3 * LINE, b, second),
  ];
}

const strand = ({ does, call }: RaceSide): string =>
  `${look(does === 'updates' ? 'stroke-update' : /get/i.test(call) ? 'stroke-get' : 'stroke-put')} ${DOTS}`;

function lineOf({ call, target, does, argument, site }: RaceSide): string {
  const to = target === undefined ? '' : ` to rank ${target}`;
  return `${call}${to} ${argument === undefined ? does : `${does} its ${argument}`} at ${shortSite(site)}`;
}

function labelled(x: number, y: number, text: string, kind: 'call' | 'epoch'): string {
  const box = `<rect ${look(kind)} x="${x - BOX / 2}" y="${y - BOX / 2}" width="${BOX}" height="${BOX}"/>`;
  return box + overLines('label', `x="${x + BOX}" y="${y + 4}"`, overflow(text, LABEL));
}

function arrow(kind: 'signal' | 'lock', more: string, x1: number, y1: number, x2: number, y2: number): string {
  const shaft = `<path ${look(`stroke-${kind}`)} ${more} d="M${x1} ${y1}L${x2 - 12} ${y2}"/>`;
  return shaft + tip(kind, x2 - 8, y2, slope(x1, y1, x2, y2));
}

const slope = (x1: number, y1: number, x2: number, y2: number): number =>
  (180 * Math.atan2(y2 - y1, x2 - x1)) / Math.PI;

function tip(kind: 'signal' | 'lock', x: number, y: number, degrees: number): string {
  const turned = `translate(${x} ${y}) rotate(${degrees.toFixed(1)})`;
  return `<path ${look(`tip-${kind}`)} transform="${turned}" d="M0 0l-8-4v8z"/>`;
}

/** At most so many characters: of a long path, its end tells more. */
function overflow(text: string, most: number): string {
  return text.length <= most
    ? text
    : `${text.slice(0, Math.floor(most / 3))}…${text.slice(text.length - Math.ceil((2 * most) / 3))}`;
}
