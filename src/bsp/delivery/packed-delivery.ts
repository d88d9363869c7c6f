/**
 * Delivery where processes do not load and store each other's memory (BSP-IB §3.1): chunks are sent when the superstep
 * ends, each by one request, from the memory that it was packed in.
 *
 *     1. What `hpput` and `hpget` move has arrived (direct-requests.ts).
 *     2. The processes learn how many chunks come to them (counts.ts); then all have come to the end of the superstep.
 *     3. Chunks leave in a Latin square: in turn k, process i sends one to process i + k, so that no two send to one
 *        process. Between two, what has arrived is looked at: the adapter moves chunks while the processor places
 *        others.
 *     4. Requests of gets are answered as they come. Only when all have been answered are their results written, since
 *        these go to places that may be among what others get, and only then are puts placed. Puts whose data the
 *        receiver reads (zero-copy-delivery.ts) come as lists, which are chunks, too. Lists come first, and are read
 *        before other puts of their process are placed.
 *
 * Puts and lists go by a carrier (carrier.ts); all that takes no buffers there, gets and results among it, goes as
 * messages.
 * They come in order, and begin with the number of their superstep: a process that is a superstep ahead (it cannot be
 * two: it waits for the counts of all) may send before this one has ended its own. All is kept by this process's
 * thread; there is nothing to share.
 *
 * Memory: chunks that this process packs, kept until the end; what the carrier has for those that come; requests of
 * gets and their results while they are under way.
 */
import type { Communicator, OwnChannel } from '../../collective/communicator.ts';
import { GeneratorOperation } from '../../wait/operation.ts';
import { type Chunk, type ChunkPool, HEAD_WORDS, Stream } from '../chunks.ts';
import type { Route } from '../outgoing.ts';
import { Variables } from '../variables.ts';
import type { Carrier, Service } from './carrier.ts';
import type { Buffer } from './carrier-user.ts';
import type { Counting } from './counts.ts';
import type { Delivery, DeliveryStatistics, Superstep } from './delivery.ts';
import type { Carrying } from './delivery-kinds.ts';
import { DirectRequests } from './direct-requests.ts';
import { MulticastCounts } from './multicast-counts.ts';
import { ZeroCopy } from './zero-copy-delivery.ts';

/** What a message or a chunk has in its second word; the first one is the superstep. */
const GETS = 0;
const RESULTS = 1;
const PUTS = 2;
const LIST = 3;
/** The last one of a list. */
const LAST_LIST = 4;
/** All that was in a list has been read. */
const DONE = 5;
/** What carriers tell each other, behind it. */
const CARRIERS = 6;
/** Whether a process has ended the superstep before (direct-requests.ts), and that it has. */
const ASK = 7;
const ENDED = 8;

/** A chunk, or a message, that has come. */
interface Arrival {
  readonly source: number;
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
  /** Words from which to which it has records. */
  readonly from: number;
  readonly to: number;
  /** That it lies in, and that is given back. */
  readonly buffer: Buffer | undefined;
}

/** What has come in a superstep, by kind, and was not looked at yet. */
type Arrivals = readonly [gets: Arrival[], results: Arrival[], puts: Arrival[]];

const noArrivals = (): Arrivals => [[], [], []];

/** A chunk that waits to be sent. */
interface Leaving {
  readonly chunk: Chunk;
  readonly kind: number;
}

export class PackedDelivery implements Delivery {
  readonly pool: ChunkPool;
  readonly variables: Variables | undefined;
  readonly direct: DirectRequests | undefined;
  readonly #comm: Communicator;
  readonly #chunks: OwnChannel;
  readonly #counting: OwnChannel;
  readonly #counts: Counting;
  readonly #carrier: Carrier;
  readonly #zero: ZeroCopy | undefined;
  readonly #stop: () => void;
  /** For even and odd supersteps. */
  readonly #arrivals: readonly [Arrivals, Arrivals] = [noArrivals(), noArrivals()];
  /** Lists of data to be read, likewise. */
  readonly #lists: readonly [Arrival[], Arrival[]] = [[], []];
  readonly #answers: Stream;
  /** As messages name it: 32 bits. */
  #step = 0;
  #steps: GeneratorOperation<void> | undefined;
  /** Chunks that are still to come in this superstep. */
  #getsLeft = 0;
  #putsLeft = 0;
  /** Processes that still read this one's data. */
  #readers = 0;
  #isCounting = false;
  /** Processes that have ended the superstep under way and ask whether this one has. */
  readonly #asking: number[] = [];

