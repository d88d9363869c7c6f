/**
 * BSP2's primitives (Martin and Tiskin 1999, section 2), a case for each thing that their definitions say, on whatever
 * ranks there are; and random programs beside a sequential model.
 */
import assert from 'node:assert/strict';
import type { Communicator, RmaError } from 'onesided';
import { type Bsp2, type BspOptions, begin, type Units } from 'onesided/bsp';
import type { Cases } from './cases.ts';
import { Random } from './random.ts';

export interface UnitRuns extends BspOptions {
  readonly units: Units;
  /** How many processes, one after the other, are expected to be a unit. */
  readonly each: number;
  readonly seed: number;
  /** Every second call blocks; not where ranks are tasks. */
  readonly blocks: boolean;
  readonly programs: number;
}

interface Calls {
  sync(): Promise<void>;
  usync(): Promise<void>;
}

type Run = (bsp: Bsp2, calls: Calls, runs: UnitRuns) => Promise<void> | void;

const codeOf = (code: string) => (error: unknown) => (error as RmaError).code === code;

/** The process of this unit that comes after this one, and the one before. */
function neighbours(bsp: Bsp2): readonly [right: number, left: number] {
  const pids = bsp.pidsOf();
  const at = pids.indexOf(bsp.pid);
  return [pids[(at + 1) % pids.length], pids[(at + pids.length - 1) % pids.length]];
}

/** A process of another unit, if there is one. */
function stranger(bsp: Bsp2): number | undefined {
  return bsp.units === 1 ? undefined : bsp.pidsOf((bsp.uid + 1) % bsp.units)[0];
}

