/**
 * Pictures of a recorded run: what is in them, where things stand, and what the command says. How a browser shows them:
 * test/browser.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openerOf } from '../../src/cli/viewer.ts';
import { absentFrom, type Choice, type Scene, sceneOf, windowsOf } from '../../src/trace/scene.ts';
import { drawPage, drawSvg } from '../../src/trace/sequence-picture.ts';
import { readTrace, type TraceSpan } from '../../src/trace/trace-reader.ts';
import { onesided, start } from '../launcher/command.ts';
import { example, writeExample, writeHang } from './scenes.ts';
import { elementsOf } from './xml.ts';

const trace = example();
const scene = (choice: Choice = {}): Scene => sceneOf(trace, choice);

const arrowsOf = ({ arrows }: Scene, kind: string): string[] =>
  arrows.filter((arrow) => arrow.kind === kind).map(({ from, to, label }) => `${from}→${to} ${label}`.trim());

/** Of the arrows of the example. */
const LEGEND: Readonly<Record<string, string>> = {
  put: 'put: bytes to memory of another rank',
  get: 'get: bytes from memory of another rank',
  update: 'accumulate and other atomic calls',
  signal: 'barrier, post, complete',
  lock: 'lock, from the rank that released it',
};

describe('a scene', () => {
  it('of a fence has the epoch that it ends, the calls, the waits, and all that passes between ranks', () => {
    const fence = scene();
    expect(fence).toMatchObject({
      title: 'Fence 2 of window grid <3 × 3>',
      ranks: [0, 1, 2],
      hidden: 0,
      start: 500,
      end: 30_000,
    });
    const kinds = fence.boxes.map(({ rank, kind }) => `${kind} ${rank}`).sort();
    expect(kinds).toEqual(['call', 'epoch', 'wait'].flatMap((kind) => [0, 1, 2].map((rank) => `${kind} ${rank}`)));
    expect(arrowsOf(fence, 'put').sort()).toEqual([
      '0→1 put 1: 64 B at 4',
      '1→2 put 2: 64 B at 4',
      '2→0 put 0: 64 B at 4',
    ]);
    // A get brings bytes from the other rank to the one that calls.
    expect(arrowsOf(fence, 'get').sort()).toEqual([
      '0→1 get 0: 64 B at 0',
      '1→2 get 1: 64 B at 0',
      '2→0 get 2: 64 B at 0',
    ]);
    expect(arrowsOf(fence, 'signal').length).toBe(6);
    expect(arrowsOf(fence, 'lock')).toEqual([]);
  });

  it('says for which rank each wait was', () => {
    const awaits = ({ boxes }: Scene): (string | undefined)[] =>
      boxes.filter(({ kind }) => kind === 'wait').map(({ rank, awaits }) => `${rank} ${awaits}`);
    // The last word that comes to a rank in the fence is from the one two places before.
    expect(awaits(scene())).toEqual(['0 waits for rank 1', '1 waits for rank 2', '2 waits for rank 0']);
    // From the rank that had the lock.
    expect(awaits(scene({ lock: 2 }))).toEqual(['1 waits for rank 0']);
    expect(drawSvg(scene({ lock: 2 }))).toContain('>waits for rank 0</text>');
    // Nobody has let go of it: what the rank itself has said.
    const alone = { ...trace, arrows: [] };
    expect(awaits(sceneOf(alone, { fence: 2 }))).toEqual([
      '0 waits for rank 2',
      '1 waits for rank 0',
      '2 waits for rank 1',
    ]);
    expect(awaits(sceneOf(alone, { lock: 2 }))).toEqual(['1 waits for rank 0']);
    // Of a window that does not have all ranks, its numbers are its own.
    const moved = (span: TraceSpan): TraceSpan => {
      const { windowId } = span.args;
      return windowId === undefined ? span : { ...span, args: { ...span.args, windowId: '7.1' } };
    };
    const other = { ...alone, spans: trace.spans.map(moved) };
    expect(awaits(sceneOf(other, { lock: 2 }))).toEqual(['1 waits for rank 0 of its window']);
  });

  it('makes one arrow of many calls in a row', () => {
    expect(arrowsOf(scene({ fence: 2 }), 'update').sort()).toEqual([
      '0→0 5 × accumulate 0: 320 B',
      '1→0 5 × accumulate 0: 320 B',
      '2→0 5 × accumulate 0: 320 B',
    ]);
  });

  it('of a lock has all who stand in line for it, and who passed it on', () => {
    const lock = scene({ lock: 2 });
    expect(lock.title).toBe("Lock 2 of window grid <3 × 3>: rank 1 holds rank 2's part");
    expect([lock.start, lock.end]).toEqual([40_200, 49_500]);
    expect(arrowsOf(lock, 'lock')).toEqual(['0→1']);
    expect(arrowsOf(lock, 'put')).toEqual(['0→2 put 2: 64 B at 8', '1→2 put 2: 64 B at 8']);
    expect(lock.boxes.filter(({ unfinished }) => unfinished).map(({ rank, label }) => [rank, label])).toEqual([
      [2, 'lock, unfinished'],
    ]);
    expect(lock.boxes.some(({ label }) => label.startsWith('fence'))).toBe(false);
  });

  it('of start, complete, post and wait has both sides', () => {
    const round = scene({ epoch: 1 });
    expect([round.ranks, round.start, round.end]).toEqual([[0, 1], 59_000, 69_000]);
    expect(arrowsOf(round, 'signal')).toEqual(['1→0']);
    expect(arrowsOf(round, 'put')).toEqual(['0→1 put 1: 64 B at 3']);
  });

  it('has the ranks that are asked for, and says how many it leaves out', () => {
    const two = scene({ fence: 2, ranks: [2, 0] });
    expect([two.ranks, two.hidden]).toEqual([[2, 0], 1]);
    expect(arrowsOf(two, 'put')).toEqual(['2→0 put 0: 64 B at 4']);
    expect(drawPage(two)).toContain('2 of 3 ranks');
  });

  it('of a fence to which a rank never came shows that rank, and what it did instead', () => {
    const hang = example(writeHang);
    const [window] = windowsOf(hang);
    expect(absentFrom(hang, window, 1)).toEqual([]);
    const second = sceneOf(hang, { fence: 2 });
    expect(second).toMatchObject({
      title: 'Fence 2 of window grid <3 × 3>: rank 1 never came',
      ranks: [0, 1, 2],
      absent: [{ rank: 1, instead: 'in lock of window grid <3 × 3>' }],
    });
    const svg = drawSvg(second);
    expect([...svg.matchAll(/<line class="(lane|absent)"/g)].map(([, line]) => line)).toEqual([
      'lane',
      'absent',
      'lane',
    ]);
    expect(svg).toMatch(/>never came<.*\n.*>in lock of window grid/);
    expect(sceneOf(hang, { fence: 2, ranks: [0, 2] })).toMatchObject({ ranks: [0, 2], absent: [] });
    expect(sceneOf(hang, { fence: 1 })).toMatchObject({ title: 'Fence 1 of window grid <3 × 3>', absent: [] });
  });

  it('is refused where the trace does not have it', () => {
    expect(windowsOf(trace)).toEqual([{ id: '4.1', name: 'grid <3 × 3>', fences: 2, locks: 2, epochs: 1 }]);
    expect(scene({ window: 'grid <3 × 3>' })).toEqual(scene({ window: '4.1' }));
    const refused = (choice: Choice, message: RegExp): void =>
      expect(() => scene(choice)).toThrow(
        expect.objectContaining({ code: 'ERR_ARG', message: expect.stringMatching(message) }),
      );
    refused({ window: 'mesh' }, /no window of the trace is named "mesh"; its windows are grid/);
    refused({ fence: 3 }, /has fences 1 to 2 in this trace, not 3/);
    refused({ lock: 0 }, /has locks 1 to 2/);
  });
});

