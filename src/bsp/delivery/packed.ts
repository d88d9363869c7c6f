/**
 * Delivery by messages (BSP-IB §3.1): chunks are sent when the superstep ends, each as one message.
 *
 *     1. The processes learn how many chunks come to them (counts.ts); then all have come to the end of the superstep.
 *     2. Chunks leave in a Latin square: in turn k, process i sends one to process i + k, so that no two send to one
 *        process. Between two, what has arrived is looked at: the adapter moves chunks while the processor places
 *        others.
 *     3. Requests of gets are answered as they come, and only when all have been, puts are placed.
 *
 * Messages of one process come in order, and begin with the number of their superstep: a process that is a superstep
 * ahead (it cannot be two: it waits for the counts of all) may send before this one has ended its own. All is kept by
 * this process's thread; there is nothing to share.
 *
 * Memory: chunks that this process packs, kept until the end, and those that have come and were not placed yet.
 */
import type { Communicator, OwnChannel } from '../../comm/communicator.ts';
import { GeneratorOperation } from '../../comm/operation.ts';
import { HEAD_WORDS, HeapChunks, Stream } from '../chunks.ts';
import type { Counting } from './counts.ts';
import type { Delivery, Superstep } from './delivery.ts';
import { MulticastCounts, type MulticastStatistics } from './multicast.ts';

/** What a message has in its second word; the first one is the superstep. */
const GETS = 0;
const PUTS = 1;
const RESULTS = 2;

/** A chunk that has come. */
interface Arrival {
  readonly source: number;
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
}

/** What has come in a superstep, by kind, and was not looked at yet. */
type Arrivals = readonly [gets: Arrival[], puts: Arrival[], results: Arrival[]];

const noArrivals = (): Arrivals => [[], [], []];

export class PackedDelivery implements Delivery {
  readonly pool = new HeapChunks();
  readonly #comm: Communicator;
  readonly #chunks: OwnChannel;
  readonly #counting: OwnChannel;
  readonly #counts: Counting;
  readonly #stop: () => void;
  /** For even and odd supersteps. */
  readonly #arrivals: readonly [Arrivals, Arrivals] = [noArrivals(), noArrivals()];
  readonly #answers: Stream;
  #step = 0;
  #steps: GeneratorOperation<void> | undefined;
  /** Chunks that are still to come in this superstep. */
  #getsLeft = 0;
  #putsLeft = 0;
  #isCounting = false;

  /** @param channels one for chunks, one for counts */
  constructor(comm: Communicator, channels: readonly [OwnChannel, OwnChannel], counts: Counting) {
    this.#comm = comm;
    [this.#chunks, this.#counting] = channels;
    this.#counts = counts;
    this.#answers = new Stream(() => this.pool);
    this.#stop = this.#chunks.listen((source, message) => this.#arrived(source, message));
  }

  get bytes(): number {
    return this.pool.bytes;
  }

  begin(superstep: Superstep, numbers: Float64Array): void {
    this.#steps = new GeneratorOperation(this.#sync(superstep, numbers), 'sync');
  }

  advance(): boolean {
    return this.#steps!.advance();
  }

  isPolling(): boolean | number {
    return this.#isCounting && (this.#counts.isPolling?.() ?? false);
  }

  get statistics(): MulticastStatistics | undefined {
    return this.#counts instanceof MulticastCounts ? this.#counts : undefined;
  }

  waitsFor(): string {
    if (this.#isCounting) {
      const { awaited } = this.#counting;
      return awaited < 0 ? 'the other processes' : `process ${awaited}`;
    }
    return `${this.#getsLeft + this.#putsLeft} chunks, and results of gets`;
  }

  close(): void {
    this.#stop();
    this.#counts.close?.();
  }

  *#sync(superstep: Superstep, numbers: Float64Array): Generator<void, void> {
    const { outgoing } = superstep;
    const { rank } = this.#comm;
    this.#isCounting = true;
    const [puts, gets] = [countsOf(outgoing.puts, rank), countsOf(outgoing.gets, rank)];
    const counts = yield* this.#counts.exchange(this.#counting, puts, gets, numbers);
    this.#isCounting = false;
    this.#getsLeft = counts.gets;
    this.#putsLeft = counts.puts;
    superstep.compare(counts.numbers);
    this.#takeOwn(superstep, GETS, outgoing.gets[rank]);
    this.#takeOwn(superstep, PUTS, outgoing.puts[rank]);
    this.#sendAll(superstep, outgoing.gets, GETS);
    this.#sendAll(superstep, outgoing.puts, PUTS);
    const { results } = outgoing;
    while (!this.#isComplete() || results.some((one) => one?.isComplete === false)) {
      if (!this.#work(superstep)) yield;
    }
    // A process that computes afterwards would keep the others waiting for what has not left.
    const { messenger } = this.#comm.job;
    while (!messenger.drained) {
      messenger.poll();
      if (!messenger.drained) yield;
    }
    this.#step++;
    this.pool.recycle();
    this.#answers.reset();
  }

  #isComplete(): boolean {
    const [gets, puts, results] = this.#arrivals[this.#step & 1];
    const waiting = gets.length + puts.length + results.length;
    return this.#getsLeft === 0 && this.#putsLeft === 0 && waiting === 0;
  }

