/**
 * What a watched rank tells the analysis (race-events.ts): texts once, events in their order, loads and stores by the
 * stretch; and which memory of it is looked at.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { forEachRun } from '../../datatype/copy.ts';
import type { Side } from '../../datatype/sides.ts';
import { bufferOf, byteOffsetOf } from '../../intrinsics.ts';
import { RaceEvent, type RaceSink } from '../race-events.ts';
import { MEMORIES_A_RANK } from '../race-memories.ts';
import { programSite } from './program-site.ts';
import { cannotSee, raceRuntime, siteNumber, type TrackedMemory } from './tracked-memory.ts';

/** Bytes of a buffer that are those of another rank's part. */
interface SharedPart {
  readonly low: number;
  readonly high: number;
  readonly window: string;
  readonly owner: number;
  /** In the part. */
  readonly at: number;
}

export class RaceTeller {
  readonly rank: number;
  readonly isPrompt: boolean;
  readonly #sink: RaceSink;
  readonly #texts = new Map<string, number>();
  readonly #memories = new WeakMap<ArrayBufferLike, RankMemory>();
  #count = 0;
  #epochs = 0;
  #data = new Float64Array(64);
  #length = 0;
  /** Loads and stores that were not told yet: they are told before anything else is. */
  readonly #held = new Set<RankMemory>();
  #isClosed = false;
  /** Changes with each event that is no load or store. */
  step = 0;

  constructor(rank: number, sink: RaceSink) {
    this.rank = rank;
    this.#sink = sink;
    this.isPrompt = sink.isPrompt;
    const runtime = raceRuntime();
    if (!runtime.instruments)
      cannotSee("loads and stores of the program's own: its modules were not instrumented as they were loaded");
    for (const text of runtime.unseen) this.#tellUnseen(text);
    runtime.tellUnseen = (text) => this.#tellUnseen(text);
  }

  /** Also behind `finalize`, where that can be told: Node says some time later that a thread was started. */
  #tellUnseen(text: string): void {
    this.begin(text);
    if (!this.#isClosed || !this.isPrompt) this.#sink.event(RaceEvent.UNSEEN, this.#data, this.#length);
  }

  // ---- events -------------------------------------------------------------------------------------------------------

  /** The number of a text, which is told once. */
  text(text: string): number {
    let id = this.#texts.get(text);
    if (id === undefined) {
      id = this.#texts.size + 1;
      this.#texts.set(text, id);
      this.#sink.text(id, text);
    }
    return id;
  }

