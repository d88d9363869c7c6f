/**
 * Accumulates by requests alone: the target's processor takes no part, so they go on while it computes.
 *
 * On a device, its atomics and the processor's do not agree, so whatever must be atomic is done by the device, also a rank's accumulates to its own part.
 *
 * - 64-bit integers: SUM and NO_OP are one fetch-and-add an element; every other operation a fetch-and-add of nothing, then compare-and-swap until nobody came between;
 *   `compareAndSwap` is one. All of them are atomics of the device on the element itself, so they agree with each other.
 * - All other types: the element's stripe is locked by compare-and-swap on a word at the target (0 -> this rank), what is to change is read, combined here, written back, and
 *   the stripe released by a fetch-and-add on the same connection behind the writes. A word is touched by atomics only. Who needs several stripes takes them in ascending order, and
 *   holds none while it waits for one of a lower number, so nobody waits in a circle. Everybody uses the stripes for these types, so all of them are atomic towards each other.
 *
 * Memory order. A read or an atomic behind a write of the same connection sees it (InfiniBand's ordering rules; so does the release), and whoever acquires the stripe next
 * reads after its own compare-and-swap was answered.
 *
 * Cost: one round trip for SUM of 64-bit integers, two or three for their other operations, four for the rest; elements of one call share them.
 */
import { combineBigInt } from '../datatype/arithmetic.ts';
import type { TypedArray } from '../datatype/base.ts';
import { OpCode, TypeCode } from '../datatype/codes.ts';
import { elementOffsets, type Side } from '../datatype/layout.ts';
import type { Context } from '../verbs/device.ts';
import { accumulateElements, type BulkKernels } from './accumulate.ts';
import { RemotePart } from './remote-part.ts';
import type { Answer, RemoteRegion, RemoteWord, RequestTransfer } from './requests.ts';
import { STRIPE_WORDS, Stripes, stripeAt } from './stripes.ts';

/** Where what an accumulate found goes. */
export interface Fetch {
  readonly result: TypedArray;
  readonly side: Side;
}

/** An answer that is waited for. */
class Reply {
  there = false;
  lo = 0;
  hi = 0;
  readonly take: Answer = (lo, hi) => {
    this.lo = lo;
    this.hi = hi;
    this.there = true;
  };

  store(view: DataView, at: number): void {
    view.setUint32(at, this.lo, true);
    view.setUint32(at + 4, this.hi, true);
  }
}

export class RequestUpdates {
  readonly #requests: RequestTransfer;
  readonly #context: Context;
  readonly #me: number;
  readonly #parts: readonly RemoteRegion[];
  readonly #stripes: (rank: number, stripe: number) => RemoteWord;
  readonly #kernels: BulkKernels | undefined;
  /** For the copies that are combined here, which nobody else sees. */
  readonly #ownStripes: Stripes;

  /** @param parts the ranks' parts; @param stripes the words of their stripes */
  constructor(
    context: Context,
    requests: RequestTransfer,
    rank: number,
    parts: readonly RemoteRegion[],
    stripes: (rank: number, stripe: number) => RemoteWord,
    kernels: BulkKernels | undefined,
  ) {
    this.#context = context;
    this.#requests = requests;
    this.#me = rank + 1;
    this.#parts = parts;
    this.#stripes = stripes;
    this.#kernels = kernels;
    this.#ownStripes = new Stripes(new Int32Array(STRIPE_WORDS), 0, { rank, findFailure: () => undefined });
  }

  /** By how many bytes a rank's part begins behind a multiple of 8. */
  skewOf(rank: number): number {
    return skewOf(this.#parts[rank]);
  }

  /**
   * Begins an accumulate to byte `at` of a region, which is the rank's part if none is given; arguments have been checked. Origin and result may be arrays of bytes.
   * Whoever reaches an element must name it by the same `at`: its stripe follows from that.
   */
  accumulate(
    origin: TypedArray,
    from: Side,
    rank: number,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
    region = this.#parts[rank],
  ): void {
    const { base } = to;
    const wide = base === TypeCode.INT64 || base === TypeCode.UINT64;
    const steps = wide
      ? this.#updateWide(origin, from, rank, region, at, to, op, fetch)
      : this.#updateUnderStripes(origin, from, rank, region, at, to, op, fetch);
    this.#requests.begin(rank, steps, !wide);
  }

  /** Begins a compare-and-swap of one integer or byte. */
  compareAndSwap(
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    at: number,
    to: Side,
    region = this.#parts[rank],
  ): void {
    this.#requests.begin(rank, this.#swap(origin, compare, result, rank, region, at, to), to.elementSize !== 8);
  }

  *#updateWide(
    origin: TypedArray,
    from: Side,
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
  ): Generator<void, void> {
    const targets = elementOffsets(to);
    const sources = elementOffsets(from);
    const sinks = fetch && elementOffsets(fetch.side);
    const source = viewOf(origin);
    const sink = fetch && viewOf(fetch.result);
    const once = op === OpCode.SUM || op === OpCode.NO_OP;
    const replies = Array.from(targets, (target, i) => {
      const reply = new Reply();
      const word = wordAt(rank, region, at + target);
      if (op === OpCode.SUM) {
        const [lo, hi] = halves(source.getBigInt64(sources[i], true));
        this.#requests.fetchAdd(word, lo, hi, reply.take);
      } else this.#requests.fetchAdd(word, 0, 0, reply.take);
      return reply;
    });
    for (const [i, reply] of replies.entries()) {
      while (!reply.there) yield;
      if (once && sink !== undefined) reply.store(sink, sinks![i]);
    }
    if (once) return;
    const signed = to.base === TypeCode.INT64;
    // Each element until nobody came between; those of which somebody did go another round together.
    let left = replies.map((seen, i) => ({ i, seen, found: seen }));
    while (left.length > 0) {
      for (const element of left) {
        element.found = new Reply();
        const value = wideAt(source, sources[element.i], signed);
        const [lo, hi] = halves(combineBigInt(op, joined(element.seen.lo, element.seen.hi, signed), value));
        const word = wordAt(rank, region, at + targets[element.i]);
        this.#requests.compareSwap(word, element.seen.lo, element.seen.hi, lo, hi, element.found.take);
      }
      const again: typeof left = [];
      for (const element of left) {
        const { seen, found } = element;
        while (!found.there) yield;
        if (found.lo !== seen.lo || found.hi !== seen.hi) {
          element.seen = found;
          again.push(element);
        } else if (sink !== undefined) found.store(sink, sinks![element.i]);
      }
      left = again;
    }
  }

