/** The memories that ranks access: parts of windows, attached memory, and arrays of one rank alone; their shadows. */
import type { Moment, RaceAccess } from './race-access.ts';
import type { Race, ShadowSize } from './race-findings.ts';
import { RaceShadow } from './race-shadow.ts';
import type { RaceWords } from './race-words.ts';

/** Bytes that a stretch of a shadow takes, and the record of an access, about. */
const STRETCH_BYTES = 90;
const RECORD_BYTES = 220;
/** Of what is not given: so many times the windows, but not less or more than so many bytes. */
const TIMES = 6;
const LEAST = 2 ** 26;
const MOST = 2 ** 30;
/** What words may take of it. */
const WORDS = 0.25;
/** Stretches that are looked through for what is over, at least. */
const SWEEP = 50_000;
/** Memories are numbered by their rank's number times this, and more. */
export const MEMORIES_A_RANK = 2 ** 24;

/** Some bytes of a memory that are those of a window. */
interface Region {
  readonly window: string;
  readonly name: string;
  /** Of the world. */
  readonly rank: number;
  /** In the window: 0, or an address. */
  readonly address: number;
  readonly bytes: number;
  readonly memory: number;
  readonly base: number;
}

interface Place {
  readonly memory: number;
  readonly low: number;
  readonly high: number;
}

export class RaceMemories {
  readonly #shadows = new Map<number, RaceShadow>();
  /** By window and rank. */
  readonly #regions = new Map<string, Region[]>();
  /** By memory. */
  readonly #inMemory = new Map<number, Region[]>();
  readonly #words: RaceWords;
  /** Bytes; absent: it goes by the windows. */
  readonly #given: number | undefined;
  #bound = 0;
  /** Records that were made. Of those, there is at most one for each stretch, about. */
  records = 0;
  readonly #found: (a: RaceAccess, b: RaceAccess, memory: number, low: number, high: number) => void;
  #sweepAt: number;
  forgotten = 0;
  #peak = 0;
  #windows = 0;
  #mostWindows = 0;
  #stretches = 0;

  constructor(
    words: RaceWords,
    memory: number | undefined,
    found: (a: RaceAccess, b: RaceAccess, memory: number, low: number, high: number) => void,
  ) {
    this.#words = words;
    this.#given = memory;
    this.#found = found;
    this.#limit();
    this.#sweepAt = Math.min(this.#most, SWEEP);
  }

