/** What ranks' processors have spent, and on what (`processorUse`). */
import { type Communicator, init, Window } from 'onesided';
import { begin } from 'onesided/bsp';
import { type Fabric, loadFabric, type ProcessorUse, processorUse, runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

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

describe('within a node', () => {
  const NODES = loadFabric('connectx-16-cores');
  const within = (numbers: Partial<Fabric['node']>): Fabric => ({ ...NODES, node: { ...NODES.node, ...numbers } });

  /** What rank 0 spends on a message to rank 1, and rank 1 on taking it. */
  const message = async (world: Communicator): Promise<number> => {
    const spent = async (): Promise<number> => {
      await world.barrier();
      await world.compute(100);
      const before = processorUse(world).library;
      if (world.rank === 0) await world.send(DATA, 1);
      else await world.recv(new Uint8Array(8), 0);
      await world.compute(100);
      return processorUse(world).library - before;
    };
    await spent();
    return spent();
  };

  test('a message costs what `node.post` and `node.completion` say', async () => {
    const [[sender, receiver], posting, completing] = await Promise.all(
      [{}, { post: 10.2 }, { completion: 10.2 }].map((node) => runTasks(2, message, { fabric: within(node) })),
    );
    expect(posting[0] - sender).toBeCloseTo(10, 9);
    // Of the message, and of what it has sent in the barrier before.
    expect(completing[1] - receiver).toBeCloseTo(20, 9);
  });

  test('what goes by the adapter, and all without these numbers, costs the same as to other nodes', async () => {
    const dear = { post: 10, completion: 10 };
    for (const rdmaByMemory of [0, 1]) {
      const [origin] = await runTasks(2, put, { fabric: within({ ...dear, rdmaByMemory }) });
      const { post, completion } = rdmaByMemory === 1 ? dear : NODES.host;
      expect(origin.library).toBeCloseTo(post + completion, 9);
    }
    const { post: _, completion: __, ...node } = NODES.node;
    const { post, completion } = NODES.host;
    const [absent, same] = await Promise.all(
      [{ ...NODES, node }, within({ post, completion })].map((fabric) => runTasks(2, message, { fabric })),
    );
    expect(absent[0]).toBeCloseTo(same[0], 9);
    expect(absent[1]).toBeCloseTo(same[1], 9);
  });
});
