/**
 * Races of ranks that are processes and threads, by `onesided run --races`: exit codes, reports, and all programs after
 * RMARaceBench (`npm run test:races`; a few of them elsewhere).
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import type { RaceReport } from '../../src/races/race-findings.ts';
import { allChapters } from '../ranks/conformance/chapters.ts';
import { RACE_CASES } from '../ranks/support/races/all-cases.ts';
import { programOf, RANK_KINDS } from '../support/ranks.ts';
import { ALL, type Ended, searched } from './run-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'onesided-test-races-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function script(name: string, source: string): string {
  const file = join(folder, name);
  writeFileSync(file, source);
  return file;
}

const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
const PROLOGUE = `
import { init, Window } from ${JSON.stringify(LIBRARY)};
const world = await init();
const win = await Window.allocate(world, Int32Array, 4, { name: 'cells' });
`;
const EPILOGUE = `
await world.barrier();
await win.free();
await world.finalize();
`;
const RACY = `${PROLOGUE}
await win.fence();
if (world.rank === 0) win.put(Int32Array.of(1), 1, 2);
if (world.rank === 1) win.local[2] = 7;
await win.fence();
${EPILOGUE}`;

const UNSEEN = `
import { init } from ${JSON.stringify(LIBRARY)};
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import '@some/one';
const require = createRequire(import.meta.url);
const world = await init();
require('./strange.cjs');
require('other');
try { require('./native.node'); } catch {}
await world.barrier();
eval('0');
new Worker('0', { eval: true });
await world.finalize();
`;

describe.each(RANK_KINDS)('%s', (kind) => {
  test('a race is told with both lines, what is missing, and what mends it; the exit code is 66', async () => {
    const program = script(`racy-${kind}.mjs`, RACY);
    const json = join(folder, `${kind}.json`);
    const { code, err } = await searched(program, { size: 2, kind, races: json });
    expect(err).toContain('race: bytes 8 … 11 of the part of rank 1 in window cells');
    expect(err).toMatch(
      /rank 0: put to rank 1 writes at .*racy-\w+\.mjs:7:27, in the epoch of fence opened at .*:6:11/,
    );
    expect(err).toMatch(/rank 1: store writes at .*racy-\w+\.mjs:8:23/);
    expect(err).toContain('to mend it: a fence between the two lines');
    expect(code).toBe(66);
    const report = JSON.parse(readFileSync(json, 'utf8')) as RaceReport;
    expect(report.races).toHaveLength(1);
    expect(report.races[0].where).toEqual({ window: 'cells', rank: 1, bytes: [8, 11] });
    expect(report.unseen).toEqual([]);
  });

  test('without a race the job ends as ever, and nothing is left behind', async () => {
    // Of its own: other jobs have theirs in the usual place.
    const own = mkdtempSync(join(folder, 'tmp-'));
    const program = script('calm.mjs', `${PROLOGUE}${EPILOGUE}`);
    const { code, err } = await searched(program, { size: 2, kind, env: { TMPDIR: own } });
    expect(err).toBe(
      'onesided: races: no race; atomic calls on one word order its ranks; ' +
        '0.0 MiB for accesses to 0.0 MiB of windows\n',
    );
    expect(code).toBe(0);
    expect(readdirSync(own)).toEqual([]);
  });

  test('a job that fails has its own exit code', async () => {
    const program = script('fails.mjs', `${RACY}process.exit(3);`);
    expect((await searched(program, { size: 2, kind })).code).toBe(3);
  });

  test('parts that ranks share are seen through each mapping', async () => {
    const source = `
import { init, Window } from ${JSON.stringify(LIBRARY)};
const world = await init();
const win = await Window.allocateShared(world, Int32Array, 4, { name: 'shared' });
const other = win.sharedQuery(1 - world.rank);
await world.barrier();
if (world.rank === 0) other[1] = 5;
if (world.rank === 1) globalThis.seen = win.local[1];
${EPILOGUE}`;
    const { code, err } = await searched(script(`shared-${kind}.mjs`, source), { size: 2, kind });
    expect(err).toContain('bytes 4 … 7 of the part of rank 1 in window shared');
    expect(code).toBe(66);
    const calm = source.replace('if (world.rank === 1)', 'await world.barrier();\nif (world.rank === 1)');
    const quiet = await searched(script(`calm-${kind}.mjs`, calm), { size: 2, kind });
    expect(quiet.err).toContain('no race');
  });

  test('with throw, a race within a rank is thrown at its line', async () => {
    const source = `${PROLOGUE}
const value = new Int32Array(1);
await win.lockAll();
win.get(value, 0, 0);
try {
  if (value[0] === 1) console.log('one');
} catch ({ code, message }) {
  console.log(code, message.includes('flushLocal(0)'));
}
await win.unlockAll();
${EPILOGUE}`;
    const { out } = await searched(script('throws.mjs', source), { size: 1, kind, races: 'throw' });
    expect(out).toContain('ERR_RMA_RACE true');
  });
});

test('modules in CommonJS are seen, too', async () => {
  const source = `(async () => {
const { init, Window } = await import(${JSON.stringify(LIBRARY)});
${RACY.split('\n').slice(2).join('\n')}
})();`;
  const { code, err } = await searched(script('common.cjs', source), { size: 2, kind: RANK_KINDS[0] });
  expect(err).toMatch(/rank 1: store writes at .*common\.cjs:8:23/);
  expect(code).toBe(66);
});

test('CommonJS is seen where no package says what it is, also below another module', async () => {
  const own = mkdtempSync(join(folder, 'plain-'));
  writeFileSync(join(own, 'part.js'), 'exports.look = (a) => {\n  return a[2]; };\n');
  const body = RACY.split('\n').slice(2).join('\n').replace('win.local[2] = 7', 'look(win.local)');
  const source = `const { look } = require('./part.js');
(async () => {
const { init, Window } = await import(${JSON.stringify(LIBRARY)});
${body}
})();`;
  writeFileSync(join(own, 'main.js'), source);
  const { code, err } = await searched(join(own, 'main.js'), { size: 2, kind: RANK_KINDS[0] });
  expect(err).toMatch(/rank 1: load reads at .*part\.js:2:10/);
  expect(code).toBe(66);
});

test.each(RANK_KINDS)('what could not be seen is said: %s', async (kind) => {
  const own = mkdtempSync(join(folder, 'unseen-'));
  for (const [file, text] of [
    ['node_modules/other/index.js', 'exports.other = 1;'],
    ['node_modules/@some/one/index.mjs', 'export const one = 1;'],
    ['node_modules/@some/one/package.json', '{ "exports": "./index.mjs" }'],
    // Node parses it, the parser does not.
    ['strange.cjs', 'if (false) f() = 1;'],
    ['native.node', 'this is no addon'],
    ['main.mjs', UNSEEN],
  ]) {
    mkdirSync(join(own, dirname(file)), { recursive: true });
    writeFileSync(join(own, file), text);
  }
  const json = join(own, 'report.json');
  const { code, err } = await searched(join(own, 'main.mjs'), { size: 2, kind, races: json });
  expect(code, err).toBe(0);
  const { unseen } = JSON.parse(readFileSync(json, 'utf8')) as RaceReport;
  const at = (file: string): string => join(realpathSync(own), file);
  expect([...unseen].sort()).toEqual(
    [
      `${at('main.mjs')}:12:1: loads and stores in what eval is given`,
      `${at('strange.cjs')}:1:12: loads and stores of this module, whose syntax is not known: Assigning to rvalue`,
      `${at('native.node')}: loads and stores by native code`,
      'loads and stores in the package @some/one',
      'loads and stores in the package other',
      'loads and stores in worker threads that the program has started',
    ].sort(),
  );
  expect(err).toContain('not seen: loads and stores in the packages @some/one, other\n');
});

test('what is to be flushed is told as the window counts its ranks', async () => {
  const source = `
import { init, Window } from ${JSON.stringify(LIBRARY)};
const world = await init();
const half = await world.split(world.rank === 0 ? 0 : 1, world.rank);
const win = await Window.allocate(half, Int32Array, 4, { name: 'half' });
await win.lockAll();
if (world.rank === 1) win.put(Int32Array.of(1), 1, 0);
await half.barrier();
if (world.rank === 2) globalThis.seen = win.local[0];
await win.unlockAll();
await win.free();
await world.finalize();
`;
  const { err } = await searched(script('half.mjs', source), { size: 3, kind: RANK_KINDS[0] });
  expect(err).toContain('rank 1: put to rank 2 writes');
  expect(err).toContain('to mend it: flush(1), which is rank 2, at rank 1 before it tells the other');
});

test.each([
  ['two reports of a kind', 'a.json,b.json', [], {}, 'not to "a.json" and "b.json"'],
  ['a report that cannot be written', '/nowhere/report.json', [], {}, '/nowhere/report.json cannot be written'],
  ['a bound that is none', '', ['--races-memory', '0'], {}, '--races-memory: a number of MiB'],
  ['a bound of the environment', '', [], { ONESIDED_RACES_MEMORY: '-1' }, 'ONESIDED_RACES_MEMORY: a number of MiB'],
])('%s is refused before anything starts', async (_, races, options, env, message) => {
  const program = script('never.mjs', 'console.log("it has started");');
  const ended = await searched(program, { size: 1, kind: RANK_KINDS[0], races, options, env });
  expect(ended.err).toContain(message);
  expect(ended.out).toBe('');
  expect(ended.code).toBe(2);
});

test('unknown words are refused before anything starts', async () => {
  const { code, err } = await searched(script('calm.mjs', ''), { size: 1, kind: RANK_KINDS[0], races: 'strickt' });
  expect(err).toContain('strickt');
  expect(code).toBe(2);
});

/** Each way on all of them, or on one with a race and one without. */
const WAYS = [
  { way: 'processes', kind: 'processes', env: {} },
  { way: 'threads', kind: 'threads', env: {} },
  { way: 'requests', kind: 'processes', env: { ONESIDED_DEBUG: 'requests' } },
] as const;

