/** `hpput` and `hpget`: what they do, and when they must not yet do it. */
import assert from 'node:assert/strict';
import type { Bsp } from 'onesided/bsp';

/** Milliseconds in which a process does nothing. */
const STOPS = 30;

export const DIRECT: Record<string, (bsp: Bsp, sync: () => Promise<void>) => Promise<void>> = {
  'hpput and hpget do what put and get do': async (bsp, sync) => {
    const x = Float64Array.of(bsp.pid, 0);
    bsp.pushReg(x);
    await sync();
    const right = (bsp.pid + 1) % bsp.nprocs;
    const got = new Float64Array(1);
    bsp.hpput(right, Float64Array.of(7 + bsp.pid), x, 1);
    bsp.hpget(right, x, 0, got);
    await sync();
    assert.deepEqual([got[0], x[1]], [right, 7 + ((bsp.pid + bsp.nprocs - 1) % bsp.nprocs)]);
  },

  'hpput and hpget of many elements, from and to any place, into memory of both kinds': async (bsp, sync) => {
    const right = (bsp.pid + 1) % bsp.nprocs;
    const left = (bsp.pid + bsp.nprocs - 1) % bsp.nprocs;
    const length = 5000;
    const own = new Float64Array(length);
    const library = bsp.comm.allocMem(Float64Array, length);
    for (const x of [own, library, library.subarray(7, 4500)]) {
      for (let i = 0; i < x.length; i++) x[i] = i + 10_000 * bsp.pid;
      bsp.pushReg(x);
      await sync();
      const source = Float64Array.from({ length: 1000 }, (_, i) => -i - bsp.pid);
      bsp.hpput(right, source, x, 3001, 700, 200);
      bsp.hpput(right, source, x, 3801, 1);
      const got = new Float64Array(2500);
      bsp.hpget(right, x, 100, got, 2400, 50);
      bsp.hpget(bsp.pid, x, 1, got, 1, 2499);
      await sync();
      assert.ok(
        got.every(
          (v, i) =>
            v === (i < 50 || (i >= 2450 && i < 2499) ? 0 : i === 2499 ? 1 + 10_000 * bsp.pid : i + 50 + 10_000 * right),
        ),
      );
      const there = (i: number): number => i + 10_000 * bsp.pid;
      assert.ok(
        x.every((v, i) => v === (i >= 3001 && i < 3701 ? -(i - 3001 + 200) - left : i === 3801 ? -left : there(i))),
      );
      bsp.popReg(x);
      await sync();
    }
    bsp.comm.freeMem(library);
  },

  'hpput: what was put is there after sync, whatever the process computes meanwhile': async (bsp, sync) => {
    const x = bsp.comm.allocMem(Int32Array, 4096 * bsp.nprocs);
    bsp.pushReg(x);
    await sync();
    for (let round = 1; round < 6; round++) {
      const source = new Int32Array(4096).fill(100 * bsp.pid + round);
      for (let pid = 0; pid < bsp.nprocs; pid++) bsp.hpput(pid, source, x, 4096 * bsp.pid);
      if ((bsp.pid + round) % 2 === 0) await bsp.comm.compute(500);
      await sync();
      assert.ok(x.every((value, i) => value === 100 * Math.floor(i / 4096) + round));
      await sync();
    }
    bsp.popReg(x);
    await sync();
    bsp.comm.freeMem(x);
  },

  'hpput: whoever has not ended the superstep before is not stored to': async (bsp, sync) => {
    const x = bsp.comm.allocMem(Float64Array, 2).fill(0);
    bsp.pushReg(x);
    await sync();
    await sync();
    const source = Float64Array.of(1, 5, 9);
    for (let round = 0; round < 3; round++) {
      if (bsp.pid === 1) {
        for (let i = 0; i < 3; i++) bsp.hpput(0, source, x, 0, 1, 0);
        bsp.put(0, source, x, 1, 1, 1);
      }
      const ending = bsp.sync();
      // Has come to the end, and what was put is not in place yet.
      if (bsp.pid === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOPS);
      await ending;
      if (bsp.pid === 1) for (let i = 0; i < 3; i++) bsp.hpput(0, source, x, 1, 1, 2);
      await sync();
      if (bsp.pid === 0 && bsp.nprocs > 1) assert.deepEqual([...x], [1, 9]);
      await sync();
    }
    bsp.popReg(x);
    await sync();
    bsp.comm.freeMem(x);
  },
};
