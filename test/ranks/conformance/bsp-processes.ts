/**
 * What BSPlib requires of processes, supersteps and registration, in our own words (Hill and others 1998; sections are
 * the classes of primitives in its table).
 */
import assert from 'node:assert/strict';
import { begin } from 'onesided/bsp';
import { allLearn, inComputation, refuses, variable } from './bsp-trial.ts';
import { collector, type Requirement } from './requirement.ts';

const { requirement, untested, requirements } = collector();
export const bspProcesses: readonly Requirement[] = requirements;

requirement(
  'initialization',
  'the processes of a computation execute the same program, each with its own data',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1, b.pid);
    assert.equal(x[0], b.pid);
  }),
);
requirement(
  'initialization',
  'bsp_end is a last synchronization: it carries out what was requested before it',
  '',
  async (t) => {
    const bsp = await begin(t.comm);
    const x = new Float64Array(1);
    bsp.pushReg(x);
    await bsp.sync();
    bsp.put((t.rank + 1) % t.size, Float64Array.of(5), x);
    await bsp.end();
    assert.equal(x[0], 5);
  },
);
requirement('initialization', 'no primitive can be called after bsp_end', '', async (t) => {
  const bsp = await begin(t.comm);
  await bsp.end();
  for (const call of [() => bsp.pushReg(null), () => bsp.qsize(), () => bsp.setTagsize(0)]) refuses('ERR_COMM', call);
  await assert.rejects(bsp.sync(), { code: 'ERR_COMM' });
});
untested(
  'initialization',
  'bsp_begin(n) starts at most n processes, and after bsp_init need not be the first statement of main',
  'the launcher starts the processes, before the program begins',
);
untested(
  'halt',
  'bsp_abort prints a message and ends all processes',
  'it would end this suite; [test/bsp/errors.test.ts](../test/bsp/errors.test.ts) tests it',
);

requirement(
  'enquiry',
  'bsp_nprocs is the number of processes, and the same at all of them',
  '',
  inComputation(async (b) => {
    const all = new Float64Array(b.nprocs);
    await b.comm.allgather(Float64Array.of(b.nprocs), all);
    assert.deepEqual([...all], new Array(b.comm.size).fill(b.comm.size));
  }),
);
requirement(
  'enquiry',
  'bsp_pid numbers the processes from 0, without gaps',
  '',
  inComputation(async (b) => {
    const all = new Float64Array(b.nprocs);
    await b.comm.allgather(Float64Array.of(b.pid), all);
    assert.deepEqual(
      [...all].sort((x, y) => x - y),
      [...all.keys()],
    );
  }),
);
requirement(
  'enquiry',
  'bsp_time returns seconds, and never decreases',
  '',
  inComputation(async (b) => {
    let before = b.bsp.time();
    assert.ok(before >= 0);
    for (let i = 0; i < 5; i++) {
      await b.sync();
      const now = b.bsp.time();
      assert.ok(now >= before);
      before = now;
    }
  }),
);

requirement(
  'superstep',
  'after bsp_sync, everything that processes requested in the superstep has been carried out',
  '',
  inComputation(async (b) => {
    const x = await variable(b, b.nprocs, -1);
    for (let round = 0; round < 3; round++) {
      for (let pid = 0; pid < b.nprocs; pid++) b.bsp.put(pid, Float64Array.of(10 * round + b.pid), x, b.pid);
      await b.sync();
      assert.deepEqual(
        [...x],
        Array.from(x, (_, pid) => 10 * round + pid),
      );
    }
  }),
);
requirement(
  'superstep',
  'nothing that was requested in a superstep has an effect before bsp_sync',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1, 1);
    const got = Float64Array.of(7);
    b.bsp.put(b.right, Float64Array.of(2), x);
    b.bsp.get(b.right, x, 0, got);
    b.bsp.send(b.right, null, got);
    await b.comm.barrier();
    assert.deepEqual([x[0], got[0], b.bsp.qsize().messages], [1, 7, 0]);
    await b.sync();
    assert.deepEqual([x[0], got[0], b.bsp.qsize().messages], [2, 1, 1]);
  }),
);
requirement(
  'superstep',
  'no process leaves bsp_sync before all have called it',
  '',
  inComputation(async (b) => {
    // Whoever is last has said so before it calls sync: all others see it after theirs.
    const x = await variable(b, 1);
    for (let late = 0; late < b.nprocs; late++) {
      if (b.pid === late) {
        await b.comm.compute(300);
        for (let pid = 0; pid < b.nprocs; pid++) b.bsp.put(pid, Float64Array.of(late + 1), x);
      }
      await b.sync();
      assert.equal(x[0], late + 1);
    }
  }),
);
requirement(
  'superstep',
  'all processes must have the same number of supersteps: otherwise each gets an error',
  '',
  inComputation(
    (b) =>
      allLearn(b, b.pid === 0 ? b.bsp.end() : b.bsp.sync()).catch((error) => {
        // The one that ended has nothing more to call.
        if (b.pid !== 0) throw error;
      }),
    true,
  ),
  2,
);