  /** How much may be kept, of windows as large as they have been. */
  #limit(): void {
    this.#bound = this.#given ?? Math.min(MOST, Math.max(LEAST, TIMES * this.#mostWindows));
    this.#words.bound = WORDS * this.#bound;
  }

  /** Stretches that may be kept. */
  get #most(): number {
    const records = this.#stretches === 0 ? 1 : Math.min(1, this.records / this.#stretches);
    return Math.max(1000, Math.floor(((1 - WORDS) * this.#bound) / (STRETCH_BYTES + records * RECORD_BYTES)));
  }

  /** Bytes that stretches and their records take, about. */
  get #bytes(): number {
    return this.#stretches * STRETCH_BYTES + Math.min(this.#stretches, this.records) * RECORD_BYTES;
  }

  // ---- windows ------------------------------------------------------------------------------------------------------

  part(window: string, rank: number, memory: number, base: number, bytes: number, name: string): void {
    this.#add({ window, name, rank, address: 0, bytes, memory, base });
  }

  attach(
    window: string,
    rank: number,
    address: number,
    bytes: number,
    memory: number,
    base: number,
    name: string,
  ): void {
    this.#add({ window, name, rank, address, bytes, memory, base });
  }

  #add(region: Region): void {
    const key = `${region.window} ${region.rank}`;
    this.#regions.set(key, [...(this.#regions.get(key) ?? []), region]);
    this.#inMemory.set(region.memory, [...(this.#inMemory.get(region.memory) ?? []), region]);
    this.#shadow(region.memory).isPrivate = false;
    this.#windows += region.bytes;
    if (this.#windows <= this.#mostWindows) return;
    this.#mostWindows = this.#windows;
    this.#limit();
  }

  detach(window: string, rank: number, address: number, bytes: number): void {
    this.#remove(window, rank, (region) => region.address === address && region.bytes === bytes);
  }

  freed(window: string, rank: number): void {
    this.#remove(window, rank, () => true);
  }

  #remove(window: string, rank: number, isGone: (region: Region) => boolean): void {
    const key = `${window} ${rank}`;
    for (const region of this.#regions.get(key) ?? []) {
      if (!isGone(region)) continue;
      this.#windows -= region.bytes;
      const left = (this.#inMemory.get(region.memory) ?? []).filter((other) => other !== region);
      this.#inMemory.set(region.memory, left);
      if (left.length > 0) continue;
      this.#stretches -= this.#shadow(region.memory).stretches;
      this.#shadows.delete(region.memory);
      this.#words.forget(region.memory);
    }
    this.#regions.set(
      key,
      (this.#regions.get(key) ?? []).filter((region) => !isGone(region)),
    );
  }

  /** Whether a rank has told of its part, or of all it has attached and detached. */
  hasPart(window: string, rank: number): boolean {
    return this.#regions.has(`${window} ${rank}`);
  }

  /** Where bytes of a rank's part lie. */
  placeOf(window: string, rank: number, low: number, high: number): Place | undefined {
    for (const { address, bytes, memory, base } of this.#regions.get(`${window} ${rank}`) ?? []) {
      if (low < address || high > address + bytes) continue;
      return { memory, low: base + low - address, high: base + high - address };
    }
    return undefined;
  }

  describe(memory: number, low: number, high: number): Race['where'] {
    for (const { name, rank, address, bytes, base } of this.#inMemory.get(memory) ?? []) {
      const at = low - base + address;
      if (at < address || at >= address + bytes) continue;
      return { window: name, rank, bytes: [at, high - base + address - 1] };
    }
    return { rank: Math.floor(memory / MEMORIES_A_RANK), bytes: [low, high - 1] };
  }

  // ---- accesses -----------------------------------------------------------------------------------------------------

  #shadow(memory: number): RaceShadow {
    let shadow = this.#shadows.get(memory);
    if (shadow === undefined) {
      shadow = new RaceShadow();
      this.#shadows.set(memory, shadow);
    }
    return shadow;
  }

  access(memory: number, access: RaceAccess, low: number, high: number, moment: Moment): void {
    const shadow = this.#shadow(memory);
    const before = shadow.stretches;
    shadow.access(access, low, high, moment, (a, b, from, to) => this.#found(a, b, memory, from, to));
    if (shadow.stretches === before) return;
    this.#stretches += shadow.stretches - before;
    if (this.#bytes > (1 - WORDS) * this.#bound && this.#stretches > this.#most) this.#forget();
    if (this.#bytes > this.#peak) this.#peak = this.#bytes;
  }

  /** An operation is over for its rank. If that is all that a memory of this rank alone was used for, it is forgotten. */
  ended(memory: number, access: RaceAccess): void {
    const shadow = this.#shadows.get(memory);
    if (shadow === undefined || !shadow.isPrivate || !shadow.hasOnly(access)) return;
    this.#stretches -= shadow.stretches;
    this.#shadows.delete(memory);
  }

  /** At most, so far. */
  get size(): ShadowSize {
    const bytes = this.#peak + this.#words.bytes;
    return { bytes, bound: this.#bound, windows: this.#mostWindows, words: this.#words.joined };
  }

  /** Whether it is time to look for what can be forgotten. */
  get isFull(): boolean {
    return this.#stretches > this.#sweepAt;
  }

  sweep(isOver: (access: RaceAccess, isPrivate: boolean) => boolean): void {
    for (const [memory, shadow] of this.#shadows) {
      const before = shadow.stretches;
      shadow.sweep((access) => isOver(access, shadow.isPrivate));
      this.#stretches += shadow.stretches - before;
      if (shadow.stretches === 0 && shadow.isPrivate) this.#shadows.delete(memory);
    }
    this.#sweepAt = Math.min(this.#most, Math.max(SWEEP, 2 * this.#stretches));
  }

  /** A tenth of it. */
  #forget(): void {
    const goal = Math.floor(this.#most * 0.9);
    for (const shadow of this.#shadows.values()) {
      if (this.#stretches <= goal) return;
      const before = shadow.stretches;
      this.forgotten += shadow.forget(this.#stretches - goal);
      this.#stretches += shadow.stretches - before;
    }
  }
}
