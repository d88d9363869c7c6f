/** MPI 4.1, 12.2.5 to 12.2.7: windows are freed, described, and given hints. */
import assert from 'node:assert/strict';
import { Assert, Lock, Op, Window } from 'onesided';
import { collector, refused, refusedLater, ring } from './requirement.ts';

const { requirements, requirement, shared } = collector();
export const windowAttributes = requirements;

// ---- 12.2.5 free ----------------------------------------------------------------------------------------------------

requirement('12.2.5', 'a freed window refuses every call', 'mpi4py/testFree', async (t) => {
  const win = await Window.allocate(t.comm, Float64Array, 1);
  await win.free();
  refused('ERR_WIN', () => win.put(new Float64Array(1), 0, 0));
  refused('ERR_WIN', () => win.get(new Float64Array(1), 0, 0));
  refused('ERR_WIN', () => win.accumulate(new Float64Array(1), 0, 0, Op.SUM));
  refused('ERR_WIN', () => win.fetchAndOp(new Float64Array(1), new Float64Array(1), 0, 0, Op.SUM));
  await refusedLater('ERR_WIN', () => win.fence());
  await refusedLater('ERR_WIN', () => win.lock(0, Lock.SHARED));
  await refusedLater('ERR_WIN', () => win.flushAll());
  refused('ERR_WIN', () => win.sync());
});
requirement(
  '12.2.5',
  'free returns only when all ranks have called it, so that no access comes too late',
  '',
  async (t) => {
    const win = await Window.allocate(t.comm, Float64Array, 1);
    await win.lockAll();
    for (let i = 0; i < 100; i++) win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
    await win.unlockAll();
    const counted = t.rank === 0 ? t.comm.allocMem(Float64Array, 1) : undefined;
    await win.free();
    if (counted !== undefined) t.comm.freeMem(counted);
  },
);
requirement(
  '12.2.5',
  'operations that are pending when a fence epoch ends are complete before free returns',
  'armci/test_malloc',
  async (t) => {
    const memory = t.comm.allocMem(Float64Array, t.size);
    const win = await Window.create(t.comm, memory);
    await win.fence();
    for (const target of t.ranks) win.put(Float64Array.of(t.rank + 1), target, t.rank);
    await win.fence(Assert.NO_SUCCEED);
    await win.free();
    assert.deepEqual(
      [...memory],
      t.ranks.map((rank) => rank + 1),
    );
    t.comm.freeMem(memory);
  },
);
requirement('12.2.5', 'memory that is part of a window cannot be freed', 'mpich/allocmem', async (t) => {
  const memory = t.comm.allocMem(Float64Array, 1);
  const win = await Window.create(t.comm, memory);
  refused('ERR_BUFFER', () => t.comm.freeMem(memory));
  await win.free();
  t.comm.freeMem(memory);
});

// ---- 12.2.6 attributes ----------------------------------------------------------------------------------------------

requirement(
  '12.2.6',
  'a window reports the base and size of its part, its unit and its flavour',
  'mpich/baseattrwin mpich/win_flavors mpi4py/testGetAttributes mpi4py/testGetMemory',
  async (t) => {
    await t.window(Int16Array, 6, (win) => {
      assert.deepEqual([win.local.length, win.dispUnit, win.flavor], [6, 2, 'allocate']);
    });
    const memory = t.comm.allocMem(Int16Array, 6);
    await t.using(Window.create(t.comm, memory, { dispUnit: 1 }), (win) => {
      assert.equal(win.local.buffer, memory.buffer);
      assert.deepEqual([win.local.length, win.dispUnit, win.flavor], [6, 1, 'create']);
    });
    t.comm.freeMem(memory);
  },
);
shared('12.2.6', 'shared and dynamic windows report their flavour, too', 'mpich/win_flavors', async (t) => {
  await t.using(Window.allocateShared(t.comm, Int32Array, 1), (win) => assert.equal(win.flavor, 'shared'));
  await t.using(Window.createDynamic(t.comm), (win) => {
    assert.equal(win.flavor, 'dynamic');
    assert.equal(win.local.length, 0);
  });
});
requirement('12.2.6', 'a window reports its memory model: unified', 'armci/test_win_model', (t) =>
  t.window(Int32Array, 1, (win) => assert.equal(win.model, 'unified')),
);
requirement(
  '12.2.6',
  "a window's group has the ranks of its communicator, in the same order",
  'mpich/getgroup',
  async (t) => {
    const reversed = (await t.comm.split(0, -t.rank))!;
    const win = await Window.allocate(reversed, Float64Array, 1);
    assert.ok(win.group.equals(reversed.group));
    assert.equal(win.group.rank, t.size - 1 - t.rank);
    assert.deepEqual(win.group.translate([0], t.comm.group), [t.size - 1]);
    await win.free();
    await reversed.finalize();
  },
);
requirement('12.2.6', 'a window has a name, which appears in its errors', 'mpich/winname mpi4py/testGetSetName', (t) =>
  t.window(
    Float64Array,
    1,
    (win) => {
      assert.equal(win.name, 'scores');
      assert.throws(() => win.put(new Float64Array(1), 0, 0), /scores/);
    },
    { name: 'scores' },
  ),
);
requirement('12.2.6', 'the name of a window can be changed', 'mpich/winname mpi4py/testGetSetName', (t) =>
  t.window(Float64Array, 1, (win) => {
    win.name = 'later';
    assert.equal(win.name, 'later');
    assert.throws(() => win.put(new Float64Array(1), 0, 0), /later/);
  }),
);

