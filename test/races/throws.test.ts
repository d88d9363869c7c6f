/**
 * Races between ranks that are processes and threads, thrown by the call that makes them: `onesided run --races=throw`.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import type { RaceReport } from '../../src/races/race-findings.ts';
import { RACE_CASES } from '../ranks/support/races/all-cases.ts';
import { programOf, RANK_KINDS } from '../support/ranks.ts';
import { ALL, type Ended, type RunOptions, searched, searchedAlone } from './run-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'onesided-test-throws-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
/** `attempt` says by which code a function is refused, and what the message has in it. */
const PROLOGUE = `
import { existsSync, writeFileSync } from 'node:fs';
import { Datatype, init, Window } from ${JSON.stringify(LIBRARY)};
const world = await init();
const win = await Window.allocate(world, Int32Array, 20000, { name: 'cells' });
const attempt = (run, ...words) => {
  try {
    run();
    console.log('went on');
  } catch ({ code, message }) {
    console.log(code, words.every((word) => message.includes(word)) ? 'as expected' : message);
  }
};
const word = new Int32Array(1);
await win.lockAll();
`;
const EPILOGUE = `
await world.barrier();
await win.unlockAll();
await win.free();
await world.finalize();
`;

/** Rank 0 puts, and tells rank 1, which then does `second`. */
function told(first: string, second: string): string {
  return `${PROLOGUE}
if (world.rank === 0) {
  ${first}
  await world.send(word, 1);
} else {
  await world.receive(word, 0);
  ${second}
}
${EPILOGUE}`;
}

function thrown(name: string, source: string, options: Omit<RunOptions, 'size'> & { size?: number }): Promise<Ended> {
  const file = join(folder, `${name}-${options.kind ?? ''}.mjs`);
  writeFileSync(file, source);
  return searched(file, { size: 2, races: 'throw', ...options });
}