const PRIMITIVES: Record<string, Run> = {
  'uid and units say which unit this process is in, and of how many': (bsp, _, { each }) => {
    assert.equal(bsp.units, Math.ceil(bsp.nprocs / each));
    assert.equal(bsp.uid, Math.floor(bsp.pid / each));
    const all = Array.from({ length: bsp.units }, (_, uid) => bsp.pidsOf(uid)).flat();
    assert.deepEqual(
      all,
      all.map((_, pid) => pid),
    );
    assert.ok(bsp.pidsOf().includes(bsp.pid));
    assert.throws(() => bsp.pidsOf(bsp.units), codeOf('ERR_ARG'));
  },

  'usync: a unit has as many supersteps as it likes between two of all': async (bsp, { sync, usync }) => {
    for (let i = 0; i < 3 * bsp.uid + 1; i++) {
      assert.equal(bsp.unitSuperstep, i);
      await usync();
    }
    assert.equal(bsp.superstep, 0);
    await sync();
    assert.equal(bsp.superstep, 1);
    assert.equal(bsp.unitSuperstep, 3 * bsp.uid + 2);
  },

  'uput: is there after usync and not before, and the source may be changed at once': async (bsp, { sync, usync }) => {
    const x = new Float64Array(2).fill(-1);
    bsp.pushReg(x);
    await sync();
    const [right, left] = neighbours(bsp);
    const source = Float64Array.of(bsp.pid + 0.5);
    bsp.uput(right, source, x, 1);
    source[0] = Number.NaN;
    assert.deepEqual(x, Float64Array.of(-1, -1));
    await usync();
    assert.deepEqual(x, Float64Array.of(-1, left + 0.5));
  },

  'uput: what usync has not ended is there after sync, before puts are written': async (bsp, { sync }) => {
    const x = new Int32Array(2);
    bsp.pushReg(x);
    await sync();
    const [right, left] = neighbours(bsp);
    bsp.put(right, Int32Array.of(2), x, 0);
    bsp.uput(right, Int32Array.of(1, 1), x);
    await sync();
    assert.deepEqual(x, Int32Array.of(2, 1), `from ${left}`);
  },

  'uget: the value is that of the end of the superstep of the unit, and before any uput': async (
    bsp,
    { sync, usync },
  ) => {
    const x = Int32Array.of(bsp.pid, 7);
    bsp.pushReg(x);
    await sync();
    const [right] = neighbours(bsp);
    const got = new Int32Array(2);
    bsp.uput(right, Int32Array.of(-5), x, 1);
    bsp.uget(right, x, 0, got);
    x[0] += 100;
    await usync();
    assert.deepEqual(got, Int32Array.of(right + 100, 7));
    assert.equal(x[1], -5);
  },

  'uput and uget: more than a chunk, bytes, places and parts': async (bsp, { sync, usync }) => {
    const x = new Float64Array(10_000);
    bsp.pushReg(x);
    await sync();
    const [right, left] = neighbours(bsp);
    bsp.uput(
      right,
      Float64Array.from(x, (_, i) => bsp.pid + i),
      x,
    );
    await usync();
    assert.ok(x.every((value, i) => value === left + i));
    const got = new Float64Array(9_000);
    bsp.uget(right, x, 500, got, 8_000, 1_000);
    bsp.uput(right, new Uint8Array(8), x, 0);
    await usync();
    assert.ok(got.every((value, i) => value === (i < 1000 ? 0 : bsp.pid + i - 500)));
    assert.equal(x[0], 0);
  },

  'put: goes to all units, and waits for sync however often usync is called': async (bsp, { sync, usync }) => {
    const x = new Int32Array(bsp.nprocs).fill(-1);
    bsp.pushReg(x);
    await sync();
    for (let pid = 0; pid < bsp.nprocs; pid++) bsp.put(pid, Int32Array.of(bsp.pid), x, bsp.pid);
    await usync();
    await usync();
    assert.ok(x.every((value) => value === -1));
    await sync();
    assert.ok(x.every((value, pid) => value === pid));
  },

  'get: sees what was put within the unit in the same superstep of all': async (bsp, { sync }) => {
    const x = Int32Array.of(1);
    bsp.pushReg(x);
    await sync();
    const got = new Int32Array(1);
    bsp.get((bsp.pid + 1) % bsp.nprocs, x, 0, got);
    bsp.uput(neighbours(bsp)[0], Int32Array.of(2), x);
    await sync();
    assert.equal(got[0], 2);
  },

  'usync does not make registrations: they come with sync': async (bsp, { sync, usync }) => {
    const x = new Int32Array(1);
    bsp.pushReg(x);
    await usync();
    assert.throws(() => bsp.uput(bsp.pid, x, x), codeOf('ERR_RMA_ATTACH'));
    await sync();
    bsp.uput(bsp.pid, Int32Array.of(9), x);
    bsp.popReg(x);
    await usync();
    assert.equal(x[0], 9);
    bsp.uput(bsp.pid, Int32Array.of(10), x);
    await sync();
    assert.equal(x[0], 10);
    assert.throws(() => bsp.uput(bsp.pid, x, x), codeOf('ERR_RMA_ATTACH'));
  },

  'wrong arguments are refused, and nothing is put': async (bsp, { sync, usync }) => {
    const x = new Int32Array(2);
    const y = Float64Array.of(7);
    bsp.pushReg(y);
    bsp.pushReg(x);
    await sync();
    const other = stranger(bsp);
    if (other !== undefined) {
      assert.throws(() => bsp.uput(other, x, x), /is in unit \d+, this one in unit \d+; use bsp\.put/);
      assert.throws(() => bsp.uget(other, x, 0, x), codeOf('ERR_RANK'));
    }
    assert.throws(() => bsp.uput(bsp.nprocs, x, x), codeOf('ERR_RANK'));
    assert.throws(() => bsp.uput(bsp.pid, x, x, 1), codeOf('ERR_RMA_RANGE'));
    assert.throws(() => bsp.uput(bsp.pid, new Float32Array(1), x), codeOf('ERR_TYPE'));
    assert.throws(() => bsp.uget(bsp.pid, x, 0, x, 3), codeOf('ERR_BUFFER'));
    assert.throws(() => bsp.uput(bsp.pid, [1] as never, x), codeOf('ERR_BUFFER'));
    // Calls that repeat the one before are refused, too.
    const again = (): void => bsp.put(bsp.pid, y, y, 0, 1, 0);
    for (let i = 0; i < 3; i++) again();
    const ending = bsp.usync();
    // Alone in its unit, a process may have ended it already.
    if (bsp.unitSuperstep === 1) {
      assert.throws(() => bsp.uput(bsp.pid, x, x), /superstep of the unit is ending/);
      assert.throws(again, /superstep of the unit is ending/);
    }
    await ending;
    await usync();
    assert.deepEqual(x, new Int32Array(2));
  },

  'a usync whose wait has ended early goes on in the next one': async (bsp, { sync, usync }) => {
    const x = new Int32Array(1);
    bsp.pushReg(x);
    await sync();
    const pids = bsp.pidsOf();
    if (pids.length > 1 && bsp.pid === pids[0]) {
      bsp.uput(pids[1], Int32Array.of(3), x);
      await assert.rejects(bsp.usync({ timeout: 1 }), codeOf('ERR_RMA_TIMEOUT'));
      assert.throws(() => bsp.put(0, x, x), /call usync\(\) again/);
      for (const pid of pids.slice(1)) await bsp.comm.send(x, pid);
    } else if (pids.length > 1) await bsp.comm.receive(new Int32Array(1), pids[0]);
    await usync();
    if (bsp.pid === pids[1]) assert.equal(x[0], 3);
  },

  'random programs leave what a sequential model leaves': async (bsp, calls, { seed, programs }) => {
    for (let i = 0; i < programs; i++) await random(bsp, calls, seed + i);
  },
};