// ---- 12.2.7 info ----------------------------------------------------------------------------------------------------

requirement('12.2.7', 'getInfo returns the hints in use, whether given or by default', 'mpich/win_info', async (t) => {
  await t.window(
    Float64Array,
    1,
    (win) => {
      const info = win.getInfo();
      assert.equal(String(info['no_locks']), 'true');
      assert.equal(String(info['same_size']), 'true');
      assert.equal(String(info['accumulate_ops']), 'same_op');
    },
    { info: { no_locks: true, same_size: true, accumulate_ops: 'same_op' } },
  );
  await t.window(Float64Array, 1, (win) => {
    const info = win.getInfo();
    assert.equal(String(info['no_locks']), 'false');
    assert.equal(String(info['accumulate_ordering']), 'rar,raw,war,waw');
    assert.equal(String(info['accumulate_ops']), 'same_op_no_op');
  });
});
requirement('12.2.7', 'setInfo changes, at all ranks, a hint that may change', 'mpich/win_info', (t) =>
  t.window(Float64Array, 1, async (win) => {
    await win.setInfo({ accumulate_ordering: 'none' });
    assert.equal(String(win.getInfo()['accumulate_ordering']), 'none');
  }),
);
requirement(
  '12.2.7',
  'setInfo ignores a hint that can no longer change, and getInfo shows this',
  'mpich/win_info',
  (t) =>
    t.window(Float64Array, 1, async (win) => {
      const before = win.getInfo();
      win.setInfo({ no_locks: true, same_size: 'true', fence: 'deferred', accumulate_ordering: 'none' });
      assert.deepEqual(win.getInfo(), { ...before, accumulate_ordering: 'none' });
      await win.lock(t.next, Lock.SHARED);
      await win.unlock(t.next);
      await ring(t, win);
    }),
);
requirement(
  '12.2.7',
  'a window with no_locks refuses locks, and everything else works',
  'mpich/badrma mpich/lockopts',
  (t) =>
    t.window(
      Float64Array,
      1,
      async (win) => {
        await refusedLater('ERR_RMA_SYNC', () => win.lock(t.next, Lock.SHARED));
        await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
        await ring(t, win);
      },
      { info: { no_locks: 'true' } },
    ),
);
requirement('12.2.7', 'same_size and same_disp_unit are accepted if they are true', 'mpich/win_info', (t) =>
  t.window(Float64Array, 4, (win) => ring(t, win), { info: { same_size: 'true', same_disp_unit: true } }),
);
requirement(
  '12.2.7',
  'every accumulate_ordering that MPI defines is accepted, and no other',
  'mpich/acc_ordering',
  async (t) => {
    for (const accumulate_ordering of ['none', 'rar', 'raw,war', 'rar,raw,war,waw']) {
      await t.window(Float64Array, 1, (win) => ring(t, win), { info: { accumulate_ordering } });
    }
    for (const accumulate_ordering of ['strict', '', 'raw;war', 'none,rar']) {
      await refusedLater('ERR_INFO_VALUE', () =>
        Window.allocate(t.comm, Float64Array, 1, { info: { accumulate_ordering } }),
      );
    }
  },
);
requirement('12.2.7', 'mpi_accumulate_granularity takes a number of bytes', '', (t) =>
  t.window(Float64Array, 1, (win) => ring(t, win), { info: { mpi_accumulate_granularity: 8 } }),
);
requirement('12.2.7', 'unknown hints are ignored, and getInfo does not return them', 'mpich/win_info', async (t) => {
  const info = { no_lock: true, mpi_minimum_memory_alignment: '64', planning: 'issue-order', colour: 7 } as object;
  await t.window(
    Float64Array,
    1,
    async (win) => {
      win.setInfo({ 'made up': '1' } as object);
      for (const key of [...Object.keys(info), 'made up']) assert.ok(!(key in win.getInfo()), key);
      await ring(t, win);
    },
    { info },
  );
  for (const key of ['', 'x'.repeat(256)]) {
    await refusedLater('ERR_INFO_KEY', () =>
      Window.allocate(t.comm, Float64Array, 1, { info: { [key]: '1' } as object }),
    );
  }
});
