/**
 * Collectives during which one rank transfers a buffer: it is told so, the others are told who it was, and nobody waits
 * for ever.
 */
import { type Communicator, Op, type RmaError } from 'onesided';
import { transfer } from './liars.ts';

type Arrays = [send: Float64Array, receive: Float64Array];
const part = ({ size }: Communicator, array: Float64Array): Float64Array =>
  array.subarray(0, Math.floor(array.length / size));

const CALLS: Record<string, (comm: Communicator, ...arrays: Arrays) => Promise<void>> = {
  broadcast: (comm, send) => comm.broadcast(send, 0),
  reduce: (comm, send, receive) => comm.reduce(send, receive, Op.SUM, 1),
  allreduce: (comm, send, receive) => comm.allreduce(send, receive, Op.SUM),
  reduceScatter: (comm, send, receive) => comm.reduceScatterBlock(send, part(comm, receive), Op.SUM),
  scan: (comm, send, receive) => comm.scan(send, receive, Op.SUM),
  gather: (comm, send, receive) => comm.gather(part(comm, send), receive, 0),
  scatter: (comm, send, receive) => comm.scatter(send, part(comm, receive), 0),
  allgather: (comm, send, receive) => comm.allgather(part(comm, send), receive),
  alltoall: (comm, send, receive) => comm.alltoall(send, receive),
  receive: async (comm, send, receive) => {
    comm.send(send, (comm.rank + 1) % comm.size);
    await comm.receive(receive, (comm.rank + comm.size - 1) % comm.size);
  },
};

const LENGTHS = [12, 30_000];

/**
 * All calls, lengths, buffers and ranks, one after the other.
 * @returns what was wrong at this rank, and how many calls the lost buffers ended
 */
export async function giveAway(world: Communicator): Promise<{ wrong: string[]; ended: number }> {
  const wrong: string[] = [];
  let ended = 0;
  for (const [name, call] of Object.entries(CALLS)) {
    for (let round = 0; round < 4 * world.size; round++) {
      const [length, which, victim] = [LENGTHS[round % 2], (round >> 1) % 2, round >> 2];
      const comm = await world.dup();
      const arrays: Arrays = [new Float64Array(length).fill(1), new Float64Array(length)];
      let outcome = 'done';
      try {
        const pending = call(comm, ...arrays);
        if (world.rank === victim) transfer(arrays[which]);
        await pending;
      } catch (error) {
        outcome = `${(error as RmaError).code}: ${(error as Error).message}`;
        ended++;
      }
      const expected =
        world.rank === victim
          ? /^ERR_BUFFER: \w+: (a|the) buffer was transferred or resized/
          : new RegExp(`^ERR_COLLECTIVE: rank ${victim} gave up .*: a buffer was transferred or resized`);
      if (outcome !== 'done' && !expected.test(outcome)) wrong.push(`${name}, round ${round}: ${outcome}`);
      // Those who were told so, and those who were complete before, go on together elsewhere.
      await world.barrier();
    }
  }
  return { wrong, ended };
}
