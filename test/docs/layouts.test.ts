/** docs/guide/layouts.md: its pictures and its numbers are those of the traces that it is about. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PICTURES, type Pictured, type PictureWay, picture, ROUND } from '../../bench/figures/layout-pictures.ts';
import { type Scene, sceneOf } from '../../src/trace/scene.ts';
import { drawSvg } from '../../src/trace/sequence-picture.ts';
import { readTrace } from '../../src/trace/trace-reader.ts';

const GUIDE = new URL('../../docs/guide/', import.meta.url);
const page = readFileSync(new URL('layouts.md', GUIDE), 'utf8');
const found = new Map<PictureWay, { readonly times: Pictured; readonly scene: Scene }>();
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'onesided-layouts-'));
  for (const way of PICTURES) {
    const file = join(folder, `${way}.json`);
    const times = await picture(way, file);
    found.set(way, { times, scene: sceneOf(readTrace(file), { epoch: ROUND }) });
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What passes from a rank to the other one, as the picture labels it. */
const labels = (way: PictureWay, from: number): string[] =>
  found.get(way)!.scene.arrows.flatMap((arrow) => (arrow.from === from && arrow.label !== '' ? [arrow.label] : []));

describe.each(PICTURES)('layouts.md, %s', (way) => {
  it('has the picture of its trace', () => {
    const name = `layouts-${way}.svg`;
    expect(page).toContain(`(${name})`);
    // `npm run figures:layouts` draws it again.
    expect(readFileSync(new URL(name, GUIDE), 'utf8')).toBe(drawSvg(found.get(way)!.scene));
  });

  it('has its times', () => {
    const { microseconds, origin, target } = found.get(way)!.times;
    const row = page.split('\n').find((line) => line.startsWith(`| \`${way}\``))!;
    const numbers = row.split('|').slice(2, 5).map(Number);
    expect(numbers).toEqual([microseconds, origin, target].map((time) => Number(time.toFixed(1))));
  });
});

it('layouts.md says what passes between the ranks', () => {
  expect(labels('multi-write', 0)).toContain('put 1: 16384 B, 64 requests');
  expect([labels('pack', 0), labels('pack', 1)]).toEqual([['16488 B'], ['0 B', '8 B']]);
  for (const way of ['sgrs', 'host-assisted'] as const) {
    expect(labels(way, 0)).toEqual(['56 B', 'gathered: 12800 B', 'gathered: 3584 B']);
    expect(labels(way, 1)).toEqual(['0 B', '16 B']);
  }
});