describe.each(WAYS.filter(({ kind }) => RANK_KINDS.includes(kind)))('after RMARaceBench, by $way', ({ kind, env }) => {
  const some = ALL ? RACE_CASES : RACE_CASES.filter(({ name }) => /sync\/03[45]/.test(name));
  test.each(some)('$name, racy: $racy', async ({ name, racy, size }) => {
    const { code, err } = await searched(programOf('races'), { size, kind, env, args: [name] });
    expect(code, err).toBe(racy ? 66 : 0);
  });
});

describe.skipIf(!ALL)('nobody is accused', () => {
  const calm = async (run: Promise<Ended>): Promise<void> => {
    const { code, err } = await run;
    expect(err).toContain('races: no race');
    expect(code).toBe(0);
  };
  test.each(Object.keys(allChapters))('the conformance suite: %s', (chapter) =>
    calm(
      searched(programOf('conformance'), {
        size: 4,
        kind: RANK_KINDS[0],
        args: [`--chapter=${chapter}`, `--results=${join(folder, chapter)}`],
      }),
    ),
  );

  const examples = fileURLToPath(new URL('../../examples/', import.meta.url));
  test.each(readdirSync(examples).filter((name) => name.endsWith('.js') && !name.includes('service')))(
    'examples/%s',
    (name) => calm(searched(join(examples, name), { size: 4, kind: RANK_KINDS[0] })),
  );
});
