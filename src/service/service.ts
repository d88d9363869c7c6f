/**
 * A service: processes that come, die and come back, and what they share. There is no launcher, and no call in which
 * one waits for all: each member joins, uses and leaves by itself.
 */
import { EventEmitter } from 'node:events';
import type { TypedArray, TypedArrayConstructor } from '../datatype/base-types.ts';
import { argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { loadNative, nativeStatus } from '../native.ts';
import { refuseUnknown } from '../options.ts';
import { Catalogue, type Shape } from './catalogue.ts';
import { checkService, type Joined, joinService } from './joining.ts';
import { LockWords } from './lock-words.ts';
import { SharedMap, type SharedMapOptions } from './map/index.ts';
import { type MemberEvent, MembershipNews } from './membership-news.ts';
import { type LimiterOptions, RateLimiter, readLimiterOptions } from './rate-limiter.ts';
import { COUNTER, ServiceCounter } from './service-counter.ts';
import type { Member } from './service-members.ts';
import { MUTEX, ServiceMutex } from './service-mutex.ts';
import { queueShape, ServiceQueue, type ServiceQueueOptions } from './service-queue.ts';

export interface ServiceOptions {
  /** How many members the service can have at a time, up to 1,000 (default: as many as it has, or 64 if it is new). */
  readonly places?: number;
  /**
   * For how many seconds the memory of the service stays when this member was the last one, however it ended (default:
   * 0). A member that asks for it has a small process that does that.
   */
  readonly keep?: number;
}

/**
 * A member's view of a service. It tells of other members: `join`, `leave` (it has left, or ended with exit code 0) and
 * `death`. To listen does not keep the process from ending.
 */
export class Service {
  readonly name: string;
  /** This member's place: the lowest that was free. */
  readonly place: number;
  /** How many members there can be. */
  readonly places: number;
  readonly #events = new EventEmitter();
  readonly #joined: Joined;
  readonly #catalogue: Catalogue;
  readonly #news: MembershipNews;
  readonly #things = new Map<string, { readonly kind: string; readonly thing: unknown; left(): void }>();
  #isLeft = false;
  readonly #exit: (code: number) => void;

  /**
   * Joins a service, and begins it if it has no member. Its name is known to this user's processes on this machine.
   *
   * Errors: `ERR_ARG` (name, options), `ERR_SERVICE_MISMATCH` (another number of places), `ERR_SERVICE_FULL`,
   * `ERR_VERSION` (members run another version), `ERR_COMM` (no folder for names), `ERR_PROVIDER_UNAVAILABLE` (no
   * addon).
   */
  static async join(name: string, options?: ServiceOptions): Promise<Service> {
    const call = 'Service.join';
    if (options !== undefined && (typeof options !== 'object' || options === null))
      throw argumentTypeError(`${call}: options must be { places, keep }, not ${show(options)}`);
    if (options !== undefined) refuseUnknown(call, 'the options', options, ['places', 'keep']);
    const { places, keep = 0 } = reading(call, 'the options', () => ({ places: options?.places, keep: options?.keep }));
    checkService(name, places, keep);
    const native = loadNative();
    if (native === undefined) {
      const { reason } = nativeStatus();
      throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `${call}: services need the addon: ${reason}`);
    }
    const joined = joinService(native, name, { places, keep });
    try {
      return new Service(name, joined);
    } catch (error) {
      joined.leave();
      throw error;
    }
  }

  private constructor(name: string, joined: Joined) {
    this.name = name;
    this.#joined = joined;
    const { members } = joined;
    this.place = members.place;
    this.places = members.memory.places;
    this.#catalogue = new Catalogue(members);
    this.#news = new MembershipNews(members, (event: MemberEvent, member) => this.#events.emit(event, member));
    // A process that ends by itself leaves; one that fails has died.
    this.#exit = (code) => void (code === 0 && this.#end());
    process.once('exit', this.#exit);
  }

  /** Calls `listener` each time that another member comes, leaves or dies. */
  on(event: MemberEvent, listener: (member: Member) => void): this {
    this.#events.on(event, listener);
    return this;
  }

  /** The same, for the next time only. */
  once(event: MemberEvent, listener: (member: Member) => void): this {
    this.#events.once(event, listener);
    return this;
  }

  /** Takes a listener away. */
  off(event: MemberEvent, listener: (member: Member) => void): this {
    this.#events.off(event, listener);
    return this;
  }

  /** The members, this one included, by their places: those of which it is not known that they have died. */
  members(): Member[] {
    this.#checkIn('members');
    return this.#joined.members.list();
  }

  /** The counter of this name: 0 when it is new. Errors: `ERR_ARG`, `ERR_SERVICE_MISMATCH`, `ERR_SERVICE_LEFT`. */
  async counter(name: string): Promise<ServiceCounter> {
    const { members } = this.#joined;
    return this.#open('counter', name, COUNTER, (memory) => new ServiceCounter(members, memory));
  }

  /** The mutex of this name. Errors: as `counter`. */
  async mutex(name: string): Promise<ServiceMutex> {
    const { members } = this.#joined;
    return this.#open('mutex', name, MUTEX, (memory) => new ServiceMutex(members, memory, name));
  }

  /**
   * The queue of this name.
   * @param type the constructor of the entries' typed arrays
   * @param capacity the number of entries that fit, 1 … 2^24
   * Errors: as `counter`, `ERR_TYPE`.
   */
  async queue<T extends TypedArray>(
    name: string,
    type: TypedArrayConstructor<T>,
    capacity: number,
    options?: ServiceQueueOptions,
  ): Promise<ServiceQueue<T>> {
    const { members } = this.#joined;
    const made = queueShape(this.places, type, capacity, options);
    return this.#open('queue', name, made.shape, (memory) => new ServiceQueue(members, memory, name, made));
  }

  /**
   * The map of this name. Errors: as `counter`, `ERR_SIZE` (bytes), `ERR_ARG` (options, also where they are not those
   * that it was made with).
   */
  async map<V = unknown>(name: string, options: SharedMapOptions<V>): Promise<SharedMap<V>> {
    return this.#map('map', name, options, (map) => map);
  }

  /** The rate limiter of this name. Errors: as `counter`. */
  async limiter(name: string, options: LimiterOptions): Promise<RateLimiter> {
    const read = readLimiterOptions(options);
    const numbers = { rate: read.rate, 'per (µs)': Math.round(1000 * read.per) };
    const map = { bytes: read.bytes, codec: 'json' } as const;
    return this.#map<number, RateLimiter>('limiter', name, map, (full) => new RateLimiter(full, read), numbers);
  }

  /** Leaves the service; its memory stays while another member is there. A second call does nothing. */
  async leave(): Promise<void> {
    this.#end();
  }

  /** Calls `leave`, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end();
  }

  /** What stands behind a name, the same object for each call of this member. */
  #open<T extends object>(method: string, name: string, shape: Shape, make: (memory: ArrayBuffer) => T): T {
    this.#checkIn(method);
    const memory = this.#catalogue.open(`Service.${method}`, name, shape);
    const known = this.#things.get(name);
    if (known !== undefined) return known.thing as T;
    const thing = make(memory);
    const left = 'left' in thing ? (thing.left as () => void).bind(thing) : () => {};
    this.#things.set(name, { kind: shape.kind, thing, left });
    return thing;
  }

  #map<V, T extends object>(
    kind: 'map' | 'limiter',
    name: string,
    options: SharedMapOptions<V>,
    make: (map: SharedMap<V>) => T,
    numbers: Readonly<Record<string, number>> = {},
  ): T {
    const { members } = this.#joined;
    const bytes = SharedMap.memoryBytes(options);
    const what = `the ${kind} ${show(name)}`;
    const locks = (memory: ArrayBuffer): LockWords => new LockWords(members, memory, what);
    const at = (buffer: ArrayBuffer) => ({ buffer, byteOffset: 0 });
    const shape: Shape = {
      kind,
      bytes,
      numbers: { bytes: options.bytes, ...numbers },
      begin: (memory) => void SharedMap.create(name, at(memory), locks(memory), options),
    };
    return this.#open(kind, name, shape, (memory) => make(SharedMap.open(name, at(memory), locks(memory), options)));
  }

  #checkIn(method: string): void {
    if (this.#isLeft)
      throw new RmaError('ERR_SERVICE_LEFT', `Service.${method}: this member has left ${show(this.name)}; join again`);
  }

  #end(): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    process.off('exit', this.#exit);
    this.#news.close();
    // First, so that the calls that wake find it.
    this.#joined.leave();
    for (const { left } of this.#things.values()) left();
  }
}
