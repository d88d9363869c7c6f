/**
 * What all pictures of traces share: colours, texts, the legend, and the frame of a picture that stands alone. Sizes
 * and round numbers those of reports take from here, too.
 *
 * Each element has its colours and sizes as attributes of its own, since many programs that show or convert an SVG know
 * no variables of style sheets, or no style sheets at all. The style sheet in a picture says only what is different in
 * the dark: a program that does not read it shows the picture by day. For the same reason a text that stands over lines
 * is drawn twice, first broad in the colour of the background: `paint-order` is not known everywhere.
 *
 * Text cannot be measured here: widths are those of a broad font.
 */

/** By day, and in the dark. */
const COLOURS = {
  back: ['#ffffff', '#14181d'],
  ink: ['#1b1f24', '#e8edf2'],
  soft: ['#5b6570', '#a2aeba'],
  line: ['#c9d1d9', '#3a444f'],
  'call-fill': ['#d5e3f5', '#24405f'],
  'call-edge': ['#4a78b0', '#7fb0e8'],
  'wait-fill': ['#f2c14e', '#8f6a12'],
  'wait-edge': ['#8a6100', '#f5cf6b'],
  'epoch-fill': ['#eef2f6', '#1e252d'],
  'epoch-run': ['#dce3ea', '#2c3640'],
  'call-run': ['#8fb3e0', '#2f6199'],
  put: ['#0b5cad', '#6fb3ff'],
  get: ['#0b7a4b', '#5fd29b'],
  update: ['#8a3ab9', '#cf9bf2'],
  message: ['#5b6570', '#a2aeba'],
  gather: ['#0f766e', '#5eead4'],
  signal: ['#b3261e', '#ff8a80'],
  lock: ['#a04b00', '#ffb066'],
  notification: ['#a3116f', '#ff8fd0'],
} as const satisfies Record<string, readonly [string, string]>;

export type Colour = keyof typeof COLOURS;

interface Look {
  readonly fill?: Colour | 'none';
  readonly stroke?: Colour;
  /** Other attributes, the same by day and in the dark. */
  readonly more?: string;
}

const FONT = 'font-family="system-ui, Helvetica, Arial, sans-serif"';
const HALO = 'stroke-width="3" stroke-linejoin="round"';

const LOOKS = {
  back: { fill: 'back' },
  lane: { stroke: 'line', more: 'stroke-width="1.5"' },
  absent: { stroke: 'signal', more: 'stroke-width="1.5" stroke-dasharray="6 5"' },
  grid: { stroke: 'line', more: 'stroke-width="0.5" stroke-dasharray="1 4"' },
  axis: { stroke: 'soft' },
  epoch: { fill: 'epoch-fill', stroke: 'line' },
  call: { fill: 'call-fill', stroke: 'call-edge' },
  wait: { fill: 'wait-fill', stroke: 'wait-edge' },
  title: { fill: 'ink', more: 'font-size="15" font-weight="bold"' },
  about: { fill: 'soft', more: 'font-size="12"' },
  key: { fill: 'ink', more: 'font-size="12"' },
  name: { fill: 'ink', more: 'font-size="13" font-weight="bold" text-anchor="middle"' },
  tick: { fill: 'soft', more: 'font-size="11" text-anchor="end"' },
  middle: { fill: 'soft', more: 'font-size="11" text-anchor="middle"' },
  label: { fill: 'ink', more: 'font-size="11"' },
  halo: { fill: 'back', stroke: 'back', more: `font-size="11" ${HALO}` },
  'run-epoch': { fill: 'none', stroke: 'epoch-run' },
  'run-call': { fill: 'none', stroke: 'call-run' },
  'run-wait': { fill: 'none', stroke: 'wait-fill' },
  'run-put': { fill: 'none', stroke: 'put' },
  'run-get': { fill: 'none', stroke: 'get' },
  'run-update': { fill: 'none', stroke: 'update' },
  'run-absent': { fill: 'none', stroke: 'signal' },
  chosen: { fill: 'none', stroke: 'lock', more: 'stroke-width="2"' },
  'stroke-put': { fill: 'none', stroke: 'put' },
  'stroke-get': { fill: 'none', stroke: 'get' },
  'stroke-update': { fill: 'none', stroke: 'update' },
  'stroke-message': { fill: 'none', stroke: 'message' },
  'stroke-gather': { fill: 'none', stroke: 'gather' },
  'stroke-signal': { fill: 'none', stroke: 'signal' },
  'stroke-lock': { fill: 'none', stroke: 'lock' },
  'stroke-notification': { fill: 'none', stroke: 'notification' },
  'tip-put': { fill: 'put' },
  'tip-get': { fill: 'get' },
  'tip-update': { fill: 'update' },
  'tip-message': { fill: 'message' },
  'tip-gather': { fill: 'gather' },
  'tip-signal': { fill: 'signal' },
  'tip-lock': { fill: 'lock' },
  'tip-notification': { fill: 'notification' },
} as const satisfies Record<string, Look>;

export type LookName = keyof typeof LOOKS;

const colourOf = (colour: Colour | 'none', dark: 0 | 1): string => (colour === 'none' ? 'none' : COLOURS[colour][dark]);

/** The attributes of an element that looks so. @param also another class */
export function look(name: LookName, also = ''): string {
  const { fill, stroke, more }: Look = LOOKS[name];
  const parts = [`class="${name}${also && ` ${also}`}"`];
  if (fill !== undefined) parts.push(`fill="${colourOf(fill, 0)}"`);
  if (stroke !== undefined) parts.push(`stroke="${colourOf(stroke, 0)}"`);
  if (more !== undefined) parts.push(more);
  return parts.join(' ');
}

