/** Runs that are recorded: what is in the trace, whatever the ranks are and however they end. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Finished, onesided, start, verdicts } from '../launcher/command.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/ports.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';
import { type Checked, checkTrace, rankOf } from './events.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/trace.js', import.meta.url));
const SIZE = 3;

// Against hanging only.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const folder = temporaryFolder('trace');

const count = <T>(items: readonly T[], holds: (item: T) => boolean): number => items.filter(holds).length;

describe.each(RANK_KINDS)('ranks that are %s', (kind) => {
  let trace: Checked;
  let finished: Finished;
  beforeAll(async () => {
    const file = join(folder, `${kind}.json`);
    finished = await onesided('run', '-n', String(SIZE), '--ranks', kind, '--timeout', '50', '--trace', file, PROGRAM);
    expect(finished.stderr + finished.stdout).toContain('"pid"');
    trace = checkTrace(file);
  });

  it('say where the trace is, and lose nothing', () => {
    expect(finished.code).toBe(0);
    expect(verdicts(finished.stderr)).toEqual([
      expect.stringMatching(
        new RegExp(`^onesided: trace of ${SIZE} ranks, [\\d,]+ events, in .*${kind}.json: open it in`),
      ),
    ]);
    expect(trace.other).toMatchObject({ ranks: SIZE, dropped: [0, 0, 0], disordered: 0, program: PROGRAM });
    expect(trace.slices.some(({ args }) => args['unfinished'] === true)).toBe(false);
  });

  it('have a lane each, and one for their memory', () => {
    for (let rank = 0; rank < SIZE; rank++) {
      expect(trace.lanes.get(`1/${rank + 1}`)).toBe(`rank ${rank}`);
      expect(trace.lanes.get(`2/${rank + 1}`)).toBe(`memory of rank ${rank}`);
    }
  });

  it('show every call, by name, with its window and target', () => {
    for (let rank = 0; rank < SIZE; rank++) {
      const calls = trace.of(rank, 'call');
      const numberOf = (name: string): number => count(calls, (call) => call.name === name);
      expect(
        Object.fromEntries(
          ['fence', 'lock', 'unlock', 'post', 'start', 'complete', 'wait'].map((name) => [name, numberOf(name)]),
        ),
      ).toEqual({
        fence: 3,
        lock: 4,
        unlock: 4,
        post: 1,
        start: 1,
        complete: 1,
        wait: 1,
      });
      for (const name of [
        'lockAll',
        'unlockAll',
        'waitNotify',
        'flushAll',
        'allreduce',
        'send',
        'receive',
        'free',
        'finalize',
      ])
        expect(numberOf(name), name).toBe(1);
      expect(numberOf('barrier')).toBe(2);
      expect(calls.find(({ name }) => name === 'fence')!.args).toMatchObject({ window: 'grid', fence: 1 });
      expect(calls.find(({ name }) => name === 'lock')!.args).toMatchObject({
        window: 'grid',
        target: 0,
        exclusive: true,
      });
      // One that was refused says so, and moves nothing.
      expect(calls.filter(({ name }) => name === 'put').map(({ args }) => args['error'])).toEqual(['ERR_RMA_RANGE']);
    }
  });

  it('show every operation with target, bytes and displacement', () => {
    for (let rank = 0; rank < SIZE; rank++) {
      const next = (rank + 1) % SIZE;
      const operations = trace
        .of(rank, 'operation')
        .map(({ name, args }) => [name, args['target'], args['bytes'], args['disp']]);
      expect(operations).toEqual([
        ['put', next, 16, 2],
        ['get', (rank + SIZE - 1) % SIZE, 8, 4],
        ['accumulate', 0, 8, 5],
        ['fetchAndOp', 0, 8, 6],
        ['fetchAndOp', 0, 8, 6],
        ['fetchAndOp', 0, 8, 6],
        ['put', next, 8, 7],
        ['putNotify', next, 8, 8],
        ['rput', next, 8, 9],
        ['put', next, 8, 10],
      ]);
    }
  });

  it('show epochs around what is done in them', () => {
    for (let rank = 0; rank < SIZE; rank++) {
      const epochs = trace.of(rank, 'epoch');
      expect(epochs.map(({ name }) => name).sort()).toEqual(
        [
          'fence epoch',
          'fence epoch',
          ...new Array<string>(3).fill('exclusive lock'),
          'exposure epoch',
          'access epoch',
          'lockAll epoch',
          'shared lock',
        ].sort(),
      );
      for (const operation of trace.of(rank, 'operation')) {
        const around = epochs.filter(({ start, end }) => start <= operation.start && operation.end <= end);
        expect(around.length, operation.name).toBeGreaterThan(0);
      }
      // The call that ends an epoch is in it, the one that opens it is not.
      const [first] = epochs.filter(({ name }) => name === 'fence epoch');
      const fences = trace.of(rank, 'call').filter(({ name }) => name === 'fence');
      expect(fences[0].end <= first.start && first.start <= fences[1].start && fences[1].end <= first.end).toBe(true);
    }
  });

  it('have an arrow for all that passes between them', () => {
    const moved = (name: string): number => trace.flowsOf(name).length;
    expect([moved('put'), moved('get'), moved('accumulate'), moved('fetchAndOp')]).toEqual([
      3 * SIZE,
      SIZE,
      SIZE,
      3 * SIZE,
    ]);
    expect([moved('putNotify'), moved('rput'), moved('notification')]).toEqual([SIZE, SIZE, SIZE]);
    for (const name of ['post', 'complete']) {
      expect(moved(name)).toBe(SIZE);
      for (const { from, to } of trace.flowsOf(name)) expect(rankOf(to)).toBe(from.args['to']);
    }
    // Each message is sent once and seen once, by the rank that it was sent to.
    const messages = trace.slices.filter(({ cat, name }) => cat === 'message' && name.startsWith('message'));
    expect(moved('message')).toBe(count(messages, ({ name }) => name.includes('→')));
    expect(moved('message')).toBe(count(messages, ({ name }) => name.includes('←')));
    for (const { from, to } of trace.flowsOf('message')) {
      expect(rankOf(to)).toBe(from.args['to']);
      expect(to.args).toMatchObject({ from: rankOf(from), bytes: from.args['bytes'] });
    }
    // Nobody leaves a barrier or a fence without having been told so by somebody else, unless it was the last to come.
    expect(moved('barrier')).toBeGreaterThanOrEqual(5 * (SIZE - 1));
    // Bytes of a put come to the target's memory lane.
    for (const { from, to } of trace.flowsOf('put')) {
      expect([from.pid, to.pid, rankOf(to)]).toEqual([1, 2, from.args['target']]);
    }
    for (const { from, to } of trace.flowsOf('get')) expect([from.pid, rankOf(from)]).toEqual([2, to.args['target']]);
  });

  it('show a lock passed on from its holder to who waited', () => {
    for (const { from, to } of trace.flowsOf('lock')) {
      expect([from.name, to.name]).toEqual(['lock released', 'lock acquired']);
      expect(rankOf(from)).not.toBe(rankOf(to));
      expect(from.args['target']).toBe(to.args['target']);
      // Nobody else had it in between.
      const between = trace.slices.filter(
        ({ name, start, args }) =>
          name === 'lock acquired' &&
          args['target'] === to.args['target'] &&
          args['exclusive'] === true &&
          start > from.end &&
          start < to.start,
      );
      expect(between).toEqual([]);
    }
  });
});

describe.runIf(RANK_KINDS.includes('processes'))('a trace', () => {
  it('holds what a rank did until it was killed', async () => {
    const file = join(folder, 'crash.json');
    const { code, stderr } = await onesided('run', '-n', '3', '--trace', file, PROGRAM, 'crash');
    expect(code).toBe(137);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(/^onesided: trace of 3 ranks/),
      expect.stringMatching(/^onesided: rank 1 was killed by SIGKILL/),
    ]);
    const trace = checkTrace(file);
    const lock = trace.of(1, 'epoch').find(({ name }) => name === 'exclusive lock')!;
    expect(lock.args).toMatchObject({ target: 2, unfinished: true });
    expect(trace.of(1, 'operation').map(({ args }) => args['target'])).toEqual([2, 2]);
    expect(trace.of(0, 'call').at(-1)).toMatchObject({ name: 'barrier', args: { error: 'ERR_RMA_RANK_FAILED' } });
  });

  it('keeps the last events where there is no room for all, and says how many are missing', async () => {
    const file = join(folder, 'many.json');
    const { code, stderr } = await onesided('run', '-n', '2', '--trace', file, '--trace-events', '64', PROGRAM, 'many');
    expect(code).toBe(0);
    const { other, of } = checkTrace(file);
    expect(other.dropped.every((n) => n > 900)).toBe(true);
    const missing = other.dropped.reduce((sum, n) => sum + n, 0).toLocaleString('en-US');
    expect(stderr).toContain(`the ${missing} earliest events were dropped`);
    expect(of(0, 'call').map(({ name }) => name)).toEqual(['fence', 'free', 'finalize']);
    expect(of(0, 'operation').length).toBeGreaterThan(30);
  });

  it('is there when the run was interrupted', async () => {
    const file = join(folder, 'late.json');
    const script = join(folder, 'late.mjs');
    writeFileSync(
      script,
      `import { init } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
const world = await init();
if (world.rank === 0) await world.barrier();
console.log('ready');
setInterval(() => {}, 1e6);`,
    );
    const { child, finished, printed } = start(['run', '-n', '2', '--trace', file, script]);
    await printed('ready');
    child.kill('SIGTERM');
    expect((await finished).code).toBe(143);
    const trace = checkTrace(file);
    // Rank 0 has come to the barrier, or was on its way there.
    for (const call of trace.of(0, 'call')) expect(call).toMatchObject({ name: 'barrier', args: { unfinished: true } });
    expect(trace.other.ranks).toBe(2);
  });

  it('is refused before anything starts where it cannot be written', async () => {
    const { code, stdout, stderr } = await onesided('run', '-n', '2', '--trace', join(folder, 'none/x.json'), PROGRAM);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('cannot write the trace: ENOENT');
    for (const [args, message] of [
      [['--trace-events', '100'], '--trace-events needs --trace FILE'],
      [['--trace', join(folder, 'a'), '--trace-events', '3'], 'a number of events per rank from 64 to'],
      [['--trace', ''], '--trace needs a file name'],
    ] as const) {
      const refused = await onesided('run', '-n', '1', ...args, PROGRAM);
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  it('is written by the ranks themselves where no launcher of ours runs, also when one is killed', async () => {
    for (const what of ['', 'crash']) {
      const file = join(folder, `launched-${what}.json`);
      const endings = await launch(3, { ONESIDED_TRACE: file }, what);
      expect(endings.map(({ code }) => code === 0)).toEqual(what === '' ? [true, true, true] : [false, false, false]);
      const trace = checkTrace(file);
      expect(trace.other).toMatchObject({ ranks: 3, disordered: 0 });
      expect(trace.of(1, 'epoch').some(({ args }) => args['unfinished'] === true)).toBe(what === 'crash');
    }
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('is written by a world of one', async () => {
    const file = join(folder, 'alone.json');
    const child = spawn(process.execPath, [PROGRAM, 'many'], {
      env: { ...process.env, ONESIDED_TRACE: file, ONESIDED_TRACE_EVENTS: '4096' },
    });
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0);
    expect(checkTrace(file).of(0, 'operation').length).toBe(1000);
  });

  it('changes nothing of what the calls do', async () => {
    const file = join(folder, 'epochs.json');
    await runRanks('window-epochs', { kind: 'processes', size: 2, env: { ONESIDED_TRACE: file } });
    checkTrace(file);
    await runRanks('trace', { kind: 'threads', size: 2, env: { ONESIDED_TRACE: file, ONESIDED_DEBUG: 'requests' } });
    expect(checkTrace(file).flowsOf('request').length).toBeGreaterThan(0);
  });
});

it('nothing of it is there in a run that is not traced', async () => {
  const script = join(folder, 'plain.mjs');
  writeFileSync(
    script,
    `import { init, Window } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
const world = await init();
const win = await Window.allocate(world, Uint8Array, 8);
const own = [...Object.getOwnPropertyNames(win), ...Object.getOwnPropertyNames(world)];
const found = own.filter((name) => ['put', 'fence', 'lock', 'barrier'].includes(name));
const { recorder, progress } = world.job;
console.log(JSON.stringify({ found, recorder: recorder === undefined, progress: progress.constructor.name }));
await win.free();
await world.finalize();`,
  );
  const { stdout } = await onesided('run', '-n', '1', '--ranks', 'threads', '--no-prefix', script);
  expect(JSON.parse(stdout)).toEqual({ found: [], recorder: true, progress: 'Progress' });
  expect(existsSync(join(folder, 'plain.json'))).toBe(false);
});

/** Ranks that find each other by an address, as under a launcher of others. */
async function launch(size: number, env: Record<string, string>, what: string): Promise<{ code: number | null }[]> {
  const port = await freePort();
  const common = {
    ...process.env,
    ...env,
    ONESIDED_SIZE: String(size),
    ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
    ONESIDED_SECRET: 'a secret of tests, of traces',
  };
  return Promise.all(
    Array.from({ length: size }, (_, rank) => {
      const child = spawn(process.execPath, [PROGRAM, ...(what === '' ? [] : [what])], {
        env: { ...common, ONESIDED_RANK: String(rank) },
        stdio: 'ignore',
      });
      return new Promise<{ code: number | null }>((resolve) => child.on('close', (code) => resolve({ code })));
    }),
  );
}
