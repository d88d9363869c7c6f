/** What ranks' processors have spent, and on what (`processorUse`). */
import { type Communicator, init, Window } from 'onesided';
import { begin } from 'onesided/bsp';
import { loadFabric, type ProcessorUse, processorUse, runTasks } from 'onesided/fabrics';
import { expect, test } from 'vitest';

const FABRIC = loadFabric('infinihost-pci-x');
const DATA = new Uint8Array(8);

/** What each rank spends while rank 0 puts once to rank 1, which waits for nothing. */
async function put(world: Communicator): Promise<ProcessorUse> {
  const win = await Window.allocate(world, Uint8Array, 8);
  await win.lockAll();
  await world.barrier();
  // The completions of all that came before are taken in, too.
  await world.compute(100);
  if (world.rank === 0) {
    win.put(DATA, 1, 0);
    await win.flush(1);
  }
  const before = processorUse(world);
  if (world.rank === 0) {
    win.put(DATA, 1, 0);
    await win.flush(1);
  }
  await world.compute(100);
  const after = processorUse(world);
  await world.barrier();
  await win.unlockAll();
  await win.free();
  return {
    library: after.library - before.library,
    helper: after.helper - before.helper,
    computed: after.computed - before.computed,
  };
}

test('a put costs its origin a request and a completion, its target nothing', async () => {
  const { post, completion } = FABRIC.host;
  const [origin, target] = await runTasks(2, put, { fabric: FABRIC });
  expect(origin.library).toBeCloseTo(post + completion, 9);
  expect(origin).toMatchObject({ helper: 0, computed: 100 });
  expect(target).toEqual({ library: 0, helper: 0, computed: 100 });
});

test.each([
  ['nobody', 0],
  ['an interrupt', 1],
  ['another core', 2],
])('events while the rank computes are handled by %s: who spends their time', async (_, helper) => {
  const host = { ...FABRIC.host, helper };
  const main = async (world: Communicator) => {
    const win = await Window.allocate(world, Uint8Array, 1024, { info: { fence: 'remote-notify' } });
    await win.fence();
    if (world.rank > 0) for (let i = 0; i < 300; i++) win.put(DATA, 0, 8 * world.rank);
    const began = world.now();
    const before = processorUse(world);
    await world.compute(2000);
    const after = processorUse(world);
    const took = world.now() - began;
    await win.fence();
    await win.free();
    return {
      took,
      library: after.library - before.library,
      helper: after.helper - before.helper,
      computed: after.computed - before.computed,
    };
  };
  const [use] = await runTasks(16, main, { fabric: { ...loadFabric('infinihost-64'), host } });
  expect(use.computed).toBe(2000);
  // Who takes the processor's time makes the computation take longer, by as much.
  expect(use.library).toBeCloseTo(use.took - 2000, 6);
  expect(use.library > 0).toBe(helper === 1);
  expect(use.helper > 0).toBe(helper === 2);
});

test('ranks that are not tasks have no such count', async () => {
  const world = await init();
  expect(() => processorUse(world)).toThrow(/ranks that runTasks runs/);
  expect(() => processorUse({} as Communicator)).toThrow(TypeError);
  await world.finalize();
});

test('zero-copy: a superstep costs its sender a record for each put, its receiver none', async () => {
  const PUTS = 40;
  const superstep = async (record: number) => {
    const host = { ...FABRIC.host, record };
    const main = async (world: Communicator): Promise<number> => {
      const bsp = await begin(world, { delivery: 'zero-copy' });
      const variable = new Float64Array(PUTS);
      bsp.pushReg(variable);
      await bsp.sync();
      const before = processorUse(world).library;
      if (bsp.pid === 0) for (let i = 0; i < PUTS; i++) bsp.put(1, Float64Array.of(i + 1), variable, i);
      await bsp.sync();
      const { library } = processorUse(world);
      expect(variable[PUTS - 1]).toBe(bsp.pid === 1 ? PUTS : 0);
      await bsp.end();
      return library - before;
    };
    return await runTasks(2, main, { fabric: { ...FABRIC, host } });
  };
  const [cheap, dear] = [await superstep(1), await superstep(2)];
  expect(dear[0] - cheap[0]).toBeCloseTo(PUTS, 9);
  expect(dear[1]).toBeCloseTo(cheap[1], 9);
});
