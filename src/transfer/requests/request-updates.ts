/**
 * Accumulates by requests alone: the target's processor takes no part, so they go on while it computes.
 *
 * On a device, its atomics and the processor's do not agree. So whatever must be atomic is done by the device, also a
 * rank's accumulates to its own part.
 *
 * - 64-bit integers: SUM and NO_OP are one fetch-and-add an element. Every other operation is a fetch-and-add of
 *   nothing (of several elements that lie together, one read), then compare-and-swap until no other update came
 *   between; `compareAndSwap` is one. REPLACE is no write: a device's atomics are atomic towards each other, not
 *   towards writes (InfiniBand 1.3, 9.4.5), so a write between the read and the write of another rank's atomic would be
 *   lost. All of them are atomics of the device on the element itself, so they agree with each other. The exception is
 *   a window whose accumulates go in bulk: there these types are treated as all others.
 * - All other types: the element's stripe is locked (remote-stripes.ts), what changes is read, combined here, written
 *   back, and the stripe released by a fetch-and-add on the same connection behind the writes. The read is posted right
 *   behind the compare-and-swap that locks. If that took the stripe, which is the rule, the read was carried out under
 *   it; if not, its bytes are not looked at, and there is another read. A rank that needs several stripes takes them in
 *   ascending order, and holds none while it waits for one of a lower number, so no ranks wait in a circle. All ranks
 *   use the stripes for these types, so all of them are atomic towards each other.
 *
 *   Where the owner carries updates out by itself (`Capabilities.updates`), what one stripe covers goes that way first
 *   (owner-updates.ts).
 *
 * Memory order. A read or an atomic behind a write or an atomic of the same connection sees it (InfiniBand's ordering
 * rules; so does the release). The rank that acquires the stripe next reads behind its own compare-and-swap.
 *
 * Cost: one round trip for SUM of 64-bit integers, two or three for their other operations, two for the rest (three
 * where several stripes are needed, and one more for each of them; one by the owner); elements of one call share them.
 */
import { combineBigInt } from '../../datatype/arithmetic.ts';
import { bytesOf, type TypedArray } from '../../datatype/base-types.ts';
import { elementOffsets } from '../../datatype/layout.ts';
import { changesTarget, OpCode } from '../../datatype/op.ts';
import type { Side } from '../../datatype/sides.ts';
import { TypeCode } from '../../datatype/type-codes.ts';
import { accumulateElements, type BulkKernels } from '../loads/accumulate.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import { STRIPE_BYTES, STRIPE_WORDS, Stripes, stripeAt } from '../loads/stripes.ts';
import { accumulateByOwner, addAhead, swapAhead, swapByOwner } from './ahead-updates.ts';
import type { Fetch } from './fetch.ts';
import { OwnerUpdates } from './owner-updates.ts';
import type { Regions, RemoteRegion } from './regions.ts';
import type { Lock } from './remote-access.ts';
import { type Acquired, type RemoteStripes, Reply } from './remote-stripes.ts';
import type { Ahead, Hold, HoldingSteps } from './request-tasks.ts';
import type { RequestTransfer } from './request-transfer.ts';
import {
  type Arrays,
  halves,
  joined,
  type Operands,
  refuseGone,
  refuseGoneOf,
  store,
  swapBytes,
  swapWord,
  viewOf,
  wordAt,
} from './update-operands.ts';

const WIDE = 8;
/** What is read for an element, at most, in multiples of its size. */
const MOST_READ = 4;

export class RequestUpdates {
  readonly #requests: RequestTransfer;
  readonly #parts: Regions;
  readonly #stripes: RemoteStripes;
  readonly #inBulk: boolean;
  readonly #kernels: BulkKernels | undefined;
  /** For the copies that are combined here, which no other rank sees. */
  readonly #ownStripes: Stripes;
  /** Where owners carry updates out. */
  readonly #byOwner: OwnerUpdates | undefined;

  /**
   * @param parts the ranks' parts
   * @param stripes those of all of them
   * @param inBulk 64-bit integers are updated under stripes, too; the same at all ranks
   */
  constructor(
    requests: RequestTransfer,
    rank: number,
    parts: Regions,
    stripes: RemoteStripes,
    inBulk: boolean,
    kernels: BulkKernels | undefined,
  ) {
    this.#requests = requests;
    this.#parts = parts;
    this.#stripes = stripes;
    this.#inBulk = inBulk;
    this.#kernels = kernels;
    this.#byOwner = requests.updates ? new OwnerUpdates(requests, stripes) : undefined;
    this.#ownStripes = new Stripes(new Int32Array(STRIPE_WORDS), 0, { rank, findFailure: () => undefined });
  }