/** Behind these, processes of a unit have disagreed. */
const DISAGREEMENTS: Record<string, Run> = {
  'processes of a unit that call usync and sync learn of it': async (bsp, { sync, usync }) => {
    const pids = bsp.pidsOf();
    if (pids.length === 1) return;
    const first = bsp.pid === pids[0];
    await assert.rejects(
      first ? sync() : usync(),
      (error: RmaError) =>
        error.code === 'ERR_COLLECTIVE' && /called u?sync\(\), this one u?sync\(\)/.test(error.message),
    );
    await assert.rejects(bsp.sync(), codeOf('ERR_COLLECTIVE'));
    await assert.rejects(bsp.usync(), codeOf('ERR_COLLECTIVE'));
  },
};

/** Elements of a variable that each process writes at each other one. */
const OWN = 3;

/** One element that a process puts to another one, or gets. */
interface Asked {
  readonly puts: boolean;
  readonly from: number;
  readonly to: number;
  readonly at: number;
  readonly value: number;
  /** Where a get goes, at the process that asks. */
  readonly into: Float64Array;
}

/** What processes ask for in a superstep of their unit: within it, and of all. */
interface UnitStep {
  readonly inUnit: readonly Asked[];
  readonly ofAll: readonly Asked[];
}

/**
 * Every process draws the whole program, and computes what all have: gets, then puts, of a unit's supersteps; and of
 * all processes', after the last one of each unit. A process writes places of its own only, since between processes
 * there is no order.
 */
async function random(bsp: Bsp2, calls: Calls, seed: number): Promise<void> {
  const draw = new Random(seed, bsp.nprocs, bsp.units);
  const label = `seed ${seed}, process ${bsp.pid} of ${bsp.nprocs} in ${bsp.units} units`;
  const x = new Float64Array(OWN * bsp.nprocs);
  const model = Array.from({ length: bsp.nprocs }, () => new Float64Array(x.length));
  bsp.pushReg(x);
  await calls.sync();
  for (let step = 0; step < 4; step++) {
    const units = Array.from({ length: bsp.units }, (_, uid) => drawUnit(bsp, draw, uid, x.length));
    const expected = [...units.flatMap((steps) => steps.flatMap(({ inUnit }) => carryOut(inUnit, model)))];
    expected.push(
      ...carryOut(
        units.flatMap((steps) => steps.flatMap(({ ofAll }) => ofAll)),
        model,
      ),
    );
    const own = units[bsp.uid];
    for (const [i, { inUnit, ofAll }] of own.entries()) {
      for (const one of ofAll.filter(({ from }) => from === bsp.pid)) {
        if (one.puts) bsp.put(one.to, Float64Array.of(one.value), x, one.at);
        else bsp.get(one.to, x, one.at, one.into);
      }
      for (const one of inUnit.filter(({ from }) => from === bsp.pid)) {
        if (one.puts) bsp.uput(one.to, Float64Array.of(one.value), x, one.at);
        else bsp.uget(one.to, x, one.at, one.into);
      }
      // The last superstep of a unit is ended by sync.
      if (i < own.length - 1) await calls.usync();
    }
    await calls.sync();
    for (const { from, into, value } of expected) {
      if (from === bsp.pid) assert.equal(into[0], value, `${label}, step ${step}: a get`);
    }
    assert.deepEqual(x, model[bsp.pid], `${label}, step ${step}: the variable`);
  }
  bsp.popReg(x);
  await calls.sync();
}