requirement(
  'registration',
  'a registration takes effect with the next superstep',
  '',
  inComputation(async (b) => {
    const x = new Float64Array(1);
    b.bsp.pushReg(x);
    refuses('ERR_RMA_ATTACH', () => b.bsp.put(b.right, Float64Array.of(1), x));
    await b.sync();
    b.bsp.put(b.right, Float64Array.of(1), x);
    await b.sync();
    assert.equal(x[0], 1);
  }),
);
requirement(
  'registration',
  'variables correspond by the order of their registration, whatever they are at each process',
  '',
  inComputation(async (b) => {
    const pair = [new Float64Array(1), new Float64Array(1)];
    const [first, second] = b.pid % 2 === 0 ? pair : pair.reverse();
    b.bsp.pushReg(first);
    b.bsp.pushReg(second);
    await b.sync();
    b.bsp.put(b.right, Float64Array.of(1), first);
    b.bsp.put(b.right, Float64Array.of(2), second);
    await b.sync();
    assert.deepEqual([first[0], second[0]], [1, 2]);
  }),
);
requirement(
  'registration',
  'a process may register a different size from the others, and its size bounds their accesses to it',
  '',
  inComputation(async (b) => {
    const x = new Float64Array(b.pid + 1);
    b.bsp.pushReg(x);
    await b.sync();
    refuses('ERR_RMA_RANGE', () => b.bsp.put(b.right, Float64Array.of(1), x, b.right + 1));
    b.bsp.put(b.right, Float64Array.of(9), x, b.right);
    await b.sync();
    assert.equal(x[b.pid], 9);
  }),
);
requirement(
  'registration',
  'a process without such a variable registers null, and no process can access it there',
  '',
  inComputation(async (b) => {
    const x = b.pid === 0 ? null : new Float64Array(1);
    b.bsp.pushReg(x);
    await b.sync();
    if (x !== null) refuses('ERR_RMA_RANGE', () => b.bsp.put(0, Float64Array.of(1), x));
    if (x !== null && b.right !== 0) b.bsp.put(b.right, Float64Array.of(1), x);
    await b.sync();
    if (x !== null) assert.equal(x[0], b.pid > 1 ? 1 : 0);
    b.bsp.popReg(x);
    await b.sync();
  }),
  2,
);
requirement(
  'registration',
  'a registration lasts until it is removed',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1);
    for (let i = 1; i < 20; i++) {
      b.bsp.put(b.right, Float64Array.of(i), x);
      await b.sync();
      assert.equal(x[0], i);
    }
  }),
);
requirement(
  'registration',
  'memory that is registered again is known by its newest registration',
  '',
  inComputation(async (b) => {
    const all = await variable(b, 10);
    b.bsp.pushReg(all.subarray(0, 2));
    await b.sync();
    // In C a place has one name. Here `all` itself still names its own registration, other views the newest.
    const x = all.subarray(0, 10);
    refuses('ERR_RMA_RANGE', () => b.bsp.put(b.right, Float64Array.of(1), x, 2));
    b.bsp.popReg(x);
    await b.sync();
    b.bsp.put(b.right, Float64Array.of(1), x, 9);
    await b.sync();
    assert.equal(x[9], 1);
  }),
);
requirement(
  'registration',
  'bsp_pop_reg removes the newest registration, with the next superstep',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1);
    b.bsp.popReg(x);
    b.bsp.put(b.right, Float64Array.of(1), x);
    await b.sync();
    assert.equal(x[0], 1);
    refuses('ERR_RMA_ATTACH', () => b.bsp.put(b.right, Float64Array.of(2), x));
    refuses('ERR_RMA_ATTACH', () => b.bsp.popReg(x));
  }),
);
requirement(
  'registration',
  'removals and registrations of one superstep take effect together, removals first',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1);
    b.bsp.pushReg(x);
    b.bsp.popReg(x);
    await b.sync();
    b.bsp.put(b.right, Float64Array.of(3), x);
    b.bsp.popReg(x);
    await b.sync();
    assert.equal(x[0], 3);
    refuses('ERR_RMA_ATTACH', () => b.bsp.put(b.right, Float64Array.of(2), x));
  }),
);
requirement(
  'registration',
  'all processes must register in the same order: otherwise each gets an error',
  '',
  inComputation(async (b) => {
    b.bsp.pushReg(new Float64Array(1));
    if (b.pid === 0) b.bsp.pushReg(new Float64Array(1));
    await allLearn(b, b.bsp.sync());
  }, true),
  2,
);
requirement(
  'registration',
  'all processes must remove the same registrations in the same order: otherwise each gets an error',
  '',
  inComputation(async (b) => {
    const [x, y] = [await variable(b, 1), await variable(b, 1)];
    b.bsp.popReg(b.pid === 0 ? x : y);
    await allLearn(b, b.bsp.sync());
  }, true),
  2,
);