  /** The first number of an event. */
  begin(scope: string): this {
    this.step++;
    if (this.#held.size > 0) this.#tellHeld();
    this.#length = 0;
    return this.add(this.text(scope));
  }

  add(value: number): this {
    if (this.#length === this.#data.length) {
      const more = new Float64Array(2 * this.#length);
      more.set(this.#data);
      this.#data = more;
    }
    this.#data[this.#length++] = value;
    return this;
  }

  addAll(values: readonly number[]): this {
    for (const value of values) this.add(value);
    return this;
  }

  tell(kind: number): void {
    if (!this.#isClosed) this.#sink.event(kind, this.#data, this.#length);
  }

  /** @returns the number of an epoch */
  epoch(kind: string, site: string): number {
    const number = ++this.#epochs;
    const [kindText, siteText] = [this.text(kind), this.text(site)];
    if (this.#held.size > 0) this.#tellHeld();
    this.#length = 0;
    this.add(number).add(kindText).add(siteText).tell(RaceEvent.EPOCH);
    return number;
  }

  // ---- memory -------------------------------------------------------------------------------------------------------

  /** The number of a buffer: the same while it lives. */
  memoryOf(buffer: ArrayBufferLike): number {
    return this.#memory(buffer).number;
  }

  #memory(buffer: ArrayBufferLike): RankMemory {
    let memory = this.#memories.get(buffer);
    if (memory === undefined) {
      memory = new RankMemory(this, this.rank * MEMORIES_A_RANK + ++this.#count);
      this.#memories.set(buffer, memory);
      raceRuntime().memories.set(buffer, memory);
    }
    return memory;
  }

  /** Bytes of this buffer are those of a part. */
  share(buffer: ArrayBufferLike, part: SharedPart): void {
    const { parts } = this.#memory(buffer);
    if (!parts.some(({ low, high, window }) => low === part.low && high === part.high && window === part.window))
      parts.push(part);
  }

  /** The bytes of a side of an array, as pairs: first, and behind the last, in its buffer. */
  addRuns(array: TypedArray, side: Side): this {
    const base = byteOffsetOf(array);
    forEachRun(side, (offset, bytes) => void this.add(base + offset).add(base + offset + bytes));
    return this;
  }

  /** An array that a call reads or writes by itself. */
  touchArray(array: unknown, writes: boolean, call: string): void {
    if (!ArrayBuffer.isView(array)) return;
    const memory = this.#memories.get(bufferOf(array as TypedArray));
    if (memory === undefined) return;
    const low = byteOffsetOf(array as TypedArray);
    memory.touch(low, low + array.byteLength, writes ? 1 : 0, siteNumber(programSite()), call, -1);
  }

  /**
   * A load or store. Neighbouring ones of one line are told together, before anything else is told: until then, nothing
   * that this rank gives or takes comes in between.
   */
  hold(memory: RankMemory): void {
    this.#held.add(memory);
  }

  #tellHeld(): void {
    for (const memory of this.#held) memory.tellAll();
    this.#held.clear();
  }

  tellAccess(memory: RankMemory, { part, low, high, writes, site, call }: Readonly<HeldAccess>, type: number): void {
    if (type >= 0) {
      this.step++;
      if (this.#held.size > 0) this.#tellHeld();
    }
    const [line, name] = [this.text(raceRuntime().sites[site] ?? '?'), this.text(call)];
    const window = part === undefined ? 0 : this.text(part.window);
    this.#length = 0;
    if (part !== undefined) {
      const at = part.at - part.low;
      this.addAll([window, part.owner, low + at, high + at, writes, line, name, type]);
      this.tell(RaceEvent.PART_ACCESS);
      return;
    }
    this.addAll([memory.number, low, high, writes, line, name, type]);
    this.tell(type < 0 ? RaceEvent.ACCESS : RaceEvent.ATOMIC);
  }

  close(): void {
    if (this.#held.size > 0) this.#tellHeld();
    this.#isClosed = true;
  }
}

interface HeldAccess {
  readonly part: SharedPart | undefined;
  low: number;
  high: number;
  readonly writes: number;
  /** A number of `RaceRuntime.sites`. */
  readonly site: number;
  readonly call: string;
}

class RankMemory implements TrackedMemory {
  readonly number: number;
  readonly parts: SharedPart[] = [];
  readonly #teller: RaceTeller;
  /** Loads and stores that were not told yet, by line. */
  readonly #held = new Map<number, HeldAccess>();
  #last: HeldAccess | undefined;
  /** What was told at once since its step, in the same way. */
  readonly #told = new Map<number, { low: number; high: number }>();
  #toldIn = 0;

  constructor(teller: RaceTeller, number: number) {
    this.#teller = teller;
    this.number = number;
  }

  touch(low: number, high: number, writes: number, site: number, call: string, type: number): void {
    let held = this.#last;
    if (type >= 0 || this.#teller.isPrompt) {
      if (type < 0 && this.#isTold(low, high, 2 * site + writes)) return;
      this.#teller.tellAccess(this, { part: this.#partOf(low, high), low, high, writes, site, call }, type);
      return;
    }
    if (held === undefined || held.site !== site || held.writes !== writes) {
      held = this.#held.get(2 * site + writes);
      this.#last = held;
    }
    if (held !== undefined && low <= held.high && high >= held.low && isWithin(held.part, low, high)) {
      if (low < held.low) held.low = low;
      if (high > held.high) held.high = high;
      return;
    }
    if (held !== undefined) this.#teller.tellAccess(this, held, -1);
    else if (this.#held.size === 0) this.#teller.hold(this);
    this.#last = { part: this.#partOf(low, high), low, high, writes, site, call };
    this.#held.set(2 * site + writes, this.#last);
  }

  /**
   * Whether this line has told these bytes since anything else was told. The rank has taken and completed nothing
   * since, so telling it again finds no other race: whoever accesses these bytes meanwhile is compared with what was
   * told.
   */
  #isTold(low: number, high: number, line: number): boolean {
    const { step } = this.#teller;
    if (this.#toldIn !== step) this.#told.clear();
    this.#toldIn = step;
    const told = this.#told.get(line);
    if (told === undefined || low > told.high || high < told.low) {
      this.#told.set(line, { low, high });
      return false;
    }
    if (low >= told.low && high <= told.high) return true;
    told.low = Math.min(told.low, low);
    told.high = Math.max(told.high, high);
    return false;
  }

  #partOf(low: number, high: number): SharedPart | undefined {
    const { parts } = this;
    return parts.length === 0 ? undefined : parts.find((part) => low >= part.low && high <= part.high);
  }

  tellAll(): void {
    const all = [...this.#held.values()];
    this.#held.clear();
    this.#last = undefined;
    for (const held of all) this.#teller.tellAccess(this, held, -1);
  }
}

function isWithin(part: SharedPart | undefined, low: number, high: number): boolean {
  return part === undefined || (low >= part.low && high <= part.high);
}
