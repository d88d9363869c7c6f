/**
 * Leaders and workers (dissertation §5.3.5, figure 5.11). The ranks of a node have a leader, the first of them. In
 * turn, each leader hands tasks to every worker of its node, to every other leader, and to its workers again; a task is
 * a lock, a put and an unlock. Most of it stays in the node, and every leader's part is locked from within the node and
 * from without.
 *
 * What is a node, the program says; where ranks are real, all of them are on one.
 */
import { type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { callsOf } from '../calls.ts';
import type { Machine } from './machine.ts';

export interface TaskSharingOptions {
  /** Ranks of a node. */
  readonly perNode: number;
  /** That a leader hands to one rank in a phase. */
  readonly tasks: number;
  /** Of a task: a multiple of 4. */
  readonly bytes: number;
  readonly info: WindowInfo;
}

export interface TaskSharingResult {
  readonly nodes: number;
  readonly perNode: number;
  readonly tasks: number;
  readonly bytes: number;
  /** Microseconds of the phases, from barrier to barrier: workers, leaders, workers. */
  readonly phases: readonly [number, number, number];
  readonly microseconds: number;
  /** Of one lock, put and unlock, the mean over all. */
  readonly task: number;
  /** Ranks that have not got what they were handed last. */
  readonly errors: number;
}

/** Collective; the ranks must fill the nodes. */
export async function taskSharing(
  world: Communicator,
  options: TaskSharingOptions,
  machine: Machine,
): Promise<TaskSharingResult> {
  const { perNode, tasks, bytes, info } = options;
  const { rank, size } = world;
  if (size < 2 || size % perNode !== 0)
    throw new RangeError(
      `${size} ranks do not fill nodes of ${perNode}: --ranks is a multiple of --per-node, and at least 2`,
    );
  const nodes = size / perNode;
  const node = Math.floor(rank / perNode);
  const leads = rank === node * perNode;
  const length = bytes / 4;
  const calls = callsOf(world, machine.form);
  // For each leader that hands tasks to this rank, the last one: workers have one leader, leaders all others.
  await using window = await Window.allocate(world, Int32Array, (leads ? nodes : 1) * length, { info });
  const mine = window.local as Int32Array;
  const task = new Int32Array(length);
  const workers = Array.from({ length: perNode - 1 }, (_, i) => node * perNode + 1 + i);
  const others = Array.from({ length: nodes }, (_, i) => i * perNode).filter((leader) => leader !== node * perNode);

  const hand = async (target: number, at: number, phase: number): Promise<void> => {
    for (let i = 1; i <= tasks; i++) {
      task[0] = phase * tasks + i;
      task[length - 1] = task[0];
      await calls.lock(window, target, Lock.EXCLUSIVE);
      window.put(task, target, at);
      await calls.unlock(window, target);
    }
  };
  const timed = async (phase: number): Promise<number> => {
    await calls.barrier();
    const start = machine.now();
    if (leads && phase === 1) for (const leader of others) await hand(leader, node * length, phase);
    else if (leads) for (const worker of workers) await hand(worker, 0, phase);
    await calls.barrier();
    return machine.now() - start;
  };
  const phases = [await timed(0), await timed(1), await timed(2)] as [number, number, number];

  await calls.lock(window, rank, Lock.EXCLUSIVE);
  const right = (at: number, phase: number): boolean => {
    const last = (phase + 1) * tasks;
    return mine[at] === last && mine[at + length - 1] === last;
  };
  const ok = leads ? others.every((leader) => right((leader / perNode) * length, 1)) : right(0, 2);
  await calls.unlock(window, rank);
  const errors = new Int32Array(1);
  await world.allreduce(Int32Array.of(ok ? 0 : 1), errors, Op.SUM);
  const slowest = new Float64Array(3);
  await world.allreduce(Float64Array.from(phases), slowest, Op.MAX);
  const microseconds = slowest[0] + slowest[1] + slowest[2];
  return {
    nodes,
    perNode,
    tasks,
    bytes,
    phases: [slowest[0], slowest[1], slowest[2]],
    microseconds,
    task: microseconds / (tasks * (2 * workers.length + others.length) || 1),
    errors: errors[0],
  };
}
