/**
 * What a dynamic window's ranks have attached (MPI 4.1, 12.2.4). Attaching is local, so the others must find a region
 * without being told: each rank keeps a table of what it has attached, in a `Directory`: in shared memory
 * (shared-directory.ts), or read by requests (remote-directory.ts). The addresses are those of the memory, so that what
 * is next to each other in memory is so in the window.
 */
import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import { RmaError, show } from '../../errors.ts';
import { bufferOf, byteLengthOf, byteOffsetOf } from '../../intrinsics.ts';
import { loadNative } from '../../native.ts';
import { RemotePart } from '../../transfer/loads/remote-part.ts';
import type { Stripes } from '../../transfer/loads/stripes.ts';
import type { RemoteRegion } from '../../transfer/requests/regions.ts';
import type { Share } from '../../transfer/served/user-memory.ts';
import { ALL_ACCESS } from '../../verbs/checks.ts';
import type { Memory, MemoryRegion } from '../../verbs/memory.ts';
import { countTo, lookUp } from './region-list.ts';

/** How an access is made. */
export interface AttachedPlace {
  /** Of what is loaded and stored. */
  readonly stripes: Stripes | undefined;
  /** Where requests reach it: the place in it is the displacement. Absent where there are none. */
  readonly region: RemoteRegion | undefined;
}

/** Where an access goes. */
export interface Attached extends AttachedPlace {
  readonly address: number;
  readonly bytes: number;
  /** Absent for memory that no other rank can map. */
  readonly part: RemotePart | undefined;
  /** The memory itself, at its owner. */
  readonly memory: TypedArray | undefined;
}

/** A region of this rank, for the others. */
export interface Listed {
  readonly address: number;
  readonly bytes: number;
  /** 0 if it is not registered. */
  readonly key: number;
  /** The region's address in the device's terms. */
  readonly deviceAddress: number;
}

/** How others find what is attached here, and this rank what is attached there. */
export interface Directory {
  /** The way to a region of this rank's own. */
  placeOf(own: Listed): AttachedPlace;
  /** A region of this rank can be found from now on. */
  add(own: Listed): void;
  /** It cannot be found any more, by any rank, in whatever way that rank learns of it. @param own what was added */
  remove(own: Listed): void;
  /** The region of another rank with the bytes from `low` to before `high` in it. */
  find(rank: number, low: number, high: number): Attached | undefined;
  /** All that are known of a rank for which `find` was called. */
  regionsOf(rank: number): readonly { readonly address: number; readonly bytes: number }[];
  release(): void;
}

/** A region of this rank. */
interface Own extends Attached, Listed {
  /** What the program has passed. */
  readonly given: object;
  readonly memory: TypedArray;
  readonly part: RemotePart;
  readonly withdraw: () => void;
}

/** Memory that peers can reach, if there is a way. */
interface Reachable {
  readonly memory: Memory;
  readonly discard: () => void;
}

export class Attachments {
  readonly #comm: Communicator;
  readonly #window: string;
  readonly #share: Share | undefined;
  readonly #directory: Directory;
  /** By address. */
  #own: Own[] = [];

  /** @param share how memory is shared that cannot be mapped, if it can be */
  constructor(comm: Communicator, window: string, share: Share | undefined, directory: Directory) {
    this.#comm = comm;
    this.#window = window;
    this.#share = share;
    this.#directory = directory;
  }

  /**
   * `reach` gives nothing if others cannot map the memory.
   * @param given what the program calls it
   * @param memory the library's own view of it
   * @returns its address
   */
  attach(given: object, memory: TypedArray, reach: () => Reachable | undefined): number {
    let reachable: Reachable | undefined;
    const refused = (why: string, cause?: unknown): RmaError => {
      reachable?.discard();
      return new RmaError('ERR_RMA_ATTACH', `attach to ${this.#window}: ${why}`, { cause });
    };
    const bytes = memory.byteLength;
    if (bytes === 0) throw refused('the memory is empty');
    reachable = reach();
    if (reachable === undefined && this.#share === undefined && this.#comm.size > 1) {
      throw refused(
        'without the native addon other threads cannot access a plain ArrayBuffer; ' +
          'use memory from comm.allocMem or a SharedArrayBuffer of fixed length',
      );
    }
    const region = this.#register(memory, reachable, refused);
    const address = loadNative()?.addressOf(memory) ?? region?.address ?? this.#fresh();
    // The last one that begins before the end of these bytes.
    const other = this.#own[countTo(this.#own, address + bytes - 1) - 1];
    if (other !== undefined && address < other.address + other.bytes) {
      region?.deregister();
      throw refused(
        `the ${bytes} bytes at ${address} overlap the ${other.bytes} bytes at ${other.address}, ` +
          'which are already attached',
      );
    }
    const number = region === undefined ? this.#share?.server.add(memory) : undefined;
    const listed = { address, bytes, key: region?.rkey ?? 0, deviceAddress: region?.address ?? 0 };
    const place = this.#directory.placeOf(listed);
    const own: Own = {
      ...listed,
      given,
      memory,
      part: new RemotePart(memory.buffer, memory.byteOffset, bytes),
      region: place.region,
      stripes: number === undefined ? place.stripes : this.#share!.server.stripes(address),
      withdraw: () => {
        region?.deregister();
        reachable?.discard();
        if (number !== undefined) this.#share!.server.remove(number);
      },
    };
    try {
      this.#directory.add(own);
    } catch (error) {
      own.withdraw();
      throw error;
    }
    this.#own.splice(countTo(this.#own, address), 0, own);
    return address;
  }

