/** Hints are read, shown, compared and changed by one table (src/window/creation/window-info.ts). */
import { expect, it } from 'vitest';
import { Assert, Lock, Window } from '../../src/index.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { FENCE_SCHEMES, fenceNamed } from '../../src/sync/fence/fence-kinds.ts';
import { LOCK_SCHEMES, lockNamed } from '../../src/sync/lock/lock-kinds.ts';
import { NONCONTIGUOUS_NAMES, noncontiguousNamed } from '../../src/transfer/layouts/layout-kinds.ts';
import { UPDATE_SCHEMES, updateNamed } from '../../src/transfer/served/update-kinds.ts';
import {
  changeInfo,
  hintThatDiffers,
  numberOf,
  readInfo,
  showInfo,
  type WindowInfo,
} from '../../src/window/creation/window-info.ts';

const read = (info?: WindowInfo) =>
  readInfo('Window.create', info, { immediateCompletion: true, size: 4, virtualTime: false });

/** Values of hints that must be alike, other than the defaults. */
const OTHERS: WindowInfo[] = [
  ...FENCE_SCHEMES.filter((fence) => fence !== 'immediate').map((fence) => ({ fence })),
  ...LOCK_SCHEMES.filter((name) => !lockNamed(name).isDefault).map((lock) => ({ lock })),
  { lock_mode: 'network' },
  { lock_cpu: 'one-word' },
  { lock_order: 'arrival' },
  { lock_migration: 'every-request' },
  { lock_migration: 'threshold:999999998' },
  { lock_migration: 'threshold:999999999' },
  { lock_migration: 'never' },
  { lock_defer: true },
  ...UPDATE_SCHEMES.filter((name) => !updateNamed(name).isDefault).map((update) => ({ update })),
  { schedule: 'interleave' },
  { schedule: 'gets-first' },
  { schedule: 'aggregate' },
  { schedule: 'gets-first,aggregate' },
  { schedule: 'interleave,gets-first,aggregate' },
  { schedule: 'aggregate-gets' },
  { schedule: 'aggregate-gets,aggregate,interleave,gets-first' },
  ...NONCONTIGUOUS_NAMES.filter((name) => !noncontiguousNamed(name).isDefault).map((noncontiguous) => ({
    noncontiguous,
  })),
  { no_locks: true },
  { same_size: true },
  { same_disp_unit: true },
  { alloc_shared_noncontig: true },
  { mpi_accumulate_granularity: 9 },
];

it('ranks tell all that must be alike apart by one number, also the largest', () => {
  const most = numberOf(read(Object.assign({}, ...OTHERS, { lock_migration: 'threshold:999999999' })));
  expect(Number.isSafeInteger(most)).toBe(true);
  const alone = OTHERS.map((info) => numberOf(read(info)));
  expect(new Set([numberOf(read()), ...alone]).size).toBe(OTHERS.length + 1);
});

it('which hint differs is told from two such numbers', () => {
  const plain = numberOf(read());
  expect(hintThatDiffers(plain, plain)).toBeUndefined();
  for (const info of OTHERS) {
    const [name] = Object.keys(info);
    expect(hintThatDiffers(numberOf(read(info)), plain)).toBe(name);
    expect(hintThatDiffers(plain, numberOf(read(info)))).toBe(name);
  }
});

it('of each family, one scheme is the default, wherever the window is', () => {
  expect(LOCK_SCHEMES.filter((name) => lockNamed(name).isDefault)).toEqual(['queue']);
  expect(UPDATE_SCHEMES.filter((name) => updateNamed(name).isDefault)).toEqual(['by-requests']);
  expect(NONCONTIGUOUS_NAMES.filter((name) => noncontiguousNamed(name).isDefault)).toEqual(['multi-write']);
  for (const immediateCompletion of [true, false]) {
    for (let size = 1; size <= 100; size++) {
      const defaults = FENCE_SCHEMES.filter((name) => fenceNamed(name).isDefault?.({ immediateCompletion, size }));
      expect(defaults).toEqual([immediateCompletion ? 'immediate' : size <= 8 ? 'notify-all' : 'remote-notify']);
    }
  }
});

it('what ranks may give differently does not count', () => {
  const free: WindowInfo = { accumulate_ordering: 'none', accumulate_ops: 'same_op', mpi_accumulate_granularity: 8 };
  expect(numberOf(read(free))).toBe(numberOf(read()));
});

it('setInfo changes what may differ, and nothing else', () => {
  const hints = read({ same_size: 'true' });
  const before = showInfo(hints);
  changeInfo('setInfo', hints, Object.assign({}, ...OTHERS));
  expect(showInfo(hints)).toEqual(before);
  changeInfo('setInfo', hints, { accumulate_ordering: 'raw', accumulate_ops: 'same_op', fence: 'deferred' });
  expect(showInfo(hints)).toEqual({ ...before, accumulate_ordering: 'raw', accumulate_ops: 'same_op' });
});

it('schedules are combined in any order, and shown in one', () => {
  const shown = (schedule: string) => showInfo(read({ schedule } as WindowInfo)).schedule;
  expect(shown('interleave,gets-first')).toBe('gets-first,interleave');
  expect(shown('aggregate,interleave,gets-first')).toBe('gets-first,interleave,aggregate');
  for (const wrong of ['', 'fastest', 'issue-order,interleave', 'interleave,interleave', 'interleave,', 'Interleave'])
    expect(() => shown(wrong), wrong).toThrow(/the hint schedule cannot be ".*"; allowed: issue-order, gets-first/);
});

const SCHEMES = [
  ...FENCE_SCHEMES.filter((fence) => fence !== 'immediate').map((fence) => ({ fence })),
  ...LOCK_SCHEMES.map((lock) => ({ lock })),
];
it.each(SCHEMES)('a dynamic window takes %o, and follows it or says in getInfo what it does', async (info) => {
  await runTasks(
    2,
    async (world) => {
      const win = await Window.createDynamic(world, { info });
      const memory = world.allocMem(Float64Array, 2);
      const at = win.attach(memory);
      const there = new Float64Array(2);
      await world.allgather(Float64Array.of(at), there);
      const other = 1 - world.rank;
      await win.fence();
      win.put(Float64Array.of(world.rank + 1), other, there[other]);
      await win.fence(Assert.NO_SUCCEED);
      expect(memory[0]).toBe(other + 1);
      await win.lock(other, Lock.EXCLUSIVE);
      win.put(Float64Array.of(world.rank + 3), other, there[other] + 8);
      await win.unlock(other);
      await world.barrier();
      expect(memory[1]).toBe(other + 3);
      const { fence, lock } = win.getInfo();
      if (fence !== ('fence' in info ? info.fence : fence)) expect(fence).toBe('notify-all');
      if (lock !== ('lock' in info ? info.lock : lock)) expect(lock).toBe('queue');
      await win.free();
    },
    { fabric: 'infinihost-64' },
  );
});
