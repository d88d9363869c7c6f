/**
 * Reports of supersteps of ranks that no `onesided run` has started: ONESIDED_BSP_REPORT and ONESIDED_BSP_MACHINE,
 * under a process manager of the tests' own, and alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BspReport } from 'onesided/bsp/model';
import { describe, expect, test, vi } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { temporaryFolder } from '../support/folders.ts';
import { Pmi } from '../support/pmi.ts';

const STEPS = fileURLToPath(new URL('../../build/programs/test/ranks/bsp-steps.js', import.meta.url));
const SIZE = 3;

// Against hanging only.
vi.setConfig({ testTimeout: 120_000 });

const folder = temporaryFolder('own-report');

interface Rank {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
}

function start(environment: Record<string, string>, args: readonly string[]): Rank {
  const child = spawn(process.execPath, [...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let stderr = '';
  (child.stderr as NodeJS.ReadableStream).setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return { child, ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, stderr }))) };
}

/** By rank, what a job ends with that a manager has started. */
async function launched(environment: Record<string, string>, ...args: string[]) {
  const manager = new Pmi(SIZE, 1, (theirs) => start({ ...environment, ...theirs }, args));
  return Promise.all(manager.started.map(({ ended }) => ended));
}

const read = (name: string): readonly BspReport[] =>
  JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')).computations;

describe.skipIf(loadNative() === undefined)('ranks of another launcher', () => {
  test('are reported by rank 0, as it exits, with predictions', async () => {
    const ranks = await launched({ ONESIDED_BSP_REPORT: join(folder, 'all.json') }, STEPS);
    expect(ranks.map(({ code }) => code)).toEqual([0, 0, 0]);
    const [{ stderr }, ...others] = ranks;
    expect(stderr).toMatch(/onesided: BSP computation of 3 processes, shared delivery: 5 supersteps/);
    expect(stderr).toMatch(/µs predicted \(.* %; half of .* by g .* µs a word, o .*, l .* µs/);
    expect(stderr).toContain(`numbers and picture: ${join(folder, 'all.json')}`);
    for (const other of others) expect(other.stderr).toBe('');
    const [{ processes, supersteps, machine }] = read('all');
    expect(processes).toBe(SIZE);
    expect(supersteps.map(({ h, messages }) => [h, messages])).toEqual([
      [0, 0],
      [300, 1],
      [200, 2],
      [20, 2],
      [0, 0],
    ]);
    for (const { work, predicted, h, messages } of supersteps) {
      expect(predicted).toBeCloseTo(work + h * machine!.g + messages * machine!.o! + machine!.l, 6);
    }
    expect(readFileSync(join(folder, 'all.svg'), 'utf8').match(/<g><title>/g)).toHaveLength(supersteps.length);
  });

  test('that fail: whoever exits writes what there is', async () => {
    const ranks = await launched({ ONESIDED_BSP_REPORT: join(folder, 'die') }, STEPS, 'die');
    expect(ranks[1].code).toBe(3);
    expect(ranks.every(({ code }) => code !== 0)).toBe(true);
    const [{ supersteps, open }] = read('die');
    expect(supersteps.map(({ h }) => h)).toEqual([0, 300]);
    expect(open).toEqual({ superstep: 2, inSync: [0, 2], computing: [1] });
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('are predicted by a machine from a file; one that cannot be read is refused at all of them', async () => {
    const machine = { s: 10, p: 3, l: 5000, g: 20 };
    const file = join(folder, 'machine.json');
    writeFileSync(file, JSON.stringify(machine));
    const report = { ONESIDED_BSP_REPORT: join(folder, 'by') };
    expect((await launched({ ...report, ONESIDED_BSP_MACHINE: file }, STEPS)).map(({ code }) => code)).toEqual([
      0, 0, 0,
    ]);
    const [{ supersteps }] = read('by');
    for (const { work, h, predicted } of supersteps) expect(predicted).toBeCloseTo(work + 2 * h + 500, 9);
    const none = await launched({ ...report, ONESIDED_BSP_MACHINE: 'none' }, STEPS);
    expect(none[0].stderr).toMatch(/5 supersteps\n/);
    expect(none[0].stderr).not.toMatch(/µs predicted/);
    const absent = await launched({ ...report, ONESIDED_BSP_MACHINE: join(folder, 'absent.json') }, STEPS);
    for (const { code, stderr } of absent) {
      expect(code).not.toBe(0);
      expect(stderr).toMatch(/ONESIDED_BSP_MACHINE: cannot read/);
    }
  });
});

test('a process that nobody launched reports itself', async () => {
  const { code, stderr } = await start({ ONESIDED_BSP_REPORT: join(folder, 'alone') }, [STEPS]).ended;
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/BSP computation of 1 process, shared delivery: 5 supersteps/);
  expect(read('alone')[0].processes).toBe(1);
});

test('a program without supersteps says so, and a file that cannot be written makes it fail', async () => {
  const index = JSON.stringify(new URL('../../dist/index.js', import.meta.url).href);
  const program = join(folder, 'plain.mjs');
  // What it starts does not write over its report.
  writeFileSync(
    program,
    `import { init } from ${index};
const world = await init();
if (process.env['ONESIDED_BSP_REPORT'] !== undefined) throw new Error('it was handed on');
await world.finalize();`,
  );
  const plain = await start({ ONESIDED_BSP_REPORT: join(folder, 'plain') }, [program]).ended;
  expect([plain.code, plain.stderr]).toEqual([0, 'onesided: no supersteps: the program began no BSP computation\n']);
  const none = await start({ ONESIDED_BSP_REPORT: join(folder, 'no/such/folder') }, [STEPS]).ended;
  expect(none.code).toBe(1);
  expect(none.stderr).toMatch(/cannot write the report of supersteps: ENOENT/);
});