describe.each(RANK_KINDS)('%s', (kind) => {
  test('a put is thrown that races with the put of a rank that has told of it', async () => {
    const second = `attempt(() => win.put(Int32Array.of(2), 1, 5), 'in window cells', 'rank 0: put', 'rank 1: put',
      'by a message', 'flush(1) at rank 0');`;
    const { code, out, err } = await thrown('put', told('win.put(Int32Array.of(1), 1, 5);', second), { kind });
    expect(out).toBe('[1] ERR_RMA_RACE as expected\n');
    expect(err).toContain('bytes 20 … 23 of the part of rank 1 in window cells');
    expect(err).toContain('races: 1 race');
    expect(code).toBe(66);
  });

  test('a load is thrown that races with it, at its line', async () => {
    const json = join(folder, `load-${kind}.json`);
    const second = "attempt(() => void (word[0] = win.local[5]), 'rank 1: load reads at', 'load-', ':22:33');";
    const source = told('win.put(Int32Array.of(1), 1, 5);', second);
    const { code, out } = await thrown('load', source, { kind, races: `throw,${json}` });
    expect(out).toBe('[1] ERR_RMA_RACE as expected\n');
    expect(code).toBe(66);
    const { races, unseen } = JSON.parse(readFileSync(json, 'utf8')) as RaceReport;
    expect(races.map(({ where }) => where)).toEqual([{ window: 'cells', rank: 1, bytes: [20, 23] }]);
    expect(unseen).toEqual([]);
  });

  test('a program that flushes in between is not accused, and nothing is left behind', async () => {
    const own = mkdtempSync(join(folder, 'tmp-'));
    const second = 'attempt(() => console.log(win.local[5]));';
    const source = told('win.put(Int32Array.of(7), 1, 5); await win.flush(1);', second);
    const { code, out, err } = await thrown('calm', source, { kind, env: { TMPDIR: own } });
    expect(out).toBe('[1] 7\n[1] went on\n');
    expect(err).toMatch(/^onesided: races: no race;.*\n$/);
    expect(code).toBe(0);
    expect(readdirSync(own)).toEqual([]);
  });

  test('a race that nobody catches ends its rank, and the job as any error does', async () => {
    const source = told('win.put(Int32Array.of(1), 1, 5);', 'win.put(Int32Array.of(2), 1, 5);');
    const { code, err } = await thrown('uncaught', source, { kind });
    expect(err).toMatch(/RmaError.*race: bytes 20 … 23/);
    expect(err).toContain('onesided: races: 1 race');
    expect(code).toBe(1);
  });

  test('what one call tells may be long', async () => {
    // 9000 pieces: more numbers than are told at once. The last one races.
    const side = '{ type: Datatype.vector(9000, 1, 2, Datatype.INT32) }';
    const first = `win.put(new Int32Array(20000), 1, 0, { origin: ${side}, target: ${side} });`;
    const second = "attempt(() => win.local[17998], 'bytes 71992 … 71995');\nattempt(() => win.local[17999]);";
    const { code, out, err } = await thrown('long', told(first, second), { kind });
    expect(out, err).toBe('[1] ERR_RMA_RACE as expected\n[1] went on\n');
    expect(code).toBe(66);
  });

  test('bytes that were loaded again and again are compared with what others put later', async () => {
    // Rank 0 puts when rank 1 has loaded, which it learns by a file: nothing orders the two.
    const file = JSON.stringify(join(folder, `loaded-${kind}`));
    const source = `${PROLOGUE}
let sum = 0;
if (world.rank === 1) {
  for (let i = 0; i < 1000; i++) sum += win.local[i % 10];
  writeFileSync(${file}, '');
} else {
  while (!existsSync(${file}));
  attempt(() => win.put(word, 1, 10));
  attempt(() => win.put(word, 1, 9), 'rank 1: load reads', 'rank 0: put');
}
${EPILOGUE}`;
    const { code, out, err } = await thrown('again', source, { kind });
    expect(out, err).toBe('[0] went on\n[0] ERR_RMA_RACE as expected\n');
    expect(code).toBe(66);
  });

  test('a rank that ends in the middle stops nobody else', async () => {
    const source = `${PROLOGUE}
if (world.rank === 1) {
  if (${kind === 'processes'}) {
    // Asks all the time, and is killed meanwhile.
    const { spawn } = await import('node:child_process');
    spawn('sh', ['-c', 'sleep 0.3; kill -9 $0', String(process.pid)]);
    for (;;) {
      win.put(word, 1, 0);
      await win.flush(1);
    }
  }
  process.exit(7);
}
while (world.failed.length === 0) {
  win.put(word, 0, world.rank);
  await win.flush(0);
}
for (let i = 0; i < 1000; i++) win.put(word, world.rank, 4 + i);
await win.flush(world.rank);
console.log('went on');
process.exit(0);
`;
    const { out, err } = await thrown('killed', source, { kind, size: 3, options: ['--keep-going'] });
    expect(out.split('\n').sort(), err).toEqual(['', '[0] went on', '[2] went on']);
    expect(err).toContain('races: no race');
  });
});

test('where there is no launcher, races within a rank are thrown', async () => {
  const file = join(folder, 'alone.mjs');
  writeFileSync(file, `${PROLOGUE}win.get(word, 0, 0);\nattempt(() => word[0], 'flushLocal(0)');\n${EPILOGUE}`);
  const { code, out, err } = await searchedAlone(file, 'throw');
  expect(out, err).toBe('ERR_RMA_RACE as expected\n');
  expect(err).toContain('onesided: races: 1 race');
  expect(code).toBe(66);
});

const SOME = ALL
  ? RACE_CASES
  : RACE_CASES.filter(({ name }) => /sync\/0(3[45]|0[12])|atomic\/001|conflict\/001/.test(name));
describe.each(RANK_KINDS)('after RMARaceBench, thrown on %s', (kind) => {
  test.each(SOME)('$name, racy: $racy', async ({ name, racy, size }) => {
    const { code, err } = await searched(programOf('races'), { size, kind, races: 'throw', args: [name] });
    if (racy) expect(err).toMatch(/ERR_RMA_RACE|race: bytes/);
    expect(code !== 0, err).toBe(racy);
    expect(err).toContain(racy ? 'onesided: race: ' : 'onesided: races: no race');
  });
});
