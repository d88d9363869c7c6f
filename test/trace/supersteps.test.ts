/** Supersteps in traces: spans with their phases and relations, on real ranks and on tasks, and their picture. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test, vi } from 'vitest';
import { drawPage } from '../../src/trace/sequence-picture.ts';
import { stepsOf, superstepScene } from '../../src/trace/superstep-scene.ts';
import { readTrace } from '../../src/trace/trace-reader.ts';
import { onesided } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { RANK_KINDS } from '../support/ranks.ts';
import { checkTrace, rankOf } from './events.ts';

const STEPS = fileURLToPath(new URL('../../build/programs/test/ranks/bsp-steps.js', import.meta.url));
const SIZE = 3;

// Against hanging only.
vi.setConfig({ testTimeout: 120_000 });

const folder = temporaryFolder('steps');

/** The spans of a rank's supersteps, by superstep: what they are called, and the relation. */
function spansOf(file: string, rank: number) {
  const own = checkTrace(file).slices.filter((slice) => slice.pid === 3 && rankOf(slice) === rank);
  expect(own.every(({ tid }) => tid === rank + 1)).toBe(true);
  const wholes = own.filter(({ name }) => name.startsWith('superstep'));
  return wholes.map(({ name, args, start, end }) => {
    const phases = own.filter((slice) => slice.start >= start && slice.end <= end && slice.name !== name);
    const named = phases.filter((slice) => slice.args['superstep'] === args['superstep']);
    // They follow each other, and fill a superstep that has ended.
    if (args['unfinished'] === undefined)
      expect(named.reduce((sum, slice) => sum + slice.end - slice.start, 0)).toBe(end - start);
    return { name, h: args['h'], phases: named.map((slice) => slice.name).sort(), unfinished: args['unfinished'] };
  });
}

const PHASES = ['computing', 'delivery', 'waiting for all'];
const whole = (superstep: number, h: number) => ({
  name: `superstep ${superstep}`,
  h,
  phases: PHASES,
  unfinished: undefined,
});

describe.each(RANK_KINDS)('ranks that are %s', (kind) => {
  test('show each superstep, its phases and its relation', async () => {
    const file = join(folder, `${kind}.json`);
    const { code, stderr } = await onesided('run', '-n', '3', '--ranks', kind, '--trace', file, STEPS);
    expect(code, stderr).toBe(0);
    expect(spansOf(file, 1)).toEqual([whole(0, 0), whole(1, 300), whole(2, 100), whole(3, 10), whole(4, 0)]);
    expect(spansOf(file, 0).map(({ h }) => h)).toEqual([0, 300, 200, 20, 0]);
    const { code: listed, stdout } = await onesided('trace', 'list', file);
    expect([listed, stdout]).toEqual([
      0,
      expect.stringMatching(/BSP computation \S+: 3 processes, supersteps 0 to 4\n/),
    ]);
    const picture = join(folder, `${kind}.svg`);
    const drawn = await onesided('trace', 'draw', file, '--superstep', '1', '-o', picture);
    expect(drawn.stdout).toMatch(/Superstep 1 of BSP computation \S+: rank \d computed longest\n/);
    expect(readFileSync(picture, 'utf8')).toContain('delivery, h 300');
    const absent = await onesided('trace', 'draw', file, '--superstep', '5', '-o', picture);
    expect([absent.code, absent.stderr]).not.toEqual([0, '']);
    expect(absent.stderr).toMatch(/no BSP computation of the trace has superstep 5/);
  });
});

test('tasks: in virtual time, with what passes between them', async () => {
  const file = join(folder, 'tasks.json');
  const program = runTasks(
    SIZE,
    async (world) => {
      const bsp = await begin(world);
      const x = new Float64Array(10);
      bsp.pushReg(x);
      await bsp.sync();
      await bsp.comm.compute(100 * (bsp.pid + 1));
      bsp.put((bsp.pid + 1) % SIZE, new Float64Array(10), x);
      await bsp.sync();
      if (bsp.pid === 2) throw new Error('lost');
      await bsp.sync();
    },
    { fabric: 'infinihost-64', trace: file },
  );
  await expect(program).rejects.toThrow('lost');
  expect(spansOf(file, 0).slice(0, 2)).toEqual([whole(0, 0), whole(1, 10)]);
  expect(spansOf(file, 0)[2]).toMatchObject({ name: 'superstep 2', unfinished: true });
  const trace = readTrace(file);
  const [{ id, first, last, processes }] = stepsOf(trace);
  expect([processes, first, last]).toEqual([SIZE, 0, 2]);
  const scene = superstepScene(trace, { superstep: 1, computation: id });
  expect(scene.title).toContain('rank 2 computed longest');
  const computing = scene.boxes.filter(({ label }) => label.startsWith('computing'));
  for (const { rank, start, end } of computing) {
    expect(end - start).toBeGreaterThanOrEqual(100_000 * (rank + 1));
    expect(end - start).toBeLessThan(100_000 * (rank + 1) + 10_000);
  }
  // A chunk each to the next, and counts.
  for (const rank of [0, 1, 2]) {
    expect(scene.arrows.some(({ from, to }) => from === rank && to === (rank + 1) % SIZE)).toBe(true);
  }
  expect(drawPage(scene)).toContain('waiting for all, ');
  const open = superstepScene(trace, { superstep: 2 });
  expect(open.boxes.some(({ label }) => label === 'superstep 2, unfinished')).toBe(true);
  expect(() => superstepScene(trace, { superstep: 3 })).toThrow(/no BSP computation of the trace has superstep 3/);
});
