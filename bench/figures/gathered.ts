/**
 * The program of the dissertation's §8.1, by verbs: columns of a matrix go to the same columns of another one, by an
 * RDMA write for each piece, or by sends that gather and receives that scatter. Ranks must be tasks.
 */
import { type Communicator, Op } from 'onesided';
import {
  Access,
  type CompletionQueue,
  contextOf,
  type MemoryRegion,
  QpState,
  type QueuePair,
  SendFlag,
  WcStatus,
} from 'onesided/verbs';

export interface GatheredOptions {
  readonly way: 'multi-write' | 'sgrs';
  readonly pieces: number;
  /** Of a message: a multiple of 8 × pieces. */
  readonly bytes: number;
  /** Entries of a descriptor's list. */
  readonly entries: number;
  /** Messages that are posted before the rank waits for them. */
  readonly window: number;
}

const ROUNDS = 2;
/** Of the matrix, in bytes, if pieces are no longer. */
const ROW = 16_384;
/** Microseconds from one look at a completion queue to the next. */
const LOOK = 0.25;

interface End {
  readonly qp: QueuePair;
  readonly cq: CompletionQueue;
  readonly region: MemoryRegion;
  /** The other rank's region. */
  readonly remote: { readonly rkey: number; readonly address: number };
  readonly values: Float64Array;
  close(): void;
}

/** A queue pair to the other rank, and a matrix. */
async function connect(world: Communicator, bytes: number, entries: number, depth: number): Promise<End> {
  const context = contextOf(world);
  const pd = context.allocPd();
  const memory = context.allocateMemory(bytes);
  const region = pd.registerMemory(memory, 0, bytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
  const cq = context.createCq(2 * depth);
  const lists = { maxSendSge: entries, maxRecvSge: entries };
  const qp = pd.createQueuePair({ sendCq: cq, recvCq: cq, maxSendWr: depth, maxRecvWr: depth, ...lists });
  const all = new Float64Array(4 * world.size);
  await world.allgather(Float64Array.of(context.member, qp.number, region.rkey, region.address), all);
  const [member, qpNumber, rkey, address] = all.subarray(4 * (1 - world.rank));
  qp.modify({ state: QpState.INIT, access: Access.REMOTE_WRITE });
  qp.modify({ state: QpState.RTR, dest: { member, qpNumber } });
  qp.modify({ state: QpState.RTS });
  return {
    ...{ qp, cq, region, remote: { rkey, address }, values: new Float64Array(memory.buffer, 0, bytes / 8) },
    close() {
      qp.destroy();
      cq.destroy();
      region.deregister();
      memory.free();
      pd.dealloc();
    },
  };
}

/** Waits for so many completions. */
async function completions(world: Communicator, cq: CompletionQueue, count: number): Promise<void> {
  for (let left = count; left > 0; ) {
    const n = cq.poll(left);
    if (cq.wc.status.subarray(0, n).some((status) => status !== WcStatus.SUCCESS)) throw new Error('a request failed');
    left -= n;
    if (left > 0) await world.compute(LOOK);
  }
}

/** @returns microseconds of a round of rank 0: `window` messages to rank 1, until all are complete */
export async function gathered(world: Communicator, options: GatheredOptions): Promise<number> {
  const { way, pieces, bytes, entries, window } = options;
  const piece = bytes / pieces;
  const row = Math.max(ROW, 2 * piece);
  const lists = Math.ceil(pieces / entries);
  const all = window * (ROUNDS + 1);
  const end = await connect(world, pieces * row, entries, Math.max(window * pieces, all * lists));
  const { qp, cq, region, remote, values } = end;
  const covered = values.map((_, i) => ((8 * i) % row < piece ? i + 1 : 0));
  if (world.rank === 0) values.set(covered);
  else if (way === 'sgrs') {
    for (let i = 0; i < all; i++) {
      for (let first = 0; first < pieces; first += entries) {
        const last = Math.min(first + entries, pieces) - 1;
        for (let k = first; k < last; k++) qp.addRecvSge(region.lkey, region.address + k * row, piece);
        qp.postRecv(i, region.lkey, region.address + last * row, piece);
      }
    }
  }
  await world.barrier();
  let began = 0;
  for (let round = -1; world.rank === 0 && round < ROUNDS; round++) {
    if (round === 0) began = world.now();
    for (let i = 0; i < window; i++) {
      qp.wrStart();
      if (way === 'sgrs') gather(qp, region, pieces, entries, row, piece);
      else write(qp, region, remote, pieces, row, piece);
      qp.wrComplete();
    }
    await completions(world, cq, window);
  }
  const took = (world.now() - began) / ROUNDS;
  await world.barrier();
  if (world.rank === 1 && way === 'sgrs') await completions(world, cq, all * lists);
  const wrong = new Int32Array(1);
  await world.allreduce(Int32Array.of(values.some((value, i) => value !== covered[i]) ? 1 : 0), wrong, Op.SUM);
  if (wrong[0] > 0) throw new Error(`${way}: the columns of rank 1 are not those of rank 0`);
  end.close();
  return took;
}

/** A descriptor for each `entries` pieces; the last one completes. */
function gather(
  qp: QueuePair,
  { lkey, address }: MemoryRegion,
  pieces: number,
  entries: number,
  row: number,
  piece: number,
): void {
  for (let first = 0; first < pieces; first += entries) {
    const end = Math.min(first + entries, pieces);
    qp.wrSend(0, end === pieces ? SendFlag.SIGNALED : 0);
    for (let k = first; k < end; k++) qp.wrAddSge(lkey, address + k * row, piece);
  }
}

/** A write for each piece; the last one completes. */
function write(
  qp: QueuePair,
  { lkey, address }: MemoryRegion,
  remote: End['remote'],
  pieces: number,
  row: number,
  piece: number,
): void {
  for (let k = 0; k < pieces; k++) {
    qp.wrRdmaWrite(0, k === pieces - 1 ? SendFlag.SIGNALED : 0, remote.rkey, remote.address + k * row);
    qp.wrSetSge(lkey, address + k * row, piece);
  }
}