  *#updateUnderStripes(
    origin: TypedArray,
    from: Side,
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
  ): Generator<void, void> {
    yield* this.#underStripes(rank, region, at, to, op !== OpCode.NO_OP, (part, place) =>
      accumulateElements(
        part,
        place,
        to,
        origin,
        from,
        op,
        fetch?.result,
        fetch?.side,
        this.#ownStripes,
        this.#kernels,
      ),
    );
  }

  *#swap(
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
  ): Generator<void, void> {
    if (to.elementSize === 8) {
      const reply = new Reply();
      const [expected, wanted, found] = [compare, origin, result].map(viewOf);
      this.#requests.compareSwap(
        wordAt(rank, region, at),
        expected.getUint32(0, true),
        expected.getUint32(4, true),
        wanted.getUint32(0, true),
        wanted.getUint32(4, true),
        reply.take,
      );
      while (!reply.there) yield;
      reply.store(found, 0);
      return;
    }
    yield* this.#underStripes(rank, region, at, to, true, (part, place) => {
      const view = part.view(to.base);
      const index = place / to.elementSize;
      result[0] = view[index];
      if (view[index] === compare[0]) view[index] = origin[0];
    });
  }

  /** Holds the stripes of `to` at byte `at` of the target's region; `change` gets a copy of what is there, of which the target's places are written back. */
  *#underStripes(
    rank: number,
    target: RemoteRegion,
    at: number,
    to: Side,
    writes: boolean,
    change: (part: RemotePart, place: number) => void,
  ): Generator<void, void> {
    // The copy begins at an address that is a multiple of 8, so that elements in it are aligned as they are there; what is before the first of them is not read.
    const skew = skewOf(target);
    const begin = Math.floor((at + Math.min(0, to.low) + skew) / 8) * 8 - skew;
    const first = at + to.low - begin;
    const bytes = at + to.high - begin;
    const stripes = stripesOf(at, to);
    const memory = this.#context.allocateMemory(Math.max(8, bytes));
    const region = this.#requests.register(memory);
    try {
      for (const stripe of stripes) yield* this.#acquire(rank, stripe);
      const requests = this.#requests;
      yield* requests.read(rank, begin, region, first, bytes - first, target);
      change(new RemotePart(memory.buffer, 0, bytes), at - begin);
      const written = writes ? requests.write(rank, begin, region, at - begin, to, target) : undefined;
      for (const stripe of stripes) requests.fetchAdd(this.#stripes(rank, stripe), -this.#me, -1);
      if (written !== undefined) yield* written;
    } finally {
      region.deregister();
      memory.free();
    }
  }

  *#acquire(rank: number, stripe: number): Generator<void, void> {
    const word = this.#stripes(rank, stripe);
    for (;;) {
      const reply = new Reply();
      this.#requests.compareSwap(word, 0, 0, this.#me, 0, reply.take, true);
      // The next request is posted at once, so that an answer is always on its way, which wakes whoever waits.
      while (!reply.there) yield;
      if (reply.lo === 0) return;
    }
  }
}

function wordAt(rank: number, { rkey, address }: RemoteRegion, at: number): RemoteWord {
  return { rank, rkey, address: address + at };
}

/** By how many bytes the place 0 of a region, which may lie before its memory, is behind a multiple of 8. */
function skewOf({ address }: RemoteRegion): number {
  return ((address % 8) + 8) % 8;
}

/** The stripes of all elements, in ascending order. */
function stripesOf(at: number, to: Side): number[] {
  const needed = new Set<number>();
  for (const offset of elementOffsets(to)) needed.add(stripeAt(at + offset));
  return [...needed].sort((a, b) => a - b);
}

function viewOf(array: TypedArray): DataView {
  return new DataView(array.buffer, array.byteOffset, array.byteLength);
}

function wideAt(view: DataView, at: number, signed: boolean): bigint {
  return signed ? view.getBigInt64(at, true) : view.getBigUint64(at, true);
}

const exchange = new DataView(new ArrayBuffer(8));

function halves(value: bigint): [lo: number, hi: number] {
  exchange.setBigInt64(0, BigInt.asIntN(64, value), true);
  return [exchange.getUint32(0, true), exchange.getUint32(4, true)];
}

function joined(lo: number, hi: number, signed: boolean): bigint {
  exchange.setUint32(0, lo, true);
  exchange.setUint32(4, hi, true);
  return wideAt(exchange, 0, signed);
}
