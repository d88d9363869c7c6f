/**
 * What perftest measures on a device, on our verbs: two ranks, each with a context of its own.
 *
 *   onesided run -n 2 build/programs/bench/ranks/verbs.js -- ROW SAMPLES [MILLISECONDS [WARM-UP]]
 *
 * - `write/N`: ping-pong of N bytes by RDMA writes, as `ib_write_lat`: each side writes when it has seen the other's
 *   write in its memory; half the time there and back;
 * - `atomic/8`: a fetch-and-add and its completion, as `ib_atomic_lat`;
 * - `bandwidth/N`: writes of N bytes, up to 128 of them outstanding, as `ib_write_bw`; MB are 10^6 bytes.
 *
 * Prints the line of JSON that ranks/rma.ts prints.
 */
import { type Communicator, init } from 'onesided';
import {
  Access,
  type CompletionQueue,
  openRdmaDevice,
  QpState,
  type QueuePair,
  type RdmaAddress,
  type RdmaChoice,
  SendFlag,
  WcStatus,
  wcStatusName,
} from 'onesided/verbs';
import { type Loop, measure } from './samples.ts';

const DEPTH = 128;
/** Requests of the bandwidth row that are posted by one call, the last of which says that all are complete. */
const BATCH = 16;
const INLINE = 64;

const [id = '', samples = '5', milliseconds = '20', warmUp = '500'] = process.argv.slice(2);
const [, name, digits] = /^(write|atomic|bandwidth)\/(\d+)$/.exec(id) ?? [];
if (name === undefined) throw new Error(`no row ${id}`);
const bytes = Number(digits);
const world = await init();