  #register(
    memory: TypedArray,
    reachable: Reachable | undefined,
    refused: (why: string, cause: unknown) => RmaError,
  ): MemoryRegion | undefined {
    if (reachable === undefined) return undefined;
    try {
      const { pd } = this.#comm.job;
      return pd.registerMemory(reachable.memory, memory.byteOffset, memory.byteLength, ALL_ACCESS);
    } catch (cause) {
      throw refused(`cannot register its ${memory.byteLength} bytes: ${(cause as Error).message}`, cause);
    }
  }

  /** An address for memory that only this rank can reach. */
  #fresh(): number {
    const last = this.#own.at(-1);
    return last === undefined ? 4096 : last.address + last.bytes + 64;
  }

  /** Takes back what `attach` was given: the same array, or another one of the same bytes. */
  detach(memory: TypedArray): void {
    const at = this.#own.findIndex((own) => own.given === memory || same(own.memory, memory));
    if (at < 0) {
      throw new RmaError(
        'ERR_RMA_ATTACH',
        `detach from ${this.#window}: ${show(memory)} is not attached; attached regions: ${this.#list(this.#own)}`,
      );
    }
    const [own] = this.#own.splice(at, 1);
    // No rank finds it any more, and then it goes.
    try {
      this.#directory.remove(own);
    } finally {
      own.withdraw();
    }
  }

  /**
   * The region of a rank with the bytes from `low` to before `high` in it.
   * @param call for the message, with its target
   */
  find(call: string, rank: number, low: number, high: number): Attached {
    const attached = rank === this.#comm.rank ? this.#findOwn(low, high) : this.#directory.find(rank, low, high);
    if (attached !== undefined) return attached;
    throw new RmaError(
      'ERR_RMA_RANGE',
      `${call}: bytes ${low} … ${high - 1} are not entirely within an attached region; that rank has attached: ` +
        `${this.#list(this.#regionsOf(rank))}`,
    );
  }

  /** Whether there is a region as `find` looks for. */
  has(rank: number, low: number, high: number): boolean {
    return (rank === this.#comm.rank ? this.#findOwn(low, high) : this.#directory.find(rank, low, high)) !== undefined;
  }

  #findOwn(low: number, high: number): Attached | undefined {
    const own = lookUp(this.#own, low, high);
    if (own !== undefined && own.part.u8.length === 0) {
      throw new RmaError(
        'ERR_BUFFER',
        `${this.#window}: the memory at ${own.address} (${own.bytes} bytes) is detached, ` +
          'because its ArrayBuffer was transferred; call detach() before you transfer attached memory',
      );
    }
    return own;
  }

  #regionsOf(rank: number): readonly { address: number; bytes: number }[] {
    return rank === this.#comm.rank ? this.#own : this.#directory.regionsOf(rank);
  }

  #list(regions: readonly { address: number; bytes: number }[]): string {
    if (regions.length === 0) return 'none';
    const some = regions.slice(0, 8).map(({ address, bytes }) => `${address} … ${address + bytes - 1}`);
    return `${some.join(', ')}${regions.length > some.length ? `, and ${regions.length - some.length} more` : ''}`;
  }

  release(): void {
    for (const own of this.#own) own.withdraw();
    this.#own = [];
    this.#directory.release();
  }
}

function same(a: TypedArray, b: TypedArray): boolean {
  return bufferOf(a) === bufferOf(b) && byteOffsetOf(a) === byteOffsetOf(b) && byteLengthOf(a) === byteLengthOf(b);
}
