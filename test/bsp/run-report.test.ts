/** `onesided run --bsp-report`: what it says of supersteps, on each kind of ranks, and however the job ends. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BspReport } from 'onesided/bsp/model';
import { describe, expect, test, vi } from 'vitest';
import { recordInMemory } from '../../src/trace/recorder.ts';
import { computationsOf, STEP_FIELDS, scopeOf } from '../../src/trace/supersteps.ts';
import { Kind } from '../../src/trace/trace-ring.ts';
import { onesided } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const STEPS = fileURLToPath(new URL('../../build/programs/test/ranks/bsp-steps.js', import.meta.url));
const SIZE = 3;

// Against hanging only.
vi.setConfig({ testTimeout: 120_000 });

const folder = temporaryFolder('bsp-report');

interface Written {
  readonly program: string;
  readonly computations: readonly (BspReport & { readonly id: string; readonly delivery: string })[];
}

const run = (kind: string, ...args: string[]) =>
  onesided('run', '-n', String(SIZE), '--ranks', kind, '--timeout', '100', ...args);
const read = (name: string): Written => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as Written;

describe.each(RANK_KINDS)('ranks that are %s', (kind) => {
  test('are reported superstep by superstep, and predicted, without a change of the program', async () => {
    const { code, stdout, stderr } = await run(kind, `--bsp-report=${join(folder, kind)}`, STEPS);
    expect(code, stdout + stderr).toBe(0);
    expect(stderr).toMatch(/BSP computation of 3 processes, shared delivery: 5 supersteps/);
    expect(stderr).toMatch(/µs predicted \(.* %; half of .* by g .* µs a word, o .*, l .* µs/);
    expect(stderr).toMatch(/superstep +work +comm +sync +measured +predicted +error +h +messages +slowest/);
    const { program, computations } = read(kind);
    expect([program, computations.length]).toEqual([STEPS, 1]);
    const [{ processes, supersteps, machine, open }] = computations;
    expect([processes, open]).toEqual([SIZE, undefined]);
    // The last one is that of `end`. The getters receive 100 words each, and process 0 sends them.
    const relations = supersteps.map(({ superstep, h, out, in: into }) => [superstep, h, out, into]);
    expect(relations).toEqual([
      [0, 0, 0, 0],
      [1, 300, 300, 300],
      [2, 200, 200, 100],
      [3, 20, 10, 20],
      [4, 0, 0, 0],
    ]);
    expect(supersteps.map(({ messages }) => messages)).toEqual([0, 1, 2, 2, 0]);
    for (const { work, communication, sync, measured, predicted, h, messages, slowest } of supersteps) {
      expect(work + communication + sync).toBeCloseTo(measured, 6);
      for (const part of [work, communication, sync]) expect(part).toBeGreaterThanOrEqual(0);
      expect(predicted).toBeCloseTo(work + h * machine!.g + messages * machine!.o! + machine!.l, 6);
      expect([0, 1, 2]).toContain(slowest);
    }
    const svg = readFileSync(join(folder, `${kind}.svg`), 'utf8');
    expect(svg.match(/<g><title>/g)).toHaveLength(supersteps.length);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  test('that fail: what there is, and where each process was', async () => {
    const { code, stderr } = await run(kind, `--bsp-report=${join(folder, `${kind}-die`)}`, STEPS, 'die');
    expect(code).toBe(3);
    expect(stderr).toMatch(/: 2 supersteps/);
    expect(stderr).toMatch(/superstep 2 did not end: processes 0, 2 had called sync, process 1 had not/);
    const [{ supersteps, open }] = read(`${kind}-die`).computations;
    expect(supersteps.map(({ h }) => h)).toEqual([0, 300]);
    expect(open).toEqual({ superstep: 2, inSync: [0, 2], computing: [1] });
  });
});

test('a machine from a file, or none; several computations', async () => {
  const machine = { s: 10, p: 3, l: 5000, g: 20 };
  writeFileSync(join(folder, 'machine.json'), JSON.stringify({ machine }));
  const by = ['--bsp-machine', join(folder, 'machine.json'), `--bsp-report=${join(folder, 'by.svg')}`];
  expect((await run('threads', ...by, STEPS, 'parts')).code).toBe(0);
  const { computations } = read('by');
  expect(computations.map(({ processes, supersteps }) => [processes, supersteps.length]).sort()).toEqual([
    [1, 4],
    [2, 4],
    [3, 5],
  ]);
  const whole = computations.find(({ processes }) => processes === SIZE)!;
  expect(whole.machine).toEqual(machine);
  for (const { work, h, predicted } of whole.supersteps) expect(predicted).toBeCloseTo(work + 2 * h + 500, 9);
  const { stderr } = await run('threads', '--bsp-machine', 'none', '--bsp-report', STEPS);
  expect(stderr).toMatch(/5 supersteps\n/);
  expect(stderr).not.toMatch(/µs predicted/);
});

test('what cannot be is refused before the job begins', async () => {
  writeFileSync(join(folder, 'wrong.json'), '{"s": 0}');
  for (const [args, pattern] of [
    [['--bsp-machine', 'none'], /--bsp-machine needs --bsp-report/],
    [['--bsp-report', '--bsp-machine', join(folder, 'absent.json')], /--bsp-machine: cannot read/],
    [['--bsp-report', '--bsp-machine', join(folder, 'wrong.json')], /wrong\.json": s must be a number above 0, not 0/],
    [[`--bsp-report=${join(folder, 'no/such/folder')}`], /cannot write the report: ENOENT/],
  ] as const) {
    const { code, stderr } = await run('threads', ...args, STEPS);
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(pattern);
  }
});

describe('records of supersteps', () => {
  const clock = () => 0;
  const record = (pid: number, steps: number, events: number) => {
    const { recorder, recording } = recordInMemory(pid, clock, events);
    const scope = recorder.text(scopeOf('4.1', 2, pid, 'packed'));
    for (let step = 0; step < steps; step++) {
      recorder.phase(Kind.COMPUTED, scope, -1, 1, step, 0, 1000 * (pid + step));
      recorder.phase(Kind.GATHERED, scope, -1, 2, step, 0, 2000);
      recorder.phase(Kind.DELIVERED, scope, 80, 160, step, 0, 3000);
    }
    return { recorder, scope, recording };
  };

  test('become numbers of each process', () => {
    const [found] = computationsOf([record(0, 2, 64).recording(), record(1, 2, 64).recording()]);
    expect(found).toMatchObject({ id: '4.1', processes: 2, delivery: 'packed', first: 0 });
    expect(found.open).toBeUndefined();
    expect([...found.numbers[1]]).toEqual([1, 2, 3, 80, 160, 1, 2, 2, 2, 3, 80, 160, 1, 2]);
  });

  test('that were overwritten are missing, of all processes', () => {
    const [found] = computationsOf([record(0, 100, 64).recording(), record(1, 100, 1024).recording()]);
    // One place of the ring may hold a record that is being written.
    expect(found.first).toBe(100 - 21);
    expect(found.numbers.map(({ length }) => length)).toEqual([21 * STEP_FIELDS, 21 * STEP_FIELDS]);
    expect(found.numbers[1][0]).toBe(1 + found.first);
  });

  test('that were overwritten but for the end of the last superstep leave no numbers, and no error', () => {
    const one = record(0, 20, 64);
    for (let i = 0; i < 62; i++) one.recorder.took(one.scope, 1);
    const [found] = computationsOf([one.recording(), record(1, 20, 1024).recording()]);
    expect(found.numbers.map(({ length }) => length)).toEqual([0, 0]);
    expect(found.open).toBeUndefined();
  });

  test('that were overwritten, all of one process, do not say that it has not called sync', () => {
    const one = record(0, 20, 64);
    for (let i = 0; i < 70; i++) one.recorder.took(one.scope, 1);
    const [found] = computationsOf([one.recording(), record(1, 20, 1024).recording()]);
    expect(found.open).toBeUndefined();
  });

  test('say which superstep did not end, also of a process that recorded nothing', () => {
    const one = record(0, 3, 64);
    one.recorder.phase(Kind.COMPUTED, one.scope, -1, 0, 3, 0, 0);
    const [found] = computationsOf([one.recording(), record(1, 3, 64).recording()]);
    expect(found.open).toEqual({ superstep: 3, inSync: [0], computing: [1] });
    const [alone] = computationsOf([one.recording()]);
    expect(alone.open).toEqual({ superstep: 0, inSync: [0], computing: [1] });
    expect(alone.numbers[0]).toHaveLength(0);
  });
});