/** `DEVICE`, `DEVICE:PORT` or `DEVICE:PORT:GID`, as windows read it. */
function chosen(): RdmaChoice {
  const [device, port, gidIndex] = process.env['ONESIDED_DEVICE']?.split(':') ?? [];
  return {
    ...(device === undefined ? {} : { device }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(gidIndex === undefined ? {} : { gidIndex: Number(gidIndex) }),
  };
}

interface Introduction {
  readonly own: RdmaAddress;
  readonly qpNumber: number;
  readonly rkey: number;
  readonly address: number;
}

/** Tells the other rank about this one, and hears about it. */
function introduce(comm: Communicator, mine: Introduction): Introduction {
  const text = new Uint8Array(512);
  text.set(new TextEncoder().encode(JSON.stringify(mine)));
  const all = new Uint8Array(2 * text.length);
  comm.allgatherSync(text, all);
  const other = 1 - comm.rank;
  const theirs = all.subarray(other * text.length, (other + 1) * text.length);
  return JSON.parse(new TextDecoder().decode(theirs).replace(/\0+$/, ''));
}

const peers: RdmaAddress[] = [];
const context = openRdmaDevice(chosen(), world.rank, peers);
const pd = context.allocPd();
const page = Math.max(4096, bytes);
/** The first half is written by the other rank, the second is what this one writes. */
const memory = context.allocateMemory(2 * page);
const access = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC;
const region = pd.registerMemory(memory, 0, 2 * page, access);
const cq = context.createCq(DEPTH);
const qp = pd.createQueuePair({ sendCq: cq, recvCq: cq, maxSendWr: DEPTH, maxInlineData: INLINE });
const { own } = context;
const other = introduce(world, { own, qpNumber: qp.number, rkey: region.rkey, address: memory.address });
peers.push(...(world.rank === 0 ? [own, other.own] : [other.own, own]));
qp.modify({ state: QpState.INIT, access });
qp.modify({ state: QpState.RTR, dest: { member: 1 - world.rank, qpNumber: other.qpNumber }, maxDestRdAtomic: 16 });
qp.modify({ state: QpState.RTS, maxRdAtomic: 16 });
world.barrierSync();

function complete(queue: CompletionQueue, count: number): void {
  for (let done = 0; done < count; ) {
    const n = queue.poll(count - done);
    for (let i = 0; i < n; i++) {
      if (queue.wc.status[i] !== WcStatus.SUCCESS)
        throw new Error(`a request completed with ${wcStatusName(queue.wc.status[i])}`);
    }
    done += n;
  }
}

const words = new Int32Array(memory.buffer);
const u8 = new Uint8Array(memory.buffer);
/** The last word of a write says which one it is. */
const arrives = bytes / 4 - 1;
const leaves = arrives + page / 4;
let round = 0;

function write(pair: QueuePair): void {
  words[leaves] = round;
  pair.wrStart();
  pair.wrRdmaWrite(0, SendFlag.SIGNALED, other.rkey, other.address);
  if (bytes <= INLINE) pair.wrSetInlineData(u8, page, bytes);
  else pair.wrSetSge(region.lkey, memory.address + page, bytes);
  pair.wrComplete();
}

const pingPong: Loop = (n) => {
  for (let i = 0; i < n; i++) {
    round++;
    if (world.rank === 0) write(qp);
    while (Atomics.load(words, arrives) !== round);
    if (world.rank === 1) write(qp);
    complete(cq, 1);
  }
};

const fetchAdd: Loop = (n) => {
  for (let i = 0; i < n; i++) {
    qp.wrStart();
    qp.wrAtomicFetchAdd(0, SendFlag.SIGNALED, other.rkey, other.address, 1, 0);
    qp.wrSetSge(region.lkey, memory.address + page, 8);
    qp.wrComplete();
    complete(cq, 1);
    round++;
  }
};

const stream: Loop = (n) => {
  let posted = 0;
  let outstanding = 0;
  while (posted < n || outstanding > 0) {
    if (posted < n && outstanding + BATCH <= DEPTH) {
      const batch = Math.min(BATCH, n - posted);
      qp.wrStart();
      for (let i = 0; i < batch; i++) {
        qp.wrRdmaWrite(batch, i === batch - 1 ? SendFlag.SIGNALED : 0, other.rkey, other.address);
        qp.wrSetSge(region.lkey, memory.address + page, bytes);
      }
      qp.wrComplete();
      posted += batch;
      outstanding += batch;
      continue;
    }
    const done = cq.poll(DEPTH);
    for (let i = 0; i < done; i++) {
      if (cq.wc.status[i] !== WcStatus.SUCCESS) throw new Error(`a write: ${wcStatusName(cq.wc.status[i])}`);
      outstanding -= cq.wc.wrId[i];
    }
  }
};

const loops: Readonly<Record<string, Loop>> = { write: pingPong, atomic: fetchAdd, bandwidth: stream };
const together = name === 'write';
if (name === 'bandwidth') for (let i = 0; i < bytes; i++) u8[page + i] = (i * 7 + 3) & 0xff;
const block = Number(milliseconds) / 1e3;
const measured =
  together || world.rank === 0
    ? await measure(loops[name], Number(samples), block, together ? world : undefined, Number(warmUp))
    : undefined;
const total = Float64Array.of(measured?.total ?? 0);
world.broadcastSync(total, 0);
if (world.rank === 1) {
  if (name === 'bandwidth') {
    for (let i = 0; i < bytes; i++) if (u8[i] !== ((i * 7 + 3) & 0xff)) throw new Error('a write did not arrive');
  } else {
    const found = words[name === 'write' ? arrives : 0];
    if (found !== (total[0] | 0)) throw new Error(`${found} operations arrived, not ${total[0]}`);
  }
}
if (world.rank === 0) {
  const { seconds, iterations } = measured!;
  const unit = name === 'bandwidth' ? 'MB/s' : 'ns';
  const values = seconds.map((s) => (unit === 'ns' ? (s * 1e9) / (together ? 2 : 1) : bytes / s / 1e6));
  console.log(JSON.stringify({ row: id, unit, iterations, samples: values }));
}
world.barrierSync();
context.close();
await world.finalize();
