/**
 * A service: processes that come, die and come back, and what they share. There is no launcher, and no call in which
 * one waits for all: each member joins, uses and leaves by itself.
 */
import { EventEmitter } from 'node:events';
import type { TypedArray, TypedArrayConstructor } from '../datatype/base-types.ts';
import { argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { loadNative, nativeStatus } from '../native.ts';
import { refuseUnknown } from '../options.ts';
import { Catalogue, type Fact, fact, type Shape } from './catalogue.ts';
import { checkService, type Joined, joinService } from './joining.ts';
import { algorithmNumber, type LimiterOptions, readLimiterOptions, sayAlgorithm } from './limiter-options.ts';
import { LockWords } from './lock-words.ts';
import {
  factsOf,
  memoryOf,
  type ReadMapOptions,
  readMapOptions,
  SharedMap,
  type SharedMapOptions,
} from './map/index.ts';
import { type MemberEvent, MembershipNews } from './membership-news.ts';
import {
  type QueueShape,
  queueShape,
  type ServiceQueueOptions,
  type ValueQueueOptions,
  valueQueueShape,
} from './queue-shape.ts';
import { RateLimiter } from './rate-limiter.ts';
import { COUNTER, ServiceCounter } from './service-counter.ts';
import type { Member } from './service-members.ts';
import { MUTEX, ServiceMutex } from './service-mutex.ts';
import { ServiceQueue } from './service-queue.ts';
import { TIMES_CODEC } from './sliding-windows.ts';
import { ServiceWindow } from './window/service-window.ts';
import { windowShape } from './window/window-shape.ts';

export interface ServiceOptions {
  /** How many members the service can have at a time, up to 1,000 (default: as many as it has, or 64 if it is new). */
  readonly places?: number;
  /**
   * For how many seconds the memory of the service stays when this member was the last one, however it ended (default:
   * 0). A member that asks for it has a small process that does that.
   */
  readonly keep?: number;
}

const WAIT = 'wait for a notification of a window, an entry of a queue, or a mutex';
const JOIN = 'join another service, of another name';

/** Calls of communicators, and what to do instead. */
const COLLECTIVE = {
  barrier: WAIT,
  barrierSync: WAIT,
  split: JOIN,
  splitSync: JOIN,
  splitType: JOIN,
  splitTypeSync: JOIN,
  dup: JOIN,
  dupSync: JOIN,
  shrink: "a place that is free again is the next member's; members() says who is there",
  shrinkSync: "a place that is free again is the next member's; members() says who is there",
  agree: 'keep what all agree on in a map or a counter',
  agreeSync: 'keep what all agree on in a map or a counter',
} as const;

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
  readonly #things = new Map<string, { readonly own: string; readonly thing: object }>();
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
    const joined = await joinService(native, name, { places, keep });
    try {
      return new Service(name, joined);
    } catch (error) {
      joined.members.leave();
      await joined.withdrawLater();
      throw error;
    }
  }

  private constructor(name: string, joined: Joined) {
    // Only programs without types come here by themselves.
    if (joined === undefined) throw argumentTypeError('Service: "await Service.join(name)" makes one, not "new"');
    this.name = name;
    this.#joined = joined;
    const { members } = joined;
    this.place = members.place;
    this.places = members.memory.places;
    this.#catalogue = new Catalogue(name, members);
    this.#news = new MembershipNews(members, (event: MemberEvent, member) => this.#events.emit(event, member));
    // A process that ends by itself leaves; one that fails has died.
    this.#exit = (code) => void (code === 0 && this.#end() && joined.withdraw());
    leaveAtExit(this.#exit);
  }

  /** Calls `listener` each time that another member comes, leaves or dies. Errors: `ERR_ARG`. */
  on(event: MemberEvent, listener: (member: Member) => void): this {
    checkListener('on', event, listener);
    this.#events.on(event, listener);
    return this;
  }

  /** The same, for the next time only. */
  once(event: MemberEvent, listener: (member: Member) => void): this {
    checkListener('once', event, listener);
    this.#events.once(event, listener);
    return this;
  }

  /** Takes a listener away. */
  off(event: MemberEvent, listener: (member: Member) => void): this {
    checkListener('off', event, listener);
    this.#events.off(event, listener);
    return this;
  }

  /** The members, this one included, by their places: those of which it is not known that they have died. */
  members(): Member[] {
    this.#checkIn('Service.members');
    return this.#joined.members.list();
  }

  /** The counter of this name: 0 when it is new. Errors: `ERR_ARG`, `ERR_SERVICE_MISMATCH`, `ERR_SERVICE_LEFT`. */
  async counter(name: string): Promise<ServiceCounter> {
    const { members } = this.#joined;
    return this.#open(name, COUNTER, (memory, what) => new ServiceCounter(members, memory, what));
  }

  /** The mutex of this name. Errors: as `counter`. */
  async mutex(name: string): Promise<ServiceMutex> {
    const { members } = this.#joined;
    return this.#open(name, MUTEX, (memory, what) => new ServiceMutex(members, memory, what));
  }

  /**
   * The queue of this name: of typed arrays of one type and length, or of values, as JSON if `codec` says nothing else.
   * @param type the constructor of the entries' typed arrays
   * @param capacity the number of entries that fit, 1 … 2^24
   * Errors: as `counter`, `ERR_TYPE`, `ERR_SIZE` (more memory than there can be in one piece).
   */
  queue<T extends TypedArray>(
    name: string,
    type: TypedArrayConstructor<T>,
    capacity: number,
    options?: ServiceQueueOptions,
  ): Promise<ServiceQueue<T>>;
  queue<V extends string = string>(
    name: string,
    options: ValueQueueOptions<V> & { readonly codec: 'string' },
  ): Promise<ServiceQueue<V>>;
  queue<V extends Uint8Array = Uint8Array>(
    name: string,
    options: ValueQueueOptions<V> & { readonly codec: 'bytes' },
  ): Promise<ServiceQueue<V>>;
  queue<V = unknown>(name: string, options: ValueQueueOptions<V>): Promise<ServiceQueue<V>>;
  async queue(
    name: string,
    type: TypedArrayConstructor<TypedArray> | ValueQueueOptions,
    capacity?: number,
    options?: ServiceQueueOptions,
  ): Promise<ServiceQueue> {
    const { members } = this.#joined;
    const made =
      typeof type === 'object' && type !== null
        ? valueQueueShape(this.places, type)
        : (queueShape(this.places, type, capacity as number, options) as QueueShape<unknown>);
    return this.#open(name, made.shape, (memory, what) => new ServiceQueue(members, memory, what, made));
  }

  /**
   * The window of this name: a part for each place, of `length` elements of a type, 0 when it is new. Errors: as
   * `counter`, `ERR_TYPE`, `ERR_SIZE`.
   * @param type the constructor of the parts' typed arrays
   */
  async window<T extends TypedArray>(
    name: string,
    type: TypedArrayConstructor<T>,
    length: number,
  ): Promise<ServiceWindow<T>> {
    const { members } = this.#joined;
    const made = windowShape(`Service.window(${show(name)})`, members.memory.native, this.places, type, length);
    const open = (memory: ArrayBuffer, what: string, at: number): ServiceWindow<T> =>
      new ServiceWindow(members, memory, at, what, made);
    return this.#open(name, made.shape, open);
  }

  /** The map of this name. Errors: as `counter`, `ERR_SIZE` (bytes). */
  map<V extends string = string>(
    name: string,
    options: SharedMapOptions<V> & { readonly codec: 'string' },
  ): Promise<SharedMap<V>>;
  map<V extends Uint8Array = Uint8Array>(
    name: string,
    options: SharedMapOptions<V> & { readonly codec: 'bytes' },
  ): Promise<SharedMap<V>>;
  map<V = unknown>(name: string, options: SharedMapOptions<V>): Promise<SharedMap<V>>;
  async map<V = unknown>(name: string, options: SharedMapOptions<V>): Promise<SharedMap<V>> {
    const read = readMapOptions(`Service.map(${show(name)})`, options);
    return this.#map('map', name, read, (map: SharedMap<V>) => map);
  }

  /** The rate limiter of this name. Errors: as `counter`, `ERR_SIZE` (bytes). */
  async limiter(name: string, options: LimiterOptions): Promise<RateLimiter> {
    const call = `Service.limiter(${show(name)})`;
    const limits = readLimiterOptions(call, options);
    const { rate, per, bytes, longest, algorithm } = limits;
    const codec = algorithm === 'sliding-window' ? TIMES_CODEC : undefined;
    const map = readMapOptions(call, { bytes, ...(longest && { longest }), codec });
    const facts = [
      fact('rate', rate),
      { value: per, say: (per: number) => `per ${per} ms` },
      fact('bytes', bytes),
      { value: algorithmNumber(algorithm), say: sayAlgorithm },
    ];
    const make = (entries: SharedMap<never>) => new RateLimiter(this.#nameOf('limiter', name), entries, limits);
    return this.#map('limiter', name, map, make, facts);
  }

  /** Leaves the service; its memory stays while another member is there. A second call does nothing. */
  async leave(): Promise<void> {
    if (this.#end()) await this.#joined.withdrawLater();
  }

  /** Calls `leave`, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  /**
   * What stands behind a name, the same object for each call of this member.
   * @param own what this member alone has asked for, in words: it must ask for the same each time
   */
  async #open<T extends object>(
    name: string,
    shape: Shape,
    make: (memory: ArrayBuffer, what: string, at: number) => T,
    own = '',
  ): Promise<T> {
    const call = `Service.${shape.kind}`;
    this.#checkIn(call);
    const { memory, at } = await this.#catalogue.open(call, name, shape);
    this.#checkIn(call);
    const what = this.#nameOf(shape.kind, name);
    const known = this.#things.get(name);
    if (known !== undefined && known.own !== own) {
      const both = `this member has ${what} with ${known.own}, and this call asks for ${own}`;
      throw new RmaError('ERR_SERVICE_MISMATCH', `${call}: ${both}; give the same`);
    }
    if (known !== undefined) return known.thing as T;
    const thing = make(memory, what, at);
    this.#things.set(name, { own, thing });
    return thing;
  }

  #map<V, T extends object>(
    kind: 'map' | 'limiter',
    name: string,
    options: ReadMapOptions,
    make: (map: SharedMap<V>) => T,
    facts: readonly Fact[] = factsOf(options),
  ): Promise<T> {
    const { members } = this.#joined;
    const at = (buffer: ArrayBuffer) => ({ buffer, byteOffset: 0 });
    const locks = (memory: ArrayBuffer): LockWords => new LockWords(members, memory);
    const what = this.#nameOf(kind, name);
    const shape: Shape = {
      kind,
      bytes: memoryOf(options.geometry),
      facts,
      begin: (memory) => void SharedMap.create(what, at(memory), locks(memory), options),
    };
    const open = (memory: ArrayBuffer): T => make(SharedMap.open<V>(what, at(memory), locks(memory), options));
    return this.#open(name, shape, open, `near ${options.near}`);
  }

  /** For messages. */
  #nameOf(kind: string, name: string): string {
    return `the ${kind} ${show(name)} of the service ${show(this.name)}`;
  }

  /** A service has no collective calls: its members come and go. It throws `ERR_SERVICE`, with what to use instead. */
  declare readonly barrier: () => never;
  /** Collective, as `barrier`. */
  declare readonly split: () => never;

  static {
    for (const [call, instead] of Object.entries(COLLECTIVE)) {
      const value = (): never => {
        const why = 'a service has no collective calls, since its members come and go';
        throw new RmaError('ERR_SERVICE', `Service.${call}: ${why}; ${instead}`);
      };
      Object.defineProperty(Service.prototype, call, { value });
    }
  }

  #checkIn(call: string): void {
    if (this.#isLeft)
      throw new RmaError(
        'ERR_SERVICE_LEFT',
        `${call}: this member has left the service ${show(this.name)}; join again`,
      );
  }

  /** @returns false if it has left before */
  #end(): boolean {
    if (this.#isLeft) return false;
    this.#isLeft = true;
    atExit.delete(this.#exit);
    this.#news.close();
    const { members } = this.#joined;
    // First, so that the calls that wake find it.
    members.leave();
    const refuse = (call: string): void => members.checkIn(call);
    for (const { thing } of this.#things.values()) (thing as Left).left?.(refuse);
    return true;
  }
}

/** What the services of this thread do when it ends. One listener for all: Node warns of more than ten. */
const atExit = new Set<(code: number) => void>();
let listensToExit = false;

function leaveAtExit(leave: (code: number) => void): void {
  atExit.add(leave);
  if (listensToExit) return;
  listensToExit = true;
  process.on('exit', (code) => {
    for (const each of [...atExit]) each(code);
  });
}

const EVENTS: readonly unknown[] = ['join', 'leave', 'death'];

function checkListener(call: string, event: unknown, listener: unknown): void {
  if (!EVENTS.includes(event))
    throw argumentTypeError(`Service.${call}: the event must be 'join', 'leave' or 'death', not ${show(event)}`);
  if (typeof listener !== 'function')
    throw argumentTypeError(`Service.${call}: the listener must be a function, not ${show(listener)}`);
}

/** What has to be told that the member leaves. */
interface Left {
  left?(refuse: (call: string) => void): void;
}
