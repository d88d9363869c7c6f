/** The words of a barrier that a rank has made for its part of a split, or those that go on: given back without one. */
import { expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { makeLocalWorlds } from '../support/local-worlds.ts';

/** Two ranks, each with how many blocks of words it holds. */
async function makeWorlds(): Promise<{ world: Communicator; held: () => number; refuse: () => void }[]> {
  return (await makeLocalWorlds(2)).map(({ world, job }) => {
    const { blocks } = job;
    const allocate = blocks.allocate.bind(blocks);
    let held = 0;
    let refuses = false;
    blocks.allocate = (words) => {
      if (refuses) throw new RangeError('Array buffer allocation failed');
      const block = allocate(words);
      held++;
      const free = block.free.bind(block);
      return Object.assign(block, {
        free: () => {
          held--;
          free();
        },
      });
    };
    return { world, held: () => held, refuse: () => void (refuses = true) };
  });
}

const because = (who: string) => ({
  code: 'ERR_SIZE',
  message: `shrink: no communicator was made, because ${who}`,
});

test('where the wait ends before the ranks know each other’s colors', async () => {
  const [first] = await makeWorlds();
  const controller = new AbortController();
  const split = first.world.split(0, 0, { signal: controller.signal });
  expect(first.held()).toBe(1);
  controller.abort(new Error('enough'));
  await expect(split).rejects.toThrow('enough');
  expect(first.held()).toBe(0);
});

test('where another rank calls something else', async () => {
  const [first, second] = await makeWorlds();
  const split = expect(first.world.split(0)).rejects.toMatchObject({ code: 'ERR_COLLECTIVE' });
  await expect(second.world.broadcast(new Int32Array(1), 0)).rejects.toMatchObject({ code: 'ERR_COLLECTIVE' });
  await split;
  expect(first.held()).toBe(0);
});

test('where another rank has no memory', async () => {
  const [first, second] = await makeWorlds();
  second.refuse();
  const splits = [first, second].map(({ world }) =>
    expect(world.split(0)).rejects.toMatchObject({ code: 'ERR_SIZE', message: /rank 1 has no memory for it/ }),
  );
  await Promise.all(splits);
  expect(first.held()).toBe(0);
});

test('where another rank has no memory for those that go on', { timeout: 60_000 }, async () => {
  const [first, second] = await makeWorlds();
  second.refuse();
  await Promise.all([
    expect(first.world.shrink()).rejects.toMatchObject(because('another rank has no memory for it')),
    expect(second.world.shrink()).rejects.toMatchObject(
      because('this rank has no memory for it: Array buffer allocation failed'),
    ),
  ]);
  expect(first.held()).toBe(0);
});

test('where another rank of those that go on cannot map what others have', { timeout: 60_000 }, async () => {
  const [first, second] = await makeWorlds();
  second.world.job.blocks.map = () => {
    throw new RangeError('too many maps');
  };
  await Promise.all([
    expect(first.world.shrink()).rejects.toMatchObject(because('another rank could not set it up')),
    expect(second.world.shrink()).rejects.toMatchObject(because('this rank could not set it up: too many maps')),
  ]);
});

test('they are kept by those that go on, until they are freed', async () => {
  const ranks = await makeWorlds();
  const parts = await Promise.all(ranks.map(({ world }) => world.shrink()));
  expect(ranks.map(({ held }) => held())).toEqual([1, 1]);
  await Promise.all(parts.map((part) => part.free()));
  expect(ranks.map(({ held }) => held())).toEqual([0, 0]);
});

test('they are kept by the part, until it is freed', async () => {
  const ranks = await makeWorlds();
  const parts = await Promise.all(ranks.map(({ world }) => world.split(0)));
  expect(ranks.map(({ held }) => held())).toEqual([1, 1]);
  await Promise.all(parts.map((part) => part!.free()));
  expect(ranks.map(({ held }) => held())).toEqual([0, 0]);
});
