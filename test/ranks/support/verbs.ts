/** Queue pairs between all ranks of a job, for programs that test the verbs across processes and threads. */
import assert from 'node:assert/strict';
import type { Communicator } from 'onesided';
import {
  Access,
  type CompletionQueue,
  type Context,
  contextOf,
  type Memory,
  type MemoryRegion,
  type ProtectionDomain,
  type QpAttributes,
  QpState,
  type QueuePair,
  type QueuePairInit,
  type SharedReceiveQueue,
  wcStatusName,
} from 'onesided/verbs';

export const ALL_ACCESS = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
/** How long a rank waits for a completion that must come. */
const PATIENCE_MS = 60_000;

/** Where another rank's memory is. */
interface Remote {
  readonly rkey: number;
  readonly address: number;
}

export interface Mesh {
  readonly context: Context;
  readonly pd: ProtectionDomain;
  readonly memory: Memory;
  readonly region: MemoryRegion;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly srq: SharedReceiveQueue | undefined;
  /** By rank, also to this one. */
  readonly queuePairs: readonly QueuePair[];
  readonly remotes: readonly Remote[];
  rankOf(qpNum: number): number;
  close(): Promise<void>;
}

export interface MeshOptions {
  readonly bytes?: number;
  readonly cqe?: number;
  /** All queue pairs of this rank receive from one queue of so many receives. */
  readonly srqWr?: number;
  readonly queuePair?: Partial<QueuePairInit>;
  readonly attributes?: Partial<QpAttributes>;
}

/** Collective: connects every rank with every rank. */
export async function connectAll(world: Communicator, options: MeshOptions = {}): Promise<Mesh> {
  const { bytes = 65536, cqe = 1024, srqWr, queuePair = {}, attributes = {} } = options;
  const context = contextOf(world);
  const pd = context.allocPd();
  const memory = context.allocateMemory(bytes);
  const region = pd.registerMemory(memory, 0, bytes, ALL_ACCESS);
  const sendCq = context.createCq(cqe);
  const recvCq = context.createCq(cqe);
  const srq = srqWr === undefined ? undefined : pd.createSharedReceiveQueue({ maxWr: srqWr });
  const queuePairs = Array.from({ length: world.size }, () =>
    pd.createQueuePair({ sendCq, recvCq, ...(srq && { srq }), maxSendWr: 256, maxRecvWr: 256, ...queuePair }),
  );
  const numbers = new Float64Array(world.size * world.size);
  await world.allgather(
    Float64Array.from(queuePairs, ({ number }) => number),
    numbers,
  );
  const members = new Float64Array(world.size);
  await world.allgather(Float64Array.of(context.member), members);
  const places = new Float64Array(2 * world.size);
  await world.allgather(Float64Array.of(region.rkey, region.address), places);
  for (const [rank, qp] of queuePairs.entries()) {
    const dest = { member: members[rank], qpNumber: numbers[rank * world.size + world.rank] };
    qp.modify({ access: ALL_ACCESS, ...attributes, state: QpState.INIT });
    qp.modify({ ...attributes, state: QpState.RTR, dest });
    qp.modify({ ...attributes, state: QpState.RTS });
  }
  await world.barrier();
  const ranks = new Map(queuePairs.map(({ number }, rank) => [number, rank]));
  return {
    context,
    pd,
    memory,
    region,
    sendCq,
    recvCq,
    srq,
    queuePairs,
    remotes: queuePairs.map((_, rank) => ({ rkey: places[2 * rank], address: places[2 * rank + 1] })),
    rankOf: (qpNum) => ranks.get(qpNum)!,
    async close() {
      await world.barrier();
      for (const qp of queuePairs) qp.destroy();
      srq?.destroy();
      sendCq.destroy();
      recvCq.destroy();
      region.deregister();
      memory.free();
      pd.dealloc();
      await world.barrier();
    },
  };
}

/**
 * Polls until there is a completion, sleeping in between as a rank does: so that this also tests that no wake-up is
 * lost. A sleep that nobody ends fails, unless a request waits for its receiver, which is tried again every
 * millisecond.
 * @returns how many completions there are in `cq.wc`
 */
export async function pollOrSleep(context: Context, cq: CompletionQueue, max: number): Promise<number> {
  for (let i = 0; i < 200; i++) {
    const n = cq.poll(max);
    if (n > 0) return n;
  }
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const { parking } = context;
    const token = parking.arm();
    try {
      cq.reqNotify();
      const n = cq.poll(max);
      if (n > 0) return n;
      assert.ok(performance.now() < deadline, `no completion in ${PATIENCE_MS} ms`);
      await parking.sleep(token, context.pendingRetry ? 1 : PATIENCE_MS);
    } finally {
      parking.disarm();
    }
  }
}

/** Waits for one completion, which must be of this request and with this status. */
export async function expectCompletion(
  mesh: Mesh,
  cq: CompletionQueue,
  wrId: number,
  status = 'SUCCESS',
): Promise<void> {
  assert.equal(await pollOrSleep(mesh.context, cq, 1), 1);
  assert.deepEqual([cq.wc.wrId[0], wcStatusName(cq.wc.status[0])], [wrId, `IBV_WC_${status}`]);
}