/** The style sheet: what is different in the dark. */
const DARK_RULES = Object.entries<Look>(LOOKS)
  .map(([name, { fill, stroke }]) => {
    const of = (property: string, colour: Colour | 'none' | undefined): string =>
      colour === undefined || colour === 'none' ? '' : ` ${property}: ${colourOf(colour, 1)};`;
    return `.${name} {${of('fill', fill)}${of('stroke', stroke)} }`;
  })
  .join('\n');
const DARK = `@media (prefers-color-scheme: dark) {\n${DARK_RULES}\n}`;

const PAGE_STYLE = `:root { color-scheme: light dark; }
body { margin: 16px; background: ${COLOURS.back[0]}; color: ${COLOURS.ink[0]}; font: 14px/1.4 system-ui, sans-serif; }
h1 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 8px; color: ${COLOURS.soft[0]}; max-width: 70em; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 0 0 10px; padding: 0; list-style: none; \
font-size: 13px; }
.legend li { display: flex; align-items: center; gap: 7px; }
.scene { overflow-x: auto; }
svg { display: block; }
@media (prefers-color-scheme: dark) {
body { background: ${COLOURS.back[1]}; color: ${COLOURS.ink[1]}; }
p { color: ${COLOURS.soft[1]}; }
}`;

/** A sign of the legend, and what it means. */
export interface Key {
  /** 14 pixels high. */
  readonly sign: string;
  readonly width: number;
  readonly about: string;
}

/** A picture without its frame. */
export interface Drawing {
  readonly title: string;
  /** Below the title: what was run, how long it took. */
  readonly about: string;
  /** How it is read, for the page: sentences. */
  readonly reading: string;
  readonly keys: readonly Key[];
  readonly width: number;
  readonly height: number;
  readonly parts: readonly string[];
}

/** A complete HTML document. */
export function pageOf({ title, about, reading, keys, width, height, parts }: Drawing): string {
  const items = keys.map(
    ({ sign, width: broad, about }) =>
      `<li><svg width="${broad}" height="14" aria-hidden="true">${sign}</svg>${about}</li>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${markup(title)}</title>
<style>
${PAGE_STYLE}
${DARK}
</style>
</head>
<body>
<h1>${markup(title)}</h1>
<p>${markup(about)}. ${reading}</p>
<ul class="legend">${items.join('')}</ul>
<div class="scene"><svg role="img" aria-label="${markup(title)}" ${sizeOf(width, height)} ${FONT}>
${parts.join('\n')}
</svg></div>
</body>
</html>
`;
}

const MARGIN = 14;
const TITLE_LINE = 20;
const KEY_LINE = 19;
/** Between a sign and its words, and between two keys. */
const SIGN_GAP = 6;
const KEY_GAP = 18;

/** The picture alone, with its title and legend. */
export function svgOf({ title, about, keys, width: chart, height: below, parts }: Drawing): string {
  const longest = Math.max(...keys.map(keyWidth)) + 2 * MARGIN;
  const width = Math.max(chart, Math.ceil(longest), 480);
  const head: string[] = [];
  let y = MARGIN + 8;
  const text = (words: string, kind: 'title' | 'about', size: number): void => {
    for (const line of wrap(words, Math.floor((width - 2 * MARGIN) / size))) {
      head.push(`<text ${look(kind)} x="${MARGIN}" y="${y}">${markup(line)}</text>`);
      y += TITLE_LINE;
    }
  };
  text(title, 'title', 9.7);
  text(about, 'about', 7.4);
  let x = MARGIN;
  for (const key of keys) {
    if (x > MARGIN && x + keyWidth(key) > width - MARGIN) {
      x = MARGIN;
      y += KEY_LINE;
    }
    head.push(
      `<g transform="translate(${x} ${y - 11})">${key.sign}` +
        `<text ${look('key')} x="${key.width + SIGN_GAP}" y="11">${markup(key.about)}</text></g>`,
    );
    x += Math.ceil(keyWidth(key)) + KEY_GAP;
  }
  const top = y + 6;
  const height = Math.ceil(top + below);
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" ${sizeOf(width, height)} ${FONT}>
<title>${markup(title)}</title>
<style>
${DARK}
</style>
<rect ${look('back')} width="${width}" height="${height}"/>
${head.join('\n')}
<g transform="translate(0 ${top})">
${parts.join('\n')}
</g>
</svg>
`;
}

/** Attributes of a picture of that size, in pixels. */
export function sizeOf(width: number, height: number): string {
  return `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
}

/** The next of 1, 2, 5, 10, … that is not less: a step of an axis. */
export function roundUp(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) ?? 10);
}

function keyWidth({ width, about }: Key): number {
  return width + SIGN_GAP + 7.2 * about.length;
}

function wrap(text: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word.length > most ? `${word.slice(0, most - 1)}…` : word);
  }
  return lines;
}

/** A text that stands over lines. @param kind its look */
export function overLines(kind: LookName, at: string, text: string): string {
  const words = markup(text);
  return `<text ${look('halo')} aria-hidden="true" ${at}>${words}</text><text ${look(kind)} ${at}>${words}</text>`;
}

/** As the text of an element or attribute, of HTML and of XML: what XML cannot have is a replacement character. */
export function markup(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}
