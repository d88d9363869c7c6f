/**
 * Random BSP programs. Every process draws the whole program from the seed, carries out its own part, and computes what
 * all of them have by a sequential model of bytes: what owners store, gets, then puts in the order of one process's
 * calls. No two processes put to one place in one superstep, since between them there is no order.
 *
 * Drawn are: sizes from none to several chunks, types, places that are not aligned; registrations that are pushed, that
 * overlap (one place again, with other lengths), that are null at some, and that are popped, several a superstep;
 * sizes of tags; puts that overlap, elements, also one by one, and bytes of any variable, `hpput` and `hpget` in
 * supersteps where their promise is kept; messages, which are taken by `move`, by `hpmove`, or left. Memory beside
 * variables, and variables that are no longer registered, must not change. How supersteps are delivered is drawn, too,
 * as far as it is not given, from all ways that the ranks have.
 *
 * The report of each superstep must say what the model counts: bytes that were sent and received, and calls, of the
 * process that has most.
 */
import assert from 'node:assert/strict';
import type { Communicator, RmaError, TypedArray } from 'onesided';
import { type Bsp, type BspOptions, begin, type CountExchange, type HeaderName, type PacingOption } from 'onesided/bsp';
import { DELIVERIES } from './kinds.ts';
import { HAS_DATAGRAMS } from './provider.ts';
import { Random } from './random.ts';

/** All ways there are: the compiler wants a new one named here. */
const namesOf = <T extends string>(all: Readonly<Record<T, true>>): T[] => Object.keys(all) as T[];
const HEADERS = namesOf<HeaderName>({ compressed: true, plain: true });
const COUNTS = namesOf<CountExchange>({ 'all-to-all': true, tree: true, multicast: true });
/** Milliseconds: at once, soon, and later than on most machines anything is late. */
const PATIENCE = [0, 1, 10];
/** Slots of microseconds, since these programs have many packets of a few bytes. */
const PACINGS: readonly PacingOption[] = [
  ...(['none', 'none', 'slots', 'auto'] as const),
  ...[{ slot: 0, packet: 64 }, { slot: 1.5 }, { slot: 2, Q: 1, packet: 1000 }, { slot: 3, packet: 200 }],
];
/** Less than a chunk, with its headers: what one process has for another one is not cut into pieces. */
const UNCUT_BYTES = 16_000;

const TYPES = [Uint8Array, Int16Array, Int32Array, Float64Array] as const;
/** Elements beside a variable. */
const MARGIN = 3;
const STEPS = 6;
/** Elements that are put one by one. */
const MOST_APART = 12;
const MOST_REGISTRATIONS = 7;
const MOST_STORAGES = 9;

/** Memory that is or was registered. */
interface Storage {
  readonly type: (typeof TYPES)[number];
  /** This process's variable, and the memory around it. */
  readonly own: TypedArray;
  readonly memory: Uint8Array;
  /** Bytes that the variable holds, by process. */
  readonly model: readonly Uint8Array[];
}

/** Of a storage: elements that are registered at each process, from its beginning; −1 where it is null. */
interface Registration {
  readonly storage: Storage;
  readonly lengths: readonly number[];
}

/** What a superstep may do: in some, `hpput` or `hpget` are used, with what they ask for. */
type Mode = 'buffered' | 'hpput' | 'hpget';

interface Get {
  readonly to: TypedArray;
  readonly expected: Uint8Array;
}

const bytesOf = (array: TypedArray): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

function randomBytes(random: Random, length: number): Uint8Array {
  const first = random.below(256);
  const step = random.below(256);
  return Uint8Array.from({ length }, (_, i) => first + i * step);
}

/** What passes between each process and the others in a superstep: bytes, and calls. */
class Traffic {
  readonly sent: number[];
  readonly received: number[];
  readonly out: number[];
  readonly in: number[];

  constructor(nprocs: number) {
    [this.sent, this.received, this.out, this.in] = [0, 0, 0, 0].map((zero) => new Array<number>(nprocs).fill(zero));
  }

  /** A call of process `caller` that concerns `other` moves bytes from one of them to the other. */
  add(caller: number, other: number, from: number, bytes: number): void {
    if (caller === other) return;
    this.out[caller]++;
    this.in[other]++;
    this.sent[from] += bytes;
    this.received[from === caller ? other : caller] += bytes;
  }
}