  /** By how many bytes a rank's part begins behind a multiple of 8. */
  skewOf(rank: number): number {
    return skewOf(this.#parts.of(rank));
  }

  /**
   * Begins an accumulate to byte `at` of a region, which is the rank's part if none is given; arguments have been
   * checked. Origin and result may be arrays of bytes. All ranks that reach an element must name it by the same `at`:
   * its stripe follows from that.
   */
  accumulate(
    origin: TypedArray,
    from: Side,
    rank: number,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
    region = this.#parts.of(rank),
  ): void {
    const here = (part: RemotePart, place: number): void =>
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
      );
    if (this.#isDoneHere(rank, region, at, to, here)) return;
    const operands = {
      origin: bytesOf(origin),
      from,
      result: fetch && bytesOf(fetch.result),
      into: fetch?.side,
    };
    const isByDevice = this.#isByDevice(to);
    const isOneAtomic = isByDevice && to.elements === 1 && (op === OpCode.SUM || !changesTarget(op));
    const isOnlySum = isOneAtomic && op === OpCode.SUM && fetch === undefined;
    if (isOnlySum && this.#byOwner !== undefined && this.#requests.isTaskless(rank)) {
      // One request, of which nothing is wanted but that it is complete.
      this.#addWide(operands, rank, region, at, to);
      return;
    }
    const ahead = isOneAtomic
      ? this.#byOwner && addAhead(this.#requests.remote, operands, wordAt(rank, region, at + elementOffsets(to)[0]), op)
      : this.#byOwner?.ahead(
          rank,
          region,
          at,
          to,
          isByDevice ? 'none' : 'stripe',
          accumulateByOwner(operands, rank, to, op, this.#ownStripes, this.#kernels),
        );
    if (ahead === undefined && isByDevice) {
      const alone = op === OpCode.SUM && fetch === undefined && this.#requests.collectsFor(rank);
      if (alone) this.#addWide(operands, rank, region, at, to);
      else this.#requests.begin(rank, this.#updateWide(operands, rank, region, at, to, op));
      return;
    }
    const make = (hold: Hold): HoldingSteps =>
      isByDevice
        ? thenDone(this.#updateWide(operands, rank, region, at, to, op))
        : this.#updateUnderStripes(hold, operands, rank, region, at, to, op);
    this.#requests.beginHolding(rank, make, ahead);
  }

  /** Begins a compare-and-swap of one integer or byte. */
  compareAndSwap(
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    at: number,
    to: Side,
    region = this.#parts.of(rank),
  ): void {
    const arrays = { origin: bytesOf(origin), compare: bytesOf(compare), result: bytesOf(result) };
    const isWide = this.#isByDevice(to);
    const here = (part: RemotePart, place: number): void => {
      if (isWide) swapWord(part.i64, place / WIDE, arrays);
      else swapBytes(part.u8.subarray(place, place + to.elementSize), arrays);
    };
    if (this.#isDoneHere(rank, region, at, to, here)) return;
    if (isWide && this.#byOwner === undefined) {
      this.#requests.begin(rank, this.#swapWide(arrays, rank, region, at));
      return;
    }
    if (isWide) {
      const word = wordAt(rank, region, at);
      this.#requests.beginHolding(
        rank,
        () => thenDone(this.#swapWide(arrays, rank, region, at)),
        swapAhead(this.#requests.remote, arrays, word),
      );
      return;
    }
    this.#requests.beginHolding(
      rank,
      (hold) => this.#swapUnderStripe(hold, arrays, rank, region, at, to),
      this.#byOwner?.ahead(rank, region, at, to, 'stripe', swapByOwner(arrays, rank, to.elementSize)),
    );
  }

  /**
   * An accumulate that the owner carries out under a lock, which it takes for it and gives back; a put is `REPLACE`, a
   * get `NO_OP`. No other rank may update the elements meanwhile, unless they are only read or replaced. `undefined`:
   * these elements go another way.
   */
  travelling(
    lock: Lock,
    origin: TypedArray,
    from: Side,
    rank: number,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
  ): Ahead | undefined {
    const operands = { origin: bytesOf(origin), from, result: fetch && bytesOf(fetch.result), into: fetch?.side };
    const update = accumulateByOwner(operands, rank, to, op, this.#ownStripes, this.#kernels);
    return this.#byOwner?.ahead(rank, this.#parts.of(rank), at, to, lock, update);
  }

  /** The same for a compare-and-swap. */
  travellingSwap(
    lock: Lock,
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    at: number,
    to: Side,
  ): Ahead | undefined {
    const arrays = { origin: bytesOf(origin), compare: bytesOf(compare), result: bytesOf(result) };
    const update = swapByOwner(arrays, rank, to.elementSize);
    return this.#byOwner?.ahead(rank, this.#parts.of(rank), at, to, lock, update);
  }

  /**
   * Updates elements by this rank's processor, at once, if it reaches them (near-memory.ts), nothing of this rank is
   * under way to the target, and no other rank has their stripe or stands in line for it. What `change` does to
   * elements of 64 bits are the processor's atomics, which agree with the device's. The rest it does under the stripe.
   * It neither waits nor runs the program's code, so the stripe is given back as soon as by a request.
   * @returns whether it is done
   */
  #isDoneHere(
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    change: (part: RemotePart, place: number) => void,
  ): boolean {
    const part = this.#requests.partHere(rank, region);
    if (part === undefined) return false;
    const place = at + part.skew;
    if (this.#isByDevice(to)) {
      change(part, place);
      return true;
    }
    const stripe = stripeAt(at + to.low);
    if (stripeAt(at + to.high - to.elementSize) !== stripe || to.high - to.low > STRIPE_BYTES) return false;
    if (!this.#stripes.takenHere(rank, stripe)) return false;
    try {
      change(part, place);
    } finally {
      this.#stripes.release(rank, stripe);
    }
    return true;
  }

  /**
   * Whether elements are updated by the device's own atomics. This does not depend on their count: between the read and
   * the write of an update under a stripe, an atomic of the device on the same element would be lost, and it does not
   * look at stripes. If it did, a single one would take three round trips in place of one. So each type goes one way in
   * a window.
   */
  #isByDevice({ base }: Side): boolean {
    return !this.#inBulk && (base === TypeCode.INT64 || base === TypeCode.UINT64);
  }

  /**
   * Sums whose answers no call needs. They are not a task, for which those behind it would wait: a device carries out
   * the atomics of a connection in order.
   */
  #addWide({ origin, from }: Operands, rank: number, region: RemoteRegion, at: number, to: Side): void {
    const source = viewOf(origin);
    const sources = elementOffsets(from);
    for (const [i, target] of elementOffsets(to).entries()) {
      const [lo, hi] = halves(source.getBigInt64(sources[i], true));
      this.#requests.remote.fetchAdd(wordAt(rank, region, at + target), lo, hi);
    }
  }

  *#updateWide(
    operands: Operands,
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    op: number,
  ): Generator<void, void> {
    const { origin, from, result, into } = operands;
    refuseGone(operands, rank);
    const targets = elementOffsets(to);
    const sources = elementOffsets(from);
    const sinks = into && elementOffsets(into);
    const source = viewOf(origin);
    const sink = result && viewOf(result);
    const give = (reply: Reply, i: number): void => {
      if (sink === undefined) return;
      refuseGone(operands, rank);
      store(sink, sinks![i], reply);
    };
    // What an addition does: of 0, where nothing changes.
    const once = op === OpCode.SUM || !changesTarget(op);
    const fetchAll = (): Reply[] =>
      Array.from(targets, (target, i) => {
        const reply = new Reply();
        const [lo, hi] = op === OpCode.SUM ? halves(source.getBigInt64(sources[i], true)) : [0, 0];
        this.#requests.remote.fetchAdd(wordAt(rank, region, at + target), lo, hi, reply.take);
        return reply;
      });
    const inOne = !once && targets.length > 1 && to.high - to.low <= MOST_READ * WIDE * targets.length;
    const replies = inOne ? yield* this.#glimpse(rank, region, at, to, targets) : fetchAll();
    for (const [i, reply] of replies.entries()) {
      yield* reply.wait();
      if (once) give(reply, i);
    }
    if (once) return;
    const signed = to.base === TypeCode.INT64;
    // Each element until no other update came between; those with one between go another round together.
    let left = replies.map((seen, i) => ({ i, seen, found: seen }));
    while (left.length > 0) {
      refuseGone(operands, rank);
      for (const element of left) {
        element.found = new Reply();
        const { seen, found } = element;
        const place = sources[element.i];
        let lo = source.getUint32(place, true);
        let hi = source.getUint32(place + 4, true);
        if (op !== OpCode.REPLACE) {
          [lo, hi] = halves(combineBigInt(op, joined(seen.lo, seen.hi, signed), joined(lo, hi, signed)));
        }
        const word = wordAt(rank, region, at + targets[element.i]);
        this.#requests.remote.compareSwap(word, seen.lo, seen.hi, lo, hi, found.take);
      }
      const again: typeof left = [];
      for (const element of left) {
        const { seen, found } = element;
        yield* found.wait();
        if (found.lo !== seen.lo || found.hi !== seen.hi) {
          element.seen = found;
          again.push(element);
        } else give(found, element.i);
      }
      left = again;
    }
  }

  /**
   * What may be in the elements, read with those between them: one request in place of an atomic for each. It need not
   * be what an atomic would find (another rank may be writing there): the compare-and-swap behind it says whether it
   * was.
   */
  *#glimpse(
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    targets: ArrayLike<number>,
  ): Generator<void, Reply[]> {
    const { remote } = this.#requests;
    const bytes = to.high - to.low;
    const scratch = remote.scratch(bytes);
    try {
      yield* remote.read(rank, at + to.low, scratch.region, 0, bytes, region, scratch.left);
      const there = viewOf(scratch.part.u8);
      return Array.from(targets, (target) => {
        const reply = new Reply();
        const place = target - to.low;
        reply.take(there.getUint32(place, true), there.getUint32(place + 4, true));
        return reply;
      });
    } finally {
      scratch.free();
    }
  }

