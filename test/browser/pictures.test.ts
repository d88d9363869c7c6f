/**
 * The pictures of a recorded run in a real browser: Chromium draws the pages without a window, and a script in them
 * measures what it has drawn. Nothing is written over something else, everything is within the picture, and everything
 * can be told from the background, by day and by night.
 *
 * The pictures that it has drawn are in build/browser afterwards, for human eyes.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sceneOf } from '../../src/trace/scene.ts';
import { drawPage, drawSvg } from '../../src/trace/sequence-picture.ts';
import { example } from '../trace/scenes.ts';

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];
const browser = BROWSERS.find((name) => spawnSync(name, ['--version']).error === undefined);
if (browser === undefined)
  throw new Error(`none of ${BROWSERS.join(', ')} is installed (Debian: apt-get install chromium)`);

const drawn = fileURLToPath(new URL('../../build/browser', import.meta.url));

/** What a page measures about itself. */
interface Report {
  readonly fonts: number;
  readonly overlaps: string[];
  readonly outside: string[];
  readonly arrows: number;
  readonly astray: string[];
  readonly contrasts: Record<string, number>;
  readonly background: string;
  readonly scrolls: boolean;
}

const MEASURE = `<pre id="report"></pre><script>
const svg = document.querySelector('.scene svg');
const box = (e) => e.getBoundingClientRect();
const labels = [...svg.querySelectorAll('text:not(.halo)')];
const meet = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 2 && b.top < a.bottom - 2;
const overlaps = [];
labels.forEach((a, i) => labels.slice(i + 1).forEach((b) => {
  if (meet(box(a), box(b))) overlaps.push(a.textContent + ' / ' + b.textContent);
}));
const all = box(svg);
const outside = [...svg.querySelectorAll('text, rect, path')].filter((e) => {
  const b = box(e);
  return b.left < all.left || b.right > all.right || b.top < all.top || b.bottom > all.bottom;
}).map((e) => e.outerHTML);
const lanes = [...svg.querySelectorAll('.lane, .absent')].map((e) => Number(e.getAttribute('x1')));
const tips = [...svg.querySelectorAll('.head')];
const xOf = (e) => Number(e.getAttribute('d').slice(1).split(' ')[0]);
const astray = tips.filter((e) => !lanes.some((x) => Math.abs(x - xOf(e)) < 0.2)).map((e) => e.getAttribute('d'));
const numbers = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
const linear = (v) => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
const luminance = (c) => {
  const [r, g, b] = numbers(c).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const background = getComputedStyle(document.body).backgroundColor;
const against = (c) => {
  const [x, y] = [luminance(c), luminance(background)].sort((a, b) => b - a);
  return Math.round(100 * (x + 0.05) / (y + 0.05)) / 100;
};
const contrastOf = (e, property) => against(getComputedStyle(e)[property]);
const contrasts = {
  text: contrastOf(labels.at(-1), 'fill'),
  tick: contrastOf(svg.querySelector('.tick'), 'fill'),
  paragraph: contrastOf(document.querySelector('p'), 'color'),
};
for (const kind of ['call', 'wait']) {
  for (const e of svg.querySelectorAll('.' + kind)) contrasts[kind] = contrastOf(e, 'stroke');
}
for (const e of svg.querySelectorAll('g')) {
  const kind = e.querySelector('.arrow').classList[0];
  contrasts[kind] = contrastOf(e.querySelector('.arrow'), 'stroke');
  contrasts[kind + ' tip'] = contrastOf(e.querySelector('.head'), 'fill');
}
const fonts = labels.filter((e) => box(e).width > 0).length;
const scrolls = document.documentElement.scrollWidth > innerWidth;
const found = { fonts, overlaps, outside, arrows: tips.length, astray, contrasts, background, scrolls };
document.getElementById('report').textContent = JSON.stringify(found);
</script>`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'onesided-browser-'));
  mkdirSync(drawn, { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** @param scheme 0: dark; 1: light */
function chromium(scheme: 0 | 1, ...args: string[]): SpawnSyncReturns<string> {
  const common = [
    '--headless=new',
    // As root, and in containers, Chromium's own sandbox cannot be had; the pages are our own.
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--hide-scrollbars',
    `--user-data-dir=${join(folder, 'profile')}`,
    `--blink-settings=preferredColorScheme=${scheme}`,
    '--window-size=900,1100',
  ];
  return spawnSync(browser!, [...common, ...args], { encoding: 'utf8', timeout: 100_000 });
}

function measure(name: string, page: string, scheme: 0 | 1): Report {
  const file = join(folder, `${name}.html`);
  writeFileSync(file, page.replace('</body>', `${MEASURE}</body>`));
  const { stdout, stderr } = chromium(scheme, '--dump-dom', pathToFileURL(file).href);
  const report = /<pre id="report">(\{.*?\})<\/pre>/s.exec(stdout)?.[1];
  if (report === undefined) throw new Error(`no report from ${browser}: ${stderr}`);
  return JSON.parse(report.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')) as Report;
}

/** @returns the picture's bytes, and how large it is */
function screenshot(name: string, content: string, scheme: 0 | 1): { bytes: Buffer; width: number; height: number } {
  const page = join(folder, name);
  writeFileSync(page, content);
  const file = join(drawn, `${name}-${scheme === 0 ? 'dark' : 'light'}.png`);
  rmSync(file, { force: true });
  chromium(scheme, `--screenshot=${file}`, pathToFileURL(page).href);
  const bytes = readFileSync(file);
  expect(bytes.subarray(1, 4).toString()).toBe('PNG');
  return { bytes, width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

const trace = example();
const scenes = [
  ['a fence', 'fence', sceneOf(trace, { fence: 2 })],
  ['a lock', 'lock', sceneOf(trace, { lock: 2 })],
  ['start, complete, post, wait', 'round', sceneOf(trace, { epoch: 1 })],
] as const;

describe.each(scenes)('the picture of %s', (_, name, scene) => {
  it.each([
    ['by day', 1, 'rgb(255, 255, 255)'],
    ['by night', 0, 'rgb(20, 24, 29)'],
  ] as const)('%s covers nothing with something else, and can be read', (_, scheme, background) => {
    const report = measure(`${name}-${scheme}`, drawPage(scene), scheme);
    expect(report).toMatchObject({ overlaps: [], outside: [], astray: [], scrolls: false, background });
    expect(report.fonts).toBeGreaterThan(scene.ranks.length + scene.boxes.filter(({ kind }) => kind !== 'wait').length);
    expect(report.arrows).toBe(scene.arrows.length);
    for (const [what, contrast] of Object.entries(report.contrasts)) {
      // WCAG 2.2: 4.5 for text, 3 for graphics.
      expect(contrast, what).toBeGreaterThanOrEqual(/text|tick|paragraph/.test(what) ? 4.5 : 3);
    }
  });
});

it('is drawn: light and dark, as a page and alone', () => {
  const [[, name, scene]] = scenes;
  const pictures = [
    screenshot(`${name}.html`, drawPage(scene), 1),
    screenshot(`${name}.html`, drawPage(scene), 0),
    screenshot(`${name}.svg`, drawSvg(scene), 1),
    screenshot(`${name}.svg`, drawSvg(scene), 0),
  ];
  for (const { bytes, width, height } of pictures) {
    expect([width, height]).toEqual([900, 1100]);
    // An empty page of this size takes some 5 KB.
    expect(bytes.length).toBeGreaterThan(20_000);
  }
  expect(pictures[0].bytes.equals(pictures[1].bytes)).toBe(false);
  expect(pictures[2].bytes.equals(pictures[3].bytes)).toBe(false);
});
