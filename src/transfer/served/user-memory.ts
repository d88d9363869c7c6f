/**
 * Access to memory that is a rank's own and not the library's: a plain `ArrayBuffer`, a `Buffer`, in the middle of the
 * owner's heap. No other rank can map it. (What has pages for itself is remapped instead, and mapped: process-heap.ts.)
 *
 * Put and get are copies by the kernel (cross-memory attach), or, between threads, the same call within the process:
 * complete, here and there, when they return; some 0.5 µs a call and 0.1 ns a byte. Where processes may not be attached
 * to (a container without that right), which is found out when a window is made, they are requests to the owner's
 * thread, as the atomic operations always are (memory-server.ts): about 10 µs for each 8 KiB or 256 pieces. These too
 * are complete when they return, so there is nothing to flush.
 *
 * Atomicity: the owner's thread updates each element by the same hardware atomics, or under the same stripes, as the
 * owner does itself. Order: one after the other, because each is waited for.
 */

import { bytesOf, DATA_SIZES, type TypedArray } from '../../datatype/base-types.ts';
import { copyPlaces, forEachRun } from '../../datatype/copy.ts';
import { elementOffsets, forEachSegment, inOrder } from '../../datatype/layout.ts';
import type { Side } from '../../datatype/sides.ts';
import { TypeCode } from '../../datatype/type-codes.ts';
import { RmaError } from '../../errors.ts';
import type { Job } from '../../job/job.ts';
import { PLACE_NUMBERS } from '../../message/word-blocks.ts';
import type { Native } from '../../native.ts';
import type { Context } from '../../verbs/device.ts';
import type { Stripes } from '../loads/stripes.ts';
import { Asker, Kind, OwnServer } from './memory-server.ts';

/** How many numbers {@link Share.numbers} has. */
export const SHARE_NUMBERS = 3 + PLACE_NUMBERS;

/**
 * Whether this is how ranks reach memory that is not the library's and that they cannot map; on devices, requests do.
 * So it is where the emulator poses as a device (`ONESIDED_DEBUG=requests`), too: no request of it reaches such memory.
 */
export function servesMemory({ capabilities: { loadStore, remoteUserMemory } }: Context): boolean {
  return loadStore || !remoteUserMemory;
}

/** This rank's own memory, as it is offered to the others. */
export interface Share {
  /**
   * What a peer needs: process (never 0), address of the memory, an address that can be read, the place of the server's
   * words.
   */
  readonly numbers: readonly number[];
  readonly server: OwnServer;
  /** Of the memory, for the owner's own accumulates; absent for what is added to the server later. */
  readonly stripes: Stripes | undefined;
  /** No rank may access it any more. */
  withdraw(): void;
}

/** Lets the other ranks access memory of this rank. @param memory absent: what is added to the server later */
export function shareMemory(job: Job, native: Native, memory: ArrayBufferView | undefined): Share {
  native.allowAttach();
  const server = OwnServer.acquire(job, native);
  let number: number | undefined;
  try {
    if (memory !== undefined) number = server.add(memory);
  } catch (error) {
    server.release();
    throw error;
  }
  const address = memory === undefined ? 0 : native.addressOf(memory);
  return {
    numbers: [process.pid, address, native.addressOf(server.block.words), ...server.block.place],
    server,
    stripes: memory && server.stripes(address),
    withdraw() {
      if (number !== undefined) server.remove(number);
      server.release();
    },
  };
}

/** A rank with memory of its own, as the others see it. */
export interface Owner {
  /** World rank. */
  readonly rank: number;
  readonly pid: number;
  readonly address: number;
  readonly probe: number;
  /** Maps what it shares with the ranks that ask its thread. */
  map(words: number): Int32Array;
}

/** From a rank's numbers; `undefined` if it shares nothing. @param own this rank's own share, if it is this rank */
export function readOwner(
  job: Job,
  member: number,
  numbers: ArrayLike<number>,
  own: Share | undefined,
): Owner | undefined {
  if (numbers[0] === 0) return undefined;
  const place = Array.from({ length: PLACE_NUMBERS }, (_, i) => numbers[3 + i]);
  return {
    rank: member,
    pid: numbers[0],
    address: numbers[1],
    probe: numbers[2],
    map: (words) => own?.server.block.words ?? job.blocks.map(member, place, words),
  };
}

interface Access {
  readonly owner: Owner;
  /** Whether its process may be attached to. */
  readonly attach: boolean;
  asker: Asker | undefined;
}

/** Segments for one call into native code. */
const SEGMENTS = 256;

export class UserMemory {
  readonly #job: Job;
  readonly #native: Native;
  readonly #accesses: readonly (Access | undefined)[];
  readonly #segments = new Float64Array(3 * SEGMENTS);