describe('a picture', () => {
  const choices: [string, Choice][] = [
    ['a fence', { fence: 2 }],
    ['a lock', { lock: 2 }],
    ['a round', { epoch: 1 }],
  ];

  it.each(choices)('of %s has every box, arrow and label, each label clear of the others of its lane', (_, choice) => {
    const picture = scene(choice);
    const svg = drawSvg(picture);
    const count = (pattern: RegExp): number => [...svg.matchAll(pattern)].length;
    expect(count(/<rect [^>]*><title>/g)).toBe(picture.boxes.length);
    expect(count(/<g><title>/g)).toBe(picture.arrows.length);
    expect(count(/class="name"/g)).toBe(picture.ranks.length);
    const lanes = new Map<string, number[]>();
    for (const [, x, y] of svg.matchAll(/<text class="label" [^>]*x="([\d.]+)" y="([\d.]+)"/g))
      lanes.set(x, [...(lanes.get(x) ?? []), Number(y)]);
    for (const baselines of lanes.values()) {
      const sorted = [...baselines].sort((a, b) => a - b);
      for (let i = 1; i < sorted.length; i++) expect(sorted[i] - sorted[i - 1]).toBeGreaterThanOrEqual(14.9);
    }
  });

  it('has time run downwards: what happens later stands lower', () => {
    const picture = scene({ fence: 2 });
    const tops = [
      ...drawSvg(picture).matchAll(/<rect class="(call|wait|epoch)" [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*><title>/g),
    ].map(([, kind, x, y]) => ({ kind, x, y: Number(y) }));
    const calls = tops.filter(({ kind }) => kind === 'call');
    expect(calls.map(({ y }) => y)).toEqual([...calls.map(({ y }) => y)].sort((a, b) => a - b));
  });

  it.each(choices)('of %s that stands alone has a title, a legend, a unit, and needs no style sheet', (_, choice) => {
    const picture = scene(choice);
    const svg = drawSvg(picture);
    expect(elementsOf(svg).at(0)).toMatchObject({ name: 'svg', depth: 0 });
    expect(svg).toMatch(/^<svg [^>]*>\n<title>[^<]+<\/title>/);
    expect(svg).not.toContain('var(');
    expect(svg).toContain('>time, µs</text>');
    expect(svg).toMatch(/<rect class="back" fill="#ffffff" width="\d+" height="\d+"\/>/);
    for (const about of new Set(picture.arrows.map(({ kind }) => LEGEND[kind]))) expect(svg).toContain(`>${about}`);
    // A program that knows no style sheets fills with black, and draws no line.
    for (const { name, attributes } of elementsOf(svg)) {
      if (name === 'rect' || name === 'path' || name === 'text') expect(attributes).toMatch(/ fill="(#\w{6}|none)"/);
      if (name === 'line' || / fill="none"/.test(attributes)) expect(attributes).toMatch(/ stroke="#\w{6}"/);
    }
  });

  it('is XML, whatever is in names', () => {
    const odd = { ...scene(), title: 'a\u0000b\ud800c\u001b[1m<&"\ufffe' };
    expect(elementsOf(drawSvg(odd)).length).toBeGreaterThan(20);
    expect(drawSvg(odd)).toContain('<title>a\ufffdb\ufffdc\ufffd[1m&#60;&#38;&#34;\ufffd</title>');
    expect(drawPage(odd)).toContain('<title>a\ufffdb');
  });

  it('takes names as text, whatever is in them', () => {
    const page = drawPage(scene());
    expect(page).not.toContain('<3');
    expect(page).toContain('&#60;3 × 3&#62;');
    expect(page).toContain('grid.js &#38; others');
  });
});

describe('the command', () => {
  let folder: string;
  let file: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'onesided-picture-'));
    file = join(folder, 'trace.json');
    writeExample(file);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('lists windows, and draws', async () => {
    const page = join(folder, 'page.html');
    const [listed, drawn] = await Promise.all([
      onesided('trace', 'list', file),
      onesided('trace', 'draw', file, '--lock', '2', '--ranks', '0-1', '-o', page),
    ]);
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^grid <3 × 3> +2 +2 +1$/m) });
    expect(drawn).toMatchObject({
      code: 0,
      stdout: `${page}: Lock 2 of window grid <3 × 3>: rank 1 holds rank 2's part\n`,
    });
    expect(readFileSync(page, 'utf8')).toMatch(/^<!doctype html>/);
  });

  it('says which rank never came', async () => {
    const hang = join(folder, 'hang.json');
    writeHang(hang);
    const { stdout } = await onesided('trace', 'list', hang);
    expect(stdout).toMatch(/\nrank 1 never came to fence 2 of window grid <3 × 3>\n$/);
  });

  describe('with --open', () => {
    /** A folder of programs: what the system has, in place of PATH. */
    const programs = (name: string, script?: string): string => {
      const bin = join(folder, name);
      mkdirSync(bin);
      for (const opener of ['xdg-open', 'open'])
        if (script !== undefined) writeFileSync(join(bin, opener), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      return bin;
    };
    const draw = (PATH: string, picture: string) =>
      start(['trace', 'draw', file, '-o', picture, '--open'], { cwd: folder, env: { ...process.env, PATH } }).finished;

    it('gives the whole path to the opener of the system', async () => {
      const opened = join(folder, 'opened');
      const { code, stderr } = await draw(programs('good', `echo "$# $1" > ${opened}`), './-a b.svg');
      expect([code, stderr]).toEqual([0, '']);
      expect(readFileSync(opened, 'utf8')).toBe(`1 ${join(folder, '-a b.svg')}\n`);
      expect(readFileSync(join(folder, '-a b.svg'), 'utf8')).toMatch(/^<svg /);
    });

    it('says where the picture is if there is no opener, or it fails', async () => {
      const page = join(folder, 'left.html');
      const none = await draw(programs('empty'), 'left.html');
      expect(none).toMatchObject({ code: 1, stdout: expect.stringContaining('left.html: Fence 2') });
      expect(none.stderr).toMatch(/^onesided: the picture was not opened: there is no (xdg-)?open here; /);
      expect(none.stderr).toContain(`open it yourself: ${page}\n`);
      expect(readFileSync(page, 'utf8')).toMatch(/^<!doctype html>/);
      const bad = await draw(programs('bad', 'exit 4'), 'left.html');
      expect(bad).toMatchObject({ code: 1, stderr: expect.stringMatching(/open ended with 4; .*left\.html\n$/) });
    });

    it('knows the openers of other systems', () => {
      expect(openerOf('darwin', '/a b.svg')).toMatchObject({ name: 'open', args: ['/a b.svg'] });
      expect(openerOf('win32', 'C:\\a b.svg').args.at(-1)).toBe('"start "" "C:\\a b.svg""');
      expect(openerOf('freebsd', '/a').name).toBe('xdg-open');
    });
  });

  it('reads nothing that the library has not written', () => {
    const otherData = { onesided: '1', program: 'p', ranks: 2 };
    const span = { ph: 'X', cat: 'call', name: 'fence', pid: 1, tid: 1, ts: 0, dur: 1, args: {} };
    const made = join(folder, 'made.json');
    const refused = (trace: object): void => {
      writeFileSync(made, JSON.stringify(trace));
      expect(() => readTrace(made), JSON.stringify(trace)).toThrow(
        expect.objectContaining({ code: 'ERR_ARG', message: expect.stringContaining('is not a trace of onesided: ') }),
      );
    };
    for (const ranks of [1e9, -1, 0.5, '2']) refused({ otherData: { ...otherData, ranks }, traceEvents: [] });
    for (const event of [
      null,
      7,
      { ...span, args: null },
      { ...span, tid: 3 },
      { ...span, ts: 1e300 },
      { ...span, name: 1 },
    ])
      refused({ otherData, traceEvents: [span, event] });
  });

  it('says what is wrong', async () => {
    const other = join(folder, 'other.json');
    writeFileSync(other, '{"traceEvents":[]}');
    const cases: [string[], string][] = [
      [[], 'give list or draw'],
      [['show', file], 'the trace command must be list or draw, not "show"'],
      [['draw'], 'give the file of a trace'],
      [['draw', join(folder, 'none')], 'cannot be read (ENOENT)'],
      [['list', other], 'is not a trace of onesided'],
      [['draw', file, '--fence', '1', '--lock', '1'], '--fence or --lock, not both'],
      [['list', file, '--open'], '--open is an option of draw, not of list'],
      [['draw', file, '--fence', '0'], '--fence must be an integer of at least 1'],
      [['draw', file, '--ranks', '0-99'], 'the run had ranks 0 to 2, but no rank 3'],
      [['draw', file, '--ranks', '1,0-1'], '--ranks must list ranks, each once'],
      [['draw', file, '--ranks', '5'], 'the run had ranks 0 to 2, but no rank 5'],
      [['draw', file, '--epoch', '2'], 'has epochs of start and post 1 to 1'],
      [['draw', file, '-o', join(folder, 'none/x')], 'cannot write the picture: ENOENT'],
      [['draw', file, '-o', 'fence.png'], 'or, if its name ends in .svg, an SVG; "fence.png" is neither'],
    ];
    for (const [args, message] of cases) {
      const { code, stderr } = await onesided('trace', ...args);
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });
});