/** What is not given. The same at all processes. */
function drawn(seed: number): BspOptions {
  const random = new Random(seed, 0x0b5b);
  return {
    delivery: random.pick(DELIVERIES.filter((name) => HAS_DATAGRAMS || name !== 'datagrams')),
    headers: random.pick(HEADERS),
    counts: random.pick(COUNTS),
    nackAfter: random.pick(PATIENCE),
    report: random.below(2) === 0,
    pacing: random.pick(PACINGS),
  };
}

/** What goes in packets can be paced. */
function possible(given: BspOptions, { pacing = 'none', ...others }: BspOptions): BspOptions {
  const isPaced = ['packed', 'datagrams'].includes(others.delivery!) || given.pacing !== undefined;
  return isPaced ? { ...others, pacing } : others;
}

/** @param given options that are not drawn */
export async function bspRandom(world: Communicator, seed: number, blocks: boolean, given: BspOptions): Promise<void> {
  let options = possible(given, { ...drawn(seed), ...given });
  let bsp: Bsp;
  try {
    bsp = await begin(world, options);
  } catch (error) {
    if (given.delivery === 'shared' || (error as RmaError).code !== 'ERR_RMA_SHARED') throw error;
    options = { ...options, delivery: 'auto' };
    bsp = await begin(world, options);
  }
  const program = new Program(bsp, seed, JSON.stringify(options));
  for (let step = 0; step < STEPS; step++) await program.superstep(step, blocks);
  if (options.report) await program.checkReport();
  await bsp.end();
  program.free();
}

class Program {
  readonly #bsp: Bsp;
  readonly #seed: number;
  readonly #random: Random;
  readonly #storages: Storage[] = [];
  readonly #allocated: Uint8Array[] = [];
  #live: Registration[] = [];
  #tagBytes = 0;
  #mode: Mode = 'buffered';
  readonly #label: string;
  /** Of each superstep, the last one of which is under way. */
  readonly #traffic: Traffic[] = [];

  /** @param how supersteps are delivered */
  constructor(bsp: Bsp, seed: number, how: string) {
    this.#label = `seed ${seed}, process ${bsp.pid} of ${bsp.nprocs}, ${how}`;
    this.#bsp = bsp;
    this.#seed = seed;
    this.#random = new Random(seed);
  }