  /** What this process has for itself counts as arrived. */
  #takeOwn(superstep: Superstep, kind: number, stream: Stream | undefined): void {
    if (stream === undefined || stream.chunks.length === 0) return;
    stream.finish();
    if (kind === GETS) this.#getsLeft += stream.chunks.length;
    else this.#putsLeft += stream.chunks.length;
    const { rank } = this.#comm;
    for (const { i32, u8, at } of stream.chunks) {
      const end = at + i32[at];
      this.#arrivals[this.#step & 1][kind].push({
        source: rank,
        i32: i32.subarray(at, end),
        u8: u8.subarray(4 * at, 4 * end),
      });
    }
    this.#work(superstep);
  }

  /** In a Latin square, one chunk at a time. */
  #sendAll(superstep: Superstep, streams: readonly (Stream | undefined)[], kind: number): void {
    const { rank, size } = this.#comm;
    let most = 0;
    for (let pid = 0; pid < size; pid++) {
      const stream = streams[pid];
      if (pid === rank || stream === undefined) continue;
      stream.finish();
      most = Math.max(most, stream.chunks.length);
    }
    for (let i = 0; i < most; i++) {
      for (let k = 1; k < size; k++) {
        const target = (rank + k) % size;
        const stream = streams[target];
        if (stream === undefined || i >= stream.chunks.length) continue;
        this.#send(target, stream, i, kind);
        this.#work(superstep);
      }
    }
  }

  #send(target: number, stream: Stream, i: number, kind: number): void {
    const { i32, u8, at } = stream.chunks[i];
    const used = i32[at];
    i32[at] = this.#step;
    i32[at + 1] = kind;
    this.#chunks.give(target, u8.subarray(4 * at, 4 * (at + used)));
  }

  #arrived(source: number, message: Uint8Array): void {
    const own = message.byteOffset % 4 === 0 ? message : message.slice();
    const i32 = new Int32Array(own.buffer, own.byteOffset, own.length >> 2);
    this.#arrivals[i32[0] & 1][i32[1]].push({ source, i32, u8: own });
  }

  /** Does what can be done now. False if there was nothing. */
  #work(superstep: Superstep): boolean {
    this.#chunks.poll();
    const [gets, puts, results] = this.#arrivals[this.#step & 1];
    const { outgoing, placement } = superstep;
    const found = gets.length + results.length;
    for (const { source, i32 } of gets.splice(0)) {
      this.#getsLeft--;
      this.#answer(superstep, source, i32);
    }
    for (const { source, i32, u8 } of results.splice(0)) {
      outgoing.results[source]!.take(i32, u8, HEAD_WORDS, i32.length);
    }
    if (this.#getsLeft > 0 || puts.length === 0) return found > 0;
    for (const { source, i32, u8 } of puts.splice(0)) {
      this.#putsLeft--;
      placement.place(source, i32, u8, HEAD_WORDS, i32.length);
    }
    return true;
  }

  /** Reads for the gets of a chunk, and sends the results. */
  #answer({ outgoing, placement }: Superstep, source: number, i32: Int32Array): void {
    const answers = this.#answers;
    answers.reset();
    placement.serve(source, answers, i32, HEAD_WORDS, i32.length);
    answers.finish();
    for (let i = 0; i < answers.chunks.length; i++) {
      if (source !== this.#comm.rank) {
        this.#send(source, answers, i, RESULTS);
        continue;
      }
      const { i32: words, u8, at } = answers.chunks[i];
      outgoing.results[source]!.take(words, u8, at + HEAD_WORDS, at + words[at]);
    }
  }
}

/** Chunks for each process but this one, whose own are not sent. */
function countsOf(streams: readonly (Stream | undefined)[], rank: number): Int32Array {
  return Int32Array.from(streams, (stream, pid) => (pid === rank ? 0 : (stream?.chunks.length ?? 0)));
}