  *#updateUnderStripes(
    hold: Hold,
    operands: Operands,
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
    op: number,
  ): HoldingSteps {
    return yield* this.#underStripes(hold, rank, region, at, to, changesTarget(op), (part, place) => {
      refuseGone(operands, rank);
      const { origin, from, result, into } = operands;
      accumulateElements(part, place, to, origin, from, op, result, into, this.#ownStripes, this.#kernels);
    });
  }

  *#swapWide(arrays: Arrays, rank: number, region: RemoteRegion, at: number): Generator<void, void> {
    const swap = swapAhead(this.#requests.remote, arrays, wordAt(rank, region, at));
    swap.post();
    while (!swap.isOver()) yield;
    swap.end();
  }

  *#swapUnderStripe(
    hold: Hold,
    arrays: Arrays,
    rank: number,
    region: RemoteRegion,
    at: number,
    to: Side,
  ): HoldingSteps {
    return yield* this.#underStripes(hold, rank, region, at, to, true, (part, place) => {
      refuseGoneOf(arrays, rank);
      swapBytes(part.u8.subarray(place, place + to.elementSize), arrays);
    });
  }

  /**
   * Holds the stripes of `to` at byte `at` of the target's region; `change` gets a copy of what is there, of which the
   * target's places are written back. Until then nothing has changed, so the task can leave and begin anew; whatever
   * `change` throws, the stripes are given back. After that nothing is waited for with a stripe: its release is on its
   * way behind the writes.
   */
  *#underStripes(
    hold: Hold,
    rank: number,
    target: RemoteRegion,
    at: number,
    to: Side,
    writes: boolean,
    change: (part: RemotePart, place: number) => void,
  ): HoldingSteps {
    // The copy begins at an address that is a multiple of 8, so that elements in it are aligned as they are there; what
    // is before the first of them is not read.
    const skew = skewOf(target);
    const begin = Math.floor((at + Math.min(0, to.low) + skew) / 8) * 8 - skew;
    const first = at + to.low - begin;
    const bytes = at + to.high - begin;
    const requests = this.#requests;
    const scratch = requests.remote.scratch(Math.max(8, bytes));
    const { part, region, left } = scratch;
    const held: number[] = [];
    let written: Generator<void, void> | undefined;
    try {
      hold.has = true;
      const read = (): Generator<void, void> =>
        requests.remote.read(rank, begin, region, first, bytes - first, target, left);
      const stripes = stripesOf(at, to);
      let early: Generator<void, void> | undefined;
      const readEarly = (): void => {
        early = read();
      };
      let acquired: Acquired = 'later';
      for (const stripe of stripes) {
        acquired = yield* this.#stripes.acquire(rank, stripe, hold, stripes.length === 1 ? readEarly : undefined);
        if (acquired === 'left') return false;
        held.push(stripe);
        if (hold.leaving) return false;
      }
      const reading = acquired === 'at once' && early !== undefined ? early : read();
      while (!reading.next().done) {
        if (hold.leaving) return false;
        yield;
      }
      change(part, at - begin);
      if (writes) written = requests.remote.write(rank, begin, region, at - begin, to, target, left);
    } finally {
      for (const stripe of held) this.#stripes.release(rank, stripe);
      hold.has = false;
      scratch.free();
    }
    if (written !== undefined) yield* written;
    return true;
  }
}

/** Steps that hold nothing. */
function* thenDone(steps: Generator<void, void>): HoldingSteps {
  yield* steps;
  return true;
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
