/**
 * What must not break a job on a real device, and must not be left there. `--what=open` opens the device and registers
 * memory, alone; `--what=killed` has rank 1 die while the others write to it; without it, cases for all ranks
 * (`--only=NAME`). Run by test/rdma/robustness.test.ts.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { type Communicator, init, Op, type RmaError, Window } from 'onesided';
import { Access, openRdmaDevice } from 'onesided/verbs';
import { argument, caseOf, runCases } from './support/cases.ts';

const MEBIBYTE = 2 ** 20;

interface Resources {
  /** Of the device's objects, of all processes, and what this one has locked. */
  readonly counts: Record<string, number>;
  readonly threads: number;
}

function resources(): Resources {
  const shown = execFileSync('rdma', ['resource', 'show'], { encoding: 'utf8' });
  const counts = [...shown.matchAll(/\b(pd|cq|qp|mr|ctx|srq) (\d+)/g)].map(([, kind, n]) => [kind, Number(n)] as const);
  const pinned = /^VmPin:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  const threads = readdirSync('/proc/self/task').length;
  return { counts: { ...Object.fromEntries(counts), pinnedKiB: Number(pinned) }, threads };
}

/** When nobody makes or frees anything. */
async function resourcesOfAll(world: Communicator): Promise<Resources> {
  await world.barrier();
  const found = resources();
  await world.barrier();
  return found;
}

async function useWindow(world: Communicator, round: number): Promise<void> {
  const next = (world.rank + 1) % world.size;
  const win = await Window.allocate(world, Float64Array, 1024);
  await win.fence();
  win.put(
    Float64Array.from({ length: 64 }, () => round),
    next,
    0,
  );
  win.accumulate(Float64Array.of(round), next, 100, Op.SUM);
  await win.fence();
  assert.deepEqual([win.local[0], win.local[63], win.local[100]], [round, round, round]);
  await win.free();
}

/** Windows come and go, and leave neither objects of the device nor locked memory nor threads. */
async function windows(world: Communicator): Promise<void> {
  for (let round = 0; round < 3; round++) await useWindow(world, round);
  const before = await resourcesOfAll(world);
  for (let round = 0; round < Number(argument('count')); round++) await useWindow(world, round);
  const after = await resourcesOfAll(world);
  assert.deepEqual(after.counts, before.counts);
  // The one that waits for the device starts when there is first something to wait for.
  assert.ok(after.threads <= before.threads + 1, `${before.threads} threads became ${after.threads}`);
}

/** More notifications than the target has receives, while it computes: they wait, and none is lost. */
async function flood(world: Communicator): Promise<void> {
  const { rank } = world;
  const puts = 3000;
  const win = await Window.allocate(world, Float64Array, puts, { info: { fence: 'remote-notify' } });
  await win.fence();
  if (rank === 0) for (let i = 0; i < puts; i++) win.put(Float64Array.of(i + 1), 1, i);
  else for (const until = performance.now() + 500; performance.now() < until; );
  await win.fence();
  if (rank === 1) assert.ok(win.local.every((value, i) => value === i + 1));
  await win.free();
}

/** More origins than are kept registered. */
async function origins(world: Communicator): Promise<void> {
  const win = await Window.allocate(world, Float64Array, 150 * 16);
  const next = (world.rank + 1) % world.size;
  await win.fence();
  for (let i = 0; i < 150; i++) win.put(new Float64Array(16).fill(i), next, 16 * i);
  await win.fence();
  assert.ok(win.local.every((value, i) => value === Math.floor(i / 16)));
  await win.free();
}

function open(): object {
  try {
    const context = openRdmaDevice({}, 0, []);
    const pd = context.allocPd();
    const memory = context.allocateMemory(MEBIBYTE);
    pd.registerMemory(memory, 0, MEBIBYTE, Access.LOCAL_WRITE);
    context.close();
    return { opened: context.device.name };
  } catch (error) {
    const { code, message } = error as RmaError;
    return { code, message };
  }
}

async function killed(): Promise<void> {
  const world = await init();
  const win = await Window.allocate(world, Uint8Array, MEBIBYTE);
  await win.lockAll();
  await world.barrier();
  const bytes = new Uint8Array(MEBIBYTE);
  for (let round = 0; ; round++) {
    if (world.rank === 1 && round === 2) process.kill(process.pid, 'SIGKILL');
    for (let i = 0; i < 4; i++) win.put(bytes, 1, 0);
    await win.flush(1);
  }
}

const what = argument('what');
if (what === 'open') console.log(JSON.stringify(open()));
else if (what === 'killed') {
  await killed().catch(({ code, rank }) => console.log(JSON.stringify({ code, rank })));
} else {
  await runCases([
    caseOf('windows that come and go leave nothing', windows, ['windows']),
    caseOf('notifications without a receive wait, and none is lost', flood, ['flood']),
    caseOf('more origins than are kept registered arrive', origins, ['origins']),
  ]);
}