  /** @param owners by rank of the window; undefined where this way is not the one to take */
  constructor(job: Job, native: Native, owners: readonly (Owner | undefined)[]) {
    this.#job = job;
    this.#native = native;
    this.#accesses = owners.map(
      (owner) => owner && { owner, attach: mayAttach(native, owner.pid, owner.probe), asker: undefined },
    );
  }

  /** Whether this is the way to a rank's memory. */
  reaches(rank: number): boolean {
    return this.#accesses[rank] !== undefined;
  }

  /** Whether put and get are copies by the kernel there; else the owner's thread makes them, as all updates. */
  copies(rank: number): boolean {
    return this.#accesses[rank]?.attach === true;
  }

  /** The address of the first byte of a rank's part. */
  baseOf(rank: number): number {
    return this.#accesses[rank]!.owner.address;
  }

  /** @param address of the starting point at the target */
  put(origin: Uint8Array, from: Side, rank: number, address: number, to: Side): void {
    const access = this.#accesses[rank]!;
    if (!access.attach) {
      const asker = this.#ask(access);
      asker.begin(Kind.PUT, 0, TypeCode.BYTE);
      forEachSegment(from, to, (source, target, bytes) => asker.piece(address + target, bytes, origin, source));
      asker.end();
    } else this.#copy(true, access, origin, from, address, to);
  }

  get(origin: Uint8Array, from: Side, rank: number, address: number, to: Side): void {
    const access = this.#accesses[rank]!;
    if (access.attach) {
      this.#copy(false, access, origin, from, address, to);
      return;
    }
    const asker = this.#ask(access);
    const packed = from.runs === undefined ? origin : new Uint8Array(from.bytes);
    asker.begin(Kind.GET, 0, TypeCode.BYTE, packed);
    forEachSegment(from, to, (_, target, bytes) => asker.piece(address + target, bytes, undefined, 0));
    asker.end();
    if (packed !== origin) scatter(packed, origin, from);
  }

  /**
   * The caller has checked ranges, types, alignment and operation. `result` gets what was there, at the places of
   * `into`.
   */
  accumulate(
    origin: Uint8Array,
    from: Side,
    rank: number,
    address: number,
    to: Side,
    op: number,
    result: Uint8Array | undefined,
    into: Side | undefined,
  ): void {
    const asker = this.#ask(this.#accesses[rank]!);
    const { base, elementSize, elements } = to;
    // The answer comes as elements one after the other, as far apart as in an array.
    const direct = result === undefined || into?.type === undefined;
    const answer = direct ? result : new Uint8Array(elements * elementSize);
    asker.begin(Kind.ACCUMULATE, op, base, answer);
    if (DATA_SIZES[base] === elementSize) {
      forEachSegment(from, to, (source, target, bytes) => asker.piece(address + target, bytes, origin, source));
    } else {
      // Elements with padding.
      const sources = elementOffsets(from);
      for (const [i, target] of elementOffsets(to).entries()) {
        asker.piece(address + target, elementSize, origin, sources[i]);
      }
    }
    asker.end();
    if (!direct) copyPlaces(inOrder('accumulate', to), answer!, 0, into, result, 0, this.#native);
  }

  compareAndSwap(
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    address: number,
    type: number,
  ): void {
    const before = this.#ask(this.#accesses[rank]!).compareAndSwap(address, type, bytesOf(compare), bytesOf(origin));
    bytesOf(result).set(before);
  }

  #ask(access: Access): Asker {
    const { rank, map } = access.owner;
    access.asker ??= new Asker(this.#job, this.#native, rank, map);
    return access.asker;
  }

  #copy(write: boolean, access: Access, local: Uint8Array, from: Side, address: number, to: Side): void {
    const native = this.#native;
    const { pid, rank } = access.owner;
    try {
      if (from.runs === undefined && to.runs === undefined) {
        if (write) native.processWrite(pid, address, local, 0, from.bytes);
        else native.processRead(pid, address, local, 0, from.bytes);
        return;
      }
      const segments = this.#segments;
      let count = 0;
      const flush = (): void => {
        if (write) native.processWriteSegments(pid, address, local, segments, count);
        else native.processReadSegments(pid, address, local, segments, count);
        count = 0;
      };
      forEachSegment(from, to, (here, there, bytes) => {
        if (count === SEGMENTS) flush();
        segments[3 * count] = here;
        segments[3 * count + 1] = there;
        segments[3 * count + 2] = bytes;
        count++;
      });
      if (count > 0) flush();
    } catch (cause) {
      // `Job.explain` tells whether the rank is gone.
      throw new RmaError(
        'ERR_VERBS',
        `cannot access the memory of rank ${rank} (process ${pid}) ` +
          `at address ${address} (${(cause as NodeJS.ErrnoException).code})`,
        { cause },
      );
    }
  }
}

/** Puts bytes that came one after the other to their places. */
function scatter(packed: Uint8Array, sink: Uint8Array, places: Side): void {
  let at = 0;
  forEachRun(places, (offset, bytes) => {
    sink.set(packed.subarray(at, at + bytes), offset);
    at += bytes;
  });
}

const scratch = new Uint8Array(1);

/** For trying what happens where it is not permitted. */
const FORBIDDEN = process.env['ONESIDED_NO_ATTACH'] === '1';

function mayAttach(native: Native, pid: number, probe: number): boolean {
  if (FORBIDDEN) return false;
  try {
    native.processRead(pid, probe, scratch, 0, 1);
  } catch (error) {
    // Whatever else is wrong (the process is gone) will be said by the first access.
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'EPERM' && code !== 'ENOSYS' && code !== 'EACCES';
  }
  return true;
}
