/** Barriers of BSP computations that are refused (`barrier` of `begin`), where memory is shared. */
import assert from 'node:assert/strict';
import type { Communicator, RmaError } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import { runCases } from './support/cases.ts';

/** The same at all processes, and the next computation can begin. */
async function refused(world: Communicator, options: BspOptions, message: RegExp): Promise<void> {
  await assert.rejects(begin(world, options), (error: RmaError) => {
    assert.equal(error.code, 'ERR_ARG');
    assert.match(error.message, message);
    return true;
  });
  await (await begin(world)).end();
}

await runCases({
  'what the device does not offer': (world) =>
    refused(world, { barrier: 'adapter' }, /barrier: 'adapter' needs a device that offers it; leave it out, or choose/),
  'supersteps without a barrier': (world) =>
    refused(world, { barrier: 'words', delivery: 'packed' }, /those of 'packed' end when all counts have come/),
  'different barriers': (world) =>
    refused(
      world,
      { barrier: world.rank === 1 ? 'waits' : 'messages' },
      /all ranks must give the same options, but rank \d gave barrier '(waits|messages)', this rank '(waits|messages)'/,
    ),
  'different algorithms': (world) =>
    refused(
      world,
      { barrier: 'waits', barrierAlgorithm: world.rank === 1 ? 'pairwise' : 'gather-broadcast:7' },
      /gave barrierAlgorithm '(pairwise|gather-broadcast:7)', this rank '(pairwise|gather-broadcast:7)'/,
    ),
});