function drawUnit(bsp: Bsp2, draw: Random, uid: number, length: number): UnitStep[] {
  const pids = bsp.pidsOf(uid);
  const all = Array.from({ length: bsp.nprocs }, (_, pid) => pid);
  const ask = (targets: readonly number[]): Asked => {
    const [puts, from, to] = [draw.chance(0.6), draw.pick(pids), draw.pick(targets)];
    const at = puts ? OWN * from + draw.below(OWN) : draw.below(length);
    return { puts, from, to, at, value: draw.between(1, 1e6), into: new Float64Array(1) };
  };
  return Array.from({ length: draw.between(1, 3) }, () => ({
    inUnit: Array.from({ length: draw.below(6) }, () => ask(pids)),
    ofAll: Array.from({ length: draw.below(4) }, () => ask(all)),
  }));
}

/** @returns the gets, with the values that they have */
function carryOut(asked: readonly Asked[], model: readonly Float64Array[]): Asked[] {
  const gets = asked.filter(({ puts }) => !puts).map((one) => ({ ...one, value: model[one.to][one.at] }));
  for (const { puts, to, at, value } of asked) if (puts) model[to][at] = value;
  return gets;
}

export function unitCases(runs: UnitRuns): Cases {
  const { seed: _, blocks, programs: __, each: ___, ...given } = runs;
  let calls = 0;
  const cases: Cases = {};
  for (const [name, run] of Object.entries({ ...PRIMITIVES, ...DISAGREEMENTS })) {
    cases[name] = async (world) => {
      const bsp = await begin(world, given);
      const turn = (): boolean => blocks && ++calls % 2 === 0;
      await run(
        bsp,
        {
          sync: async () => (turn() ? bsp.syncSync() : bsp.sync()),
          usync: async () => (turn() ? bsp.usyncSync() : bsp.usync()),
        },
        runs,
      );
      if (!(name in DISAGREEMENTS)) return bsp.end();
      // A process that is alone in its unit has nobody to disagree with, and would wait for those who have ended.
      if (bsp.pidsOf().length > 1) await assert.rejects(bsp.end(), codeOf('ERR_COLLECTIVE'));
    };
  }
  cases['a report counts what hpput has stored before and after usync'] = (world) => reported(world, runs);
  cases['begin: other units at a process are refused everywhere, and what are no units'] = (world) => refused(world);
  return cases;
}

/** All others store doubles to process 0 one by one, some before a superstep of their unit ends, some behind it. */
async function reported(world: Communicator, { units, delivery }: UnitRuns): Promise<void> {
  const [before, after] = [5, 7];
  const most = before + after;
  const bsp = await begin(world, { units, report: true, ...(delivery !== undefined && { delivery }) });
  const x = world.allocMem(Float64Array, most * world.size).fill(-1);
  bsp.pushReg(x);
  await bsp.sync();
  await bsp.sync();
  const source = Float64Array.from({ length: most }, (_, i) => i);
  const put = (i: number): void => bsp.hpput(0, source, x, most * bsp.pid + i, 1, i);
  if (bsp.pid > 0) for (let i = 0; i < before; i++) put(i);
  await bsp.usync();
  if (bsp.pid > 0) for (let i = before; i < most; i++) put(i);
  await bsp.sync();
  if (bsp.pid === 0) assert.ok(x.every((value, i) => value === (i < most ? -1 : i % most)));
  const { supersteps } = await bsp.report();
  const all = most * (world.size - 1);
  const found = supersteps.slice(-1).map(({ out, in: into, h, messages }) => [out, into, h, messages]);
  assert.deepEqual(found, [[world.size === 1 ? 0 : most, all, all, all]]);
  await bsp.end();
  world.freeMem(x);
}

async function refused(world: Communicator): Promise<void> {
  await assert.rejects(begin(world, { units: 0 }), RangeError);
  await assert.rejects(begin(world, { units: 'nodes' as never }), TypeError);
  if (world.size === 1) return;
  await assert.rejects(begin(world, { units: world.rank === 0 ? 1 : 2 }), /gave units '[12]', this rank '[12]'/);
  await assert.rejects(begin(world, world.rank === 0 ? {} : { units: 'hosts' }), /units '(none|hosts)', this rank/);
}