  /**
   * @param channels one for messages, one for counts
   */
  constructor(
    comm: Communicator,
    channels: readonly [OwnChannel, OwnChannel],
    counts: Counting,
    { carrier, chooser }: Carrying,
  ) {
    this.#comm = comm;
    [this.#chunks, this.#counting] = channels;
    this.#counts = counts;
    this.#carrier = carrier(comm, {
      tell: (pid, words) => this.#tell(pid, [CARRIERS, ...words]),
      arrived: (pid, buffer, bytes) => this.#chunkArrived(pid, buffer, bytes),
    });
    this.pool = this.#carrier.pool;
    this.#answers = new Stream(() => this.pool);
    const { rdma } = this.#carrier;
    if (chooser !== undefined && rdma !== undefined) {
      this.#zero = new ZeroCopy(comm, rdma, this.pool, chooser(), (pid) => this.#tell(pid, [DONE]));
      this.variables = new Variables(comm, true);
      this.direct = new DirectRequests(comm, rdma.links, (pid) => this.#tell(pid, [ASK]));
    }
    const stopServing = this.#carrier.service && serveWith(comm, this.#carrier.service);
    const stopListening = this.#chunks.listen((source, message) => this.#messageArrived(source, message));
    this.#stop = () => {
      stopServing?.();
      stopListening();
    };
  }

  get bytes(): number {
    return this.#carrier.bytes;
  }

  get route(): Route | undefined {
    return this.#zero;
  }

  begin(superstep: Superstep, numbers: Float64Array): void {
    this.#steps = new GeneratorOperation(this.#sync(superstep, numbers), 'sync');
  }

  advance(): boolean {
    return this.#steps!.advance();
  }

  isPolling(): boolean | number {
    return (this.#isCounting ? this.#counts.isPolling?.() : this.#carrier.isPolling?.()) ?? false;
  }

  get statistics(): DeliveryStatistics {
    const multicast = this.#counts instanceof MulticastCounts ? this.#counts : undefined;
    return { multicast, pacing: this.#carrier.statistics, datagrams: this.#carrier.datagrams };
  }

  waitsFor(): string {
    if (this.#isCounting) {
      const { awaited } = this.#counting;
      return awaited < 0 ? 'the other processes' : `process ${awaited}`;
    }
    if (this.#readers > 0) return `${this.#readers} processes that read what was put`;
    return `${this.#getsLeft + this.#putsLeft} chunks, and results of gets`;
  }

  close(): void {
    this.#stop();
    this.direct?.close();
    this.#carrier.close();
    this.#counts.close?.();
  }

  *#sync(superstep: Superstep, numbers: Float64Array): Generator<void, void> {
    const { outgoing } = superstep;
    const { size } = this.#comm;
    const began = this.#zero === undefined ? 0 : this.#comm.now();
    while (this.direct?.settle() === false) {
      this.#poll();
      if (!this.direct.settle()) yield;
    }
    const leaving = this.#leaving(superstep);
    this.#isCounting = true;
    const puts = Int32Array.from({ length: size }, (_, pid) => leaving[pid]?.length ?? 0);
    const load = this.#carrier.announce?.(leaving.map((line) => line?.map(({ chunk }) => 4 * chunk.i32[chunk.at])));
    const counts = yield* this.#counts.exchange(this.#counting, puts, this.#getChunks(superstep), numbers, load);
    this.#isCounting = false;
    this.#getsLeft = counts.gets;
    this.#putsLeft = counts.puts;
    this.#carrier.expect(counts.puts, counts.totals, counts.from);
    superstep.compare(counts.numbers);
    this.#takeOwn(superstep);
    this.#sendGets(superstep);
    yield* this.#sendAll(superstep, leaving);
    const { results } = outgoing;
    while (!this.#isComplete() || results.some((one) => one?.isComplete === false)) {
      if (!this.#work(superstep)) yield;
    }
    this.#step = (this.#step + 1) | 0;
    this.direct?.next();
    for (const pid of this.#asking.splice(0)) this.#tell(pid, [ENDED]);
    // A process that computes afterwards would keep the others waiting for what has not left, or what is not
    // acknowledged.
    const { messenger } = this.#comm.job;
    messenger.acknowledge();
    while (!messenger.drained || !this.#carrier.isSilent) {
      this.#poll();
      messenger.acknowledge();
      if (!messenger.drained || !this.#carrier.isSilent) yield;
    }
    this.#carrier.delivered?.();
    this.#zero?.next(this.#comm.now() - began);
    this.pool.recycle();
    this.#answers.reset();
  }

  #poll(): void {
    this.#chunks.poll();
    this.#carrier.poll();
  }

  #isComplete(): boolean {
    const [gets, results, puts] = this.#arrivals[this.#step & 1];
    const waiting = gets.length + puts.length + results.length;
    const reading = this.#readers + (this.#zero?.reading ?? 0);
    return this.#getsLeft === 0 && this.#putsLeft === 0 && waiting === 0 && reading === 0;
  }

  /** What goes to each other process: lists first, so that they are read first. */
  #leaving({ outgoing }: Superstep): (Leaving[] | undefined)[] {
    const { rank, size } = this.#comm;
    const all = new Array<Leaving[] | undefined>(size).fill(undefined);
    if (outgoing.isEmpty) return all;
    for (let pid = 0; pid < size; pid++) {
      if (pid === rank) continue;
      const list = this.#zero?.listFor(pid)?.chunks ?? [];
      const puts = outgoing.puts[pid]?.chunks ?? [];
      if (list.length + puts.length === 0) continue;
      if (list.length > 0) this.#readers++;
      outgoing.puts[pid]?.finish();
      const last = list.length - 1;
      all[pid] = [
        ...list.map((chunk, i) => ({ chunk, kind: i === last ? LAST_LIST : LIST })),
        ...puts.map((chunk) => ({ chunk, kind: PUTS })),
      ];
    }
    return all;
  }

  /** Chunks with requests of gets for each process but this one, whose own are not sent. */
  #getChunks({ outgoing }: Superstep): Int32Array {
    const { rank } = this.#comm;
    return Int32Array.from(outgoing.gets, (stream, pid) => (pid === rank ? 0 : (stream?.chunks.length ?? 0)));
  }

  /** What this process has for itself counts as arrived. */
  #takeOwn(superstep: Superstep): void {
    const { rank } = this.#comm;
    const { gets, puts } = superstep.outgoing;
    const here = this.#arrivals[this.#step & 1];
    for (const [stream, kind] of [[gets[rank], GETS] as const, [puts[rank], PUTS] as const]) {
      if (stream === undefined || stream.chunks.length === 0) continue;
      stream.finish();
      if (kind === GETS) this.#getsLeft += stream.chunks.length;
      else this.#putsLeft += stream.chunks.length;
      for (const { i32, u8, at } of stream.chunks) {
        here[kind].push({ source: rank, i32, u8, from: at + HEAD_WORDS, to: at + i32[at], buffer: undefined });
      }
    }
    this.#work(superstep);
  }

  #sendGets(superstep: Superstep): void {
    const { rank, size } = this.#comm;
    for (let k = 1; k < size; k++) {
      const target = (rank + k) % size;
      const stream = superstep.outgoing.gets[target];
      stream?.finish();
      for (const chunk of stream?.chunks ?? []) this.#give(target, chunk, GETS);
    }
  }

  /** In a Latin square, one chunk at a time. */
  *#sendAll(superstep: Superstep, leaving: readonly (Leaving[] | undefined)[]): Generator<void, void> {
    const { rank, size } = this.#comm;
    const most = leaving.reduce((sum, line) => Math.max(sum, line?.length ?? 0), 0);
    for (let i = 0; i < most; i++) {
      for (let k = 1; k < size; k++) {
        const target = (rank + k) % size;
        const line = leaving[target];
        if (line === undefined || i >= line.length) continue;
        while (!this.#carrier.isReady(target)) if (!this.#work(superstep)) yield;
        this.#send(target, line[i], i === line.length - 1);
        this.#work(superstep);
      }
    }
  }

  #send(target: number, { chunk, kind }: Leaving, isLast: boolean): void {
    const { i32, at } = chunk;
    const bytes = 4 * i32[at];
    i32[at] = this.#step;
    i32[at + 1] = kind;
    this.#carrier.send(target, chunk, bytes, !isLast);
  }

  /** As a message. */
  #give(target: number, { i32, u8, at }: Chunk, kind: number): void {
    const used = i32[at];
    i32[at] = this.#step;
    i32[at + 1] = kind;
    this.#chunks.give(target, u8.subarray(4 * at, 4 * (at + used)));
  }

  #tell(target: number, words: readonly number[]): void {
    this.#chunks.give(target, new Uint8Array(Int32Array.of(this.#step, ...words).buffer));
  }

  #messageArrived(source: number, message: Uint8Array): void {
    const u8 = message.byteOffset % 4 === 0 ? message : message.slice();
    const i32 = new Int32Array(u8.buffer, u8.byteOffset, u8.length >> 2);
    const kind = i32[1];
    if (kind === CARRIERS) this.#carrier.heard(source, i32.subarray(2));
    else if (kind === DONE) this.#readers--;
    else if (kind === ENDED) this.direct!.granted(source);
    else if (kind === ASK && i32[0] === this.#step) this.#tell(source, [ENDED]);
    else if (kind === ASK) this.#asking.push(source);
    else {
      const arrival = { source, i32, u8, from: HEAD_WORDS, to: i32.length, buffer: undefined };
      this.#arrivals[i32[0] & 1][kind].push(arrival);
    }
  }

  #chunkArrived(source: number, buffer: Buffer, bytes: number): void {
    const { i32, u8 } = buffer;
    const to = bytes >> 2;
    if (i32[1] === PUTS) this.#arrivals[i32[0] & 1][PUTS].push({ source, i32, u8, from: HEAD_WORDS, to, buffer });
    else this.#lists[i32[0] & 1].push({ source, i32, u8, from: HEAD_WORDS, to, buffer });
  }

  /** Does what can be done now. False if there was nothing. */
  #work(superstep: Superstep): boolean {
    this.#poll();
    const [gets, results, puts] = this.#arrivals[this.#step & 1];
    const { outgoing, placement } = superstep;
    let found = gets.length > 0;
    for (const { source, i32, from, to } of gets.splice(0)) {
      this.#getsLeft--;
      this.#answer(superstep, source, i32, from, to);
    }
    if (this.#getsLeft > 0) return found;
    for (const { source, i32, u8, from, to } of results.splice(0)) {
      outgoing.results[source]!.take(i32, u8, from, to);
      found = true;
    }
    if (this.#zero !== undefined && this.#read(this.#zero, superstep)) found = true;
    for (const one of puts.splice(0)) {
      const { source, i32, u8, from, to, buffer } = one;
      if (this.#zero?.isReading(source) === true) {
        puts.push(one);
        continue;
      }
      this.#putsLeft--;
      placement.place(source, i32, u8, from, to);
      if (buffer !== undefined) this.#carrier.release(buffer);
      found = true;
    }
    return found;
  }

  /** Has the data of lists that have come read. False if there was nothing to do. */
  #read(zero: ZeroCopy, { placement }: Superstep): boolean {
    for (const { source, i32, to, buffer } of this.#lists[this.#step & 1].splice(0)) {
      this.#putsLeft--;
      zero.take(source, buffer!, to, i32[1] === LAST_LIST);
    }
    return zero.read(placement);
  }

  /** Reads for the gets of a chunk, and sends the results; its own stay in their chunks, which are free later. */
  #answer({ placement }: Superstep, source: number, i32: Int32Array, from: number, to: number): void {
    const answers = this.#answers;
    answers.reset();
    placement.serve(source, answers, i32, from, to);
    answers.finish();
    for (const chunk of answers.chunks) {
      if (source !== this.#comm.rank) {
        this.#give(source, chunk, RESULTS);
        continue;
      }
      const { i32: words, u8, at } = chunk;
      const own = { source, i32: words, u8, from: at + HEAD_WORDS, to: at + words[at], buffer: undefined };
      this.#arrivals[this.#step & 1][RESULTS].push(own);
    }
  }
}

/** Has the others served while this process waits, or where a helper is, while it computes. @returns ends it */
function serveWith({ members, job }: Communicator, service: Service): () => void {
  const stop = members.serve(() => service.serve(), true);
  const stopBeside = job.processor.handleCompletions(
    () => {
      try {
        service.serve();
      } catch {
        // Each later look of the program says it again.
      }
    },
    (cq, receives) => receives && service.isAskedBy(cq),
  );
  return () => {
    stop();
    stopBeside();
  };
}