  async superstep(step: number, blocks: boolean): Promise<void> {
    const [bsp, random] = [this.#bsp, this.#random];
    const label = `${this.#label}, superstep ${step}`;
    this.#mode = random.pick(['buffered', 'buffered', 'buffered', 'hpput', 'hpget']);
    // What `hpput` writes may be there before others have looked at what the last superstep has left.
    if (this.#mode === 'hpput') {
      this.#traffic.push(new Traffic(bsp.nprocs));
      await bsp.sync();
    }
    this.#traffic.push(new Traffic(bsp.nprocs));
    const changed = this.#changes();
    const nextTag = random.below(4) === 0 ? random.below(6) : undefined;
    if (nextTag !== undefined) assert.equal(bsp.setTagsize(nextTag), this.#tagBytes, label);
    if (this.#mode === 'buffered') this.#store();
    const gets = this.#mode === 'hpput' ? [] : this.#gets();
    if (this.#mode !== 'hpget') this.#puts();
    this.#refusals(new Random(this.#seed, step, bsp.pid, 1), label);
    const messages = this.#sends();
    if (blocks && random.below(2) === 0) bsp.syncSync();
    else await bsp.sync();
    for (const { to, expected } of gets) assert.deepEqual(bytesOf(to), expected, `${label}: a get`);
    for (const [i, { own, memory, model, type }] of this.#storages.entries()) {
      assert.deepEqual(bytesOf(own), model[bsp.pid], `${label}: variable ${i}`);
      const start = own.byteOffset - memory.byteOffset;
      const around = [...memory.subarray(0, start), ...memory.subarray(start + own.byteLength)];
      assert.equal(around.length, 2 * MARGIN * type.BYTES_PER_ELEMENT);
      assert.ok(
        around.every((byte) => byte === 0xa5),
        `${label}: beside variable ${i}`,
      );
    }
    this.#receive(messages, label, new Random(this.#seed, step, bsp.pid));
    this.#live = changed;
    this.#tagBytes = nextTag ?? this.#tagBytes;
  }

  /** When nobody reaches for variables any more. */
  free(): void {
    for (const memory of this.#allocated) this.#bsp.comm.freeMem(memory);
  }

  /** Collective. */
  async checkReport(): Promise<void> {
    const { supersteps } = await this.#bsp.report();
    assert.equal(supersteps.length, this.#traffic.length, this.#label);
    for (const [i, { out, in: into, h, messages }] of supersteps.entries()) {
      const { sent, received, out: ours, in: theirs } = this.#traffic[i];
      const label = `${this.#label}: the report of superstep ${i}`;
      const [most, calls] = [Math.max(...sent, ...received), Math.max(...ours, ...theirs)];
      assert.deepEqual([8 * out, 8 * into, 8 * h], [Math.max(...sent), Math.max(...received), most], label);
      // Calls of others are counted by their records; long ones have several.
      if (most + 12 * calls < UNCUT_BYTES) assert.equal(messages, calls, label);
      else assert.ok(messages >= calls, label);
    }
  }

  /** Registers and removes, in any order, and gives what is registered in the next superstep. */
  #changes(): Registration[] {
    const random = this.#random;
    const left = [...this.#live];
    const pops: Registration[] = [];
    for (let n = random.below(3); n > 0 && left.length > 0; n--) {
      // The newest of its place is what can be removed.
      const { storage } = random.pick(left);
      const at = left.findLastIndex((one) => one.storage === storage);
      pops.push(...left.splice(at, 1));
    }
    const pushes: Registration[] = [];
    for (let n = random.below(4); n > 0 && left.length + pushes.length < MOST_REGISTRATIONS; n--) {
      pushes.push(this.#drawRegistration([...left, ...pops, ...pushes]));
    }
    const push = (): void => {
      for (const { storage, lengths } of pushes) {
        const length = lengths[this.#bsp.pid];
        this.#bsp.pushReg(length < 0 ? null : storage.own.subarray(0, length));
      }
    };
    const pop = (): void => {
      for (const { storage, lengths } of pops) this.#bsp.popReg(lengths[this.#bsp.pid] < 0 ? null : storage.own);
    };
    if (random.below(2) === 0) {
      push();
      pop();
    } else {
      pop();
      push();
    }
    return [...left, ...pushes];
  }

  /** Of a new place, or of one that is known. @param known what is registered, or was until now */
  #drawRegistration(known: readonly Registration[]): Registration {
    const random = this.#random;
    const { nprocs } = this.#bsp;
    const isNew = this.#storages.length === 0 || (this.#storages.length < MOST_STORAGES && random.below(3) > 0);
    const storage = isNew ? this.#drawStorage() : random.pick(this.#storages);
    const hasNulls = (one: Registration): boolean => one.lengths.includes(-1);
    // Whoever has null removes "null": one such registration at a time, of a place of its own.
    const nulls = isNew && nprocs > 1 && !known.some(hasNulls) && random.below(4) === 0;
    const apart = known.some((one) => one.storage === storage && hasNulls(one));
    if (apart) return this.#drawRegistration(known);
    const lengths = storage.model.map(({ length }) => {
      const most = length / storage.type.BYTES_PER_ELEMENT;
      if (nulls && random.below(2) === 0) return -1;
      return isNew ? most : random.below(most + 1);
    });
    return { storage, lengths };
  }

  #drawStorage(): Storage {
    const random = this.#random;
    const type = random.pick(TYPES);
    const lengths = Array.from({ length: this.#bsp.nprocs }, () => random.below(random.below(4) === 0 ? 6000 : 40));
    const model = lengths.map((length) => randomBytes(random, length * type.BYTES_PER_ELEMENT));
    const mine = lengths[this.#bsp.pid];
    const bytes = (mine + 2 * MARGIN) * type.BYTES_PER_ELEMENT;
    // Where processes share memory, `hpput` reaches only what comes from the library.
    const isLibrarys = random.below(2) === 0;
    const memory = (isLibrarys ? this.#bsp.comm.allocMem(Uint8Array, bytes) : new Uint8Array(bytes)).fill(0xa5);
    const own = new type(memory.buffer, memory.byteOffset + MARGIN * type.BYTES_PER_ELEMENT, mine);
    if (isLibrarys) this.#allocated.push(memory);
    bytesOf(own).set(model[this.#bsp.pid]);
    const storage = { type, own, memory, model };
    this.#storages.push(storage);
    return storage;
  }

  /** The registration that a process means by a place: the newest that it has. */
  #meant(storage: Storage, pid: number): Registration | undefined {
    return this.#live.findLast((one) => one.storage === storage && one.lengths[pid] >= 0);
  }

  /** Owners store into their variables, before the superstep ends. */
  #store(): void {
    const random = this.#random;
    for (const { own, model } of this.#storages) {
      for (const [pid, bytes] of model.entries()) {
        if (bytes.length === 0 || random.below(3) > 0) continue;
        const [at, value] = [random.below(bytes.length), random.below(256)];
        bytes[at] = value;
        if (pid === this.#bsp.pid) bytesOf(own)[at] = value;
      }
    }
  }

  /** An array of the variable's type, or of bytes: room for `count` elements. */
  #array({ type }: Storage, count: number, asBytes: boolean): TypedArray {
    return asBytes ? new Uint8Array(count * type.BYTES_PER_ELEMENT) : new type(count);
  }

  /** The gets of all processes, of which this one makes its own. */
  #gets(): Get[] {
    const [bsp, random] = [this.#bsp, this.#random];
    const mine: Get[] = [];
    for (let pid = 0; pid < bsp.nprocs; pid++) {
      for (let n = random.below(this.#live.length === 0 ? 1 : 6); n > 0; n--) {
        const { storage } = random.pick(this.#live);
        const [from, place, part] = [random.below(bsp.nprocs), random.bits(), random.bits()];
        const asBytes = random.below(4) === 0;
        const length = this.#meant(storage, pid)?.lengths[from] ?? -1;
        if (length < 0) continue;
        const at = place % (length + 1);
        const count = part % (length - at + 1);
        const width = storage.type.BYTES_PER_ELEMENT;
        if (count > 0) this.#traffic.at(-1)!.add(pid, from, from, count * width);
        if (pid !== bsp.pid) continue;
        const to = this.#array(storage, count + 2, asBytes);
        const unit = asBytes ? width : 1;
        const get = this.#mode === 'hpget' ? bsp.hpget.bind(bsp) : bsp.get.bind(bsp);
        get(from, storage.own, at, to, count * unit, unit);
        const expected = new Uint8Array(to.byteLength);
        expected.set(storage.model[from].subarray(at * width, (at + count) * width), width);
        mine.push({ to, expected });
      }
    }
    return mine;
  }

  /** The puts of all processes: each place of a variable belongs to one of them in this superstep. */
  #puts(): void {
    const { nprocs } = this.#bsp;
    const random = this.#random;
    for (const storage of new Set(this.#live.map((one) => one.storage))) {
      for (let to = 0; to < nprocs; to++) {
        const shift = random.below(nprocs);
        const whole = storage.model[to].length / storage.type.BYTES_PER_ELEMENT;
        for (let part = 0; part < nprocs; part++) {
          const begin = Math.floor((part * whole) / nprocs);
          const end = Math.floor(((part + 1) * whole) / nprocs);
          const writer = (part + shift) % nprocs;
          // Of puts that overlap, `hpput` does not say which is last.
          for (let n = random.below(this.#mode === 'hpput' ? 2 : 4); n > 0; n--) {
            this.#put(storage, writer, to, begin, end);
          }
        }
      }
    }
  }

  /** To elements from `begin` up to `end`, as far as the registration goes that the writer means. */
  #put(storage: Storage, writer: number, to: number, begin: number, end: number): void {
    const [bsp, random] = [this.#bsp, this.#random];
    const width = storage.type.BYTES_PER_ELEMENT;
    const [place, part, less] = [random.bits(), random.bits(), random.below(width)];
    const asBytes = random.below(4) === 0;
    const most = Math.min(end, this.#meant(storage, writer)?.lengths[to] ?? -1);
    const values = randomBytes(random, Math.max(0, most - begin) * width);
    if (most < begin) return;
    const at = begin + (place % (most - begin + 1));
    const count = part % (most - at + 1);
    // Bytes need not be whole elements.
    const bytes = Math.max(0, count * width - (asBytes ? less : 0));
    storage.model[to].set(values.subarray(0, bytes), at * width);
    const apart = !asBytes && random.below(2) === 0 ? Math.min(count, MOST_APART) : 0;
    for (let i = 0; i < apart; i++) this.#traffic.at(-1)!.add(writer, to, writer, width);
    if (bytes > apart * width) this.#traffic.at(-1)!.add(writer, to, writer, bytes - apart * width);
    if (writer !== bsp.pid) return;
    const source = this.#array(storage, count + 2, asBytes);
    bytesOf(source).set(values.subarray(0, bytes), width);
    const unit = asBytes ? width : 1;
    const isDirect = this.#mode === 'hpput';
    const call = isDirect ? bsp.hpput.bind(bsp) : bsp.put.bind(bsp);
    for (let i = 0; i < apart; i++) call(to, source, storage.own, at + i, 1, unit + i);
    if (apart === 0 || apart < count) {
      call(to, source, storage.own, at + apart, (asBytes ? bytes : count) - apart, unit + apart);
    }
    if (!isDirect) bytesOf(source).fill(0x77);
  }

  /** What is beyond a variable, as the newest registration has it, or not registered, is refused. */
  #refusals(random: Random, label: string): void {
    const [bsp, element] = [this.#bsp, new Uint8Array(1)];
    for (const storage of this.#storages) {
      if (random.below(2) === 0) continue;
      const to = random.below(bsp.nprocs);
      const length = this.#meant(storage, bsp.pid)?.lengths[to];
      const code = length === undefined ? 'ERR_RMA_ATTACH' : 'ERR_RMA_RANGE';
      const at = Math.max(0, length ?? 0);
      if (random.below(2) === 0) assert.throws(() => bsp.put(to, element, storage.own, at), { code }, label);
      else assert.throws(() => bsp.get(to, storage.own, at, element), { code }, label);
    }
  }

  /** What comes to this process, as texts. */
  #sends(): string[] {
    const [bsp, random] = [this.#bsp, this.#random];
    const tagBytes = this.#tagBytes;
    const mine: string[] = [];
    for (let pid = 0; pid < bsp.nprocs; pid++) {
      for (let n = random.below(4); n > 0; n--) {
        const to = random.below(bsp.nprocs);
        const length = random.below(random.below(5) === 0 ? 20_000 : 30);
        const tag = randomBytes(random, tagBytes);
        const payload = randomBytes(random, length);
        this.#traffic.at(-1)!.add(pid, to, pid, tagBytes + length);
        if (to === bsp.pid) mine.push(textOf(tag, payload));
        if (pid !== bsp.pid) continue;
        bsp.send(to, tagBytes === 0 ? null : tag, payload);
        tag.fill(0);
        payload.fill(0);
      }
    }
    return mine;
  }

  /** Takes messages in one way or another, and leaves the rest. */
  #receive(expected: readonly string[], label: string, random: Random): void {
    const bsp = this.#bsp;
    const bytes = expected.reduce((sum, text) => sum + text.length - text.indexOf(':') - 1, 0) / 2;
    assert.deepEqual(bsp.qsize(), { messages: expected.length, bytes }, `${label}: the queue`);
    const left = [...expected];
    const taken = random.below(4) === 0 ? random.below(expected.length + 1) : expected.length;
    for (let i = 0; i < taken; i++) {
      let text: string;
      if (random.below(2) === 0) {
        const { tag, payload } = bsp.hpmove()!;
        text = textOf(tag, payload);
      } else {
        const tag = new Uint8Array(this.#tagBytes);
        const payload = new Uint8Array(bsp.getTag(tag));
        assert.equal(bsp.move(payload), payload.length, label);
        text = textOf(tag, payload);
      }
      const at = left.indexOf(text);
      assert.ok(at >= 0, `${label}: a message that nobody sent`);
      left.splice(at, 1);
    }
    assert.equal(bsp.qsize().messages, expected.length - taken, label);
  }
}

function textOf(tag: Uint8Array, payload: Uint8Array): string {
  return `${Buffer.from(tag).toString('hex')}:${Buffer.from(payload).toString('hex')}`;
}
