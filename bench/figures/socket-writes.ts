/**
 * What TCP makes of writes to sockets, without a library above it: a SEND of a connected queue pair is a write on an
 * Ethernet. Nothing comes back but TCP's acknowledgements, as where the paper's processes write. Receivers know how
 * many writes come.
 */
import type { Communicator } from 'onesided';
import { type Fabric, runTasks } from 'onesided/fabrics';
import { Access, contextOf, QpState, type QueuePair } from 'onesided/verbs';
import { randomOf } from './chance.ts';
import { forEach } from './figure.ts';
import { PACKET, SEEDS, type Spread, spreadOf } from './shifts.ts';

/** Processes begin within so many microseconds. */
const SKEW = 300;
/** Microseconds after which all have been set up, although messages of that may be lost and sent again. */
const TOGETHER = 5_000_000;
/** Microseconds from one look at what has come to the next. */
const LOOK = 500;

export interface Writes {
  readonly processes: number;
  /** That a process writes to each of its targets. */
  readonly bytes: number;
  /** Microseconds; 0: not paced. */
  readonly slot?: number;
  /** Slots of a cycle (default: as many as processes). */
  readonly slots?: number;
  /** All of it is one write, in place of packets. */
  readonly whole?: boolean;
  /**
   * To the right neighbour (default), or to all others: a packet of each in turn, beginning with the right neighbour
   * (`latin`) or with process 0 (`same`); or one target after the other, from process 0 on (`blocks`).
   */
  readonly order?: 'shift' | 'latin' | 'same' | 'blocks';
}

/** Lengths of the writes to one target. */
function lengthsOf({ bytes, whole = false }: Writes): number[] {
  if (whole) return [bytes];
  return Array.from({ length: Math.ceil(bytes / PACKET) }, (_, k) => Math.min(PACKET, bytes - k * PACKET));
}

/** Targets and lengths, in the order of writing. */
function listOf(writes: Writes, rank: number): (readonly [target: number, length: number])[] {
  const { processes, order = 'shift' } = writes;
  const lengths = lengthsOf(writes);
  const next = Array.from({ length: processes - 1 }, (_, k) => (rank + 1 + k) % processes);
  if (order === 'shift') return lengths.map((length) => [next[0], length]);
  const targets = order === 'latin' ? next : next.toSorted((a, b) => a - b);
  return order === 'blocks'
    ? targets.flatMap((target) => lengths.map((length) => [target, length] as const))
    : lengths.flatMap((length) => targets.map((target) => [target, length] as const));
}

async function writing(world: Communicator, writes: Writes, seed: number): Promise<readonly [number, number]> {
  const { rank, size } = world;
  const { slot = 0, slots = size } = writes;
  const context = contextOf(world);
  const pd = context.allocPd();
  const memory = context.allocateMemory(writes.bytes);
  const region = pd.registerMemory(memory, 0, writes.bytes, Access.LOCAL_WRITE);
  const cq = context.createCq(16_384);
  const depth = lengthsOf(writes).length;
  const lists = Array.from({ length: size }, (_, pid) => listOf(writes, pid));
  const isPeer = (pid: number): boolean =>
    pid !== rank && [lists[rank].some(([to]) => to === pid), lists[pid].some(([to]) => to === rank)].includes(true);
  const own = new Float64Array(size);
  const pairs: (QueuePair | undefined)[] = Array.from({ length: size }, (_, pid) => {
    if (!isPeer(pid)) return undefined;
    const qp = pd.createQueuePair({ sendCq: cq, recvCq: cq, maxSendWr: depth, maxRecvWr: depth });
    own[pid] = qp.number;
    return qp;
  });
  const all = new Float64Array(size * size);
  await world.allgather(own, all);
  let expected = 0;
  for (const [member, qp] of pairs.entries()) {
    if (qp === undefined) continue;
    qp.modify({ state: QpState.INIT, access: Access.REMOTE_WRITE });
    for (const [to, length] of lists[member]) {
      if (to !== rank) continue;
      qp.postRecv(0, region.lkey, region.address, length);
      expected++;
    }
    qp.modify({ state: QpState.RTR, dest: { member, qpNumber: all[size * member + rank] } });
    qp.modify({ state: QpState.RTS });
  }
  await world.barrier();
  if (world.now() > TOGETHER) throw new Error('processes were not set up in time');
  const random = randomOf(1000 * seed + rank);
  for (let i = 0; i < 8; i++) random();
  const began = TOGETHER + SKEW * random();
  const until = (time: number): Promise<void> => world.compute(Math.max(0, time - world.now()));
  for (const [cycle, [to, length]] of lists[rank].entries()) {
    await until(began + (cycle * slots + Math.floor(slots * random())) * slot);
    const qp = pairs[to]!;
    qp.wrStart();
    qp.wrSend(0, 0);
    qp.wrSetSge(region.lkey, region.address, length);
    qp.wrComplete();
  }
  for (let left = expected; left > 0; ) {
    left -= cq.poll(left);
    if (left > 0) await world.compute(LOOK);
  }
  return [began, world.now()];
}

/** Milliseconds until all have everything, by seeds 1, 2, …. */
export async function written(fabric: Fabric, writes: Writes, seeds = SEEDS): Promise<Spread> {
  const times = await forEach(
    Array.from({ length: seeds }, (_, k) => k + 1),
    async (seed) => {
      const all = await runTasks(writes.processes, (world) => writing(world, writes, seed), { fabric, seed });
      return (Math.max(...all.map(([, ended]) => ended)) - Math.min(...all.map(([began]) => began))) / 1000;
    },
  );
  return spreadOf(times);
}
