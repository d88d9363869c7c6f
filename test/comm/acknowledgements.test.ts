/** Who computes after a collective call, or a superstep, has acknowledged what came: others wait for that. */
import { afterEach, expect, test, vi } from 'vitest';
import { begin } from '../../src/bsp/index.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { Messenger } from '../../src/message/messenger.ts';
import { runTasks } from '../../src/start/tasks.ts';

const word = new Float64Array(1);

afterEach(() => vi.restoreAllMocks());

async function superstep(world: Communicator): Promise<() => Promise<void>> {
  const bsp = await begin(world, { delivery: 'packed' });
  return () => bsp.sync();
}

test.each<[string, (world: Communicator) => Promise<() => Promise<void>>]>([
  ['broadcast', async (world) => () => world.broadcast(word, 0)],
  ['allreduce', async (world) => () => world.allreduce(word, new Float64Array(1), Op.SUM)],
  ['superstep', superstep],
])('%s', async (_, prepare) => {
  const acknowledge = vi.spyOn(Messenger.prototype, 'acknowledge');
  const calls = (rank: number): number =>
    acknowledge.mock.contexts.filter((one) => (one as Messenger).rank === rank).length;
  const program = async (world: Communicator): Promise<void> => {
    const call = await prepare(world);
    const before = calls(world.rank);
    await call();
    expect(calls(world.rank)).toBeGreaterThan(before);
  };
  await runTasks(3, program, { fabric: 'infinihost-64' });
});
