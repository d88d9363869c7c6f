/** The accesses that ranks tell of: loads and stores, `Atomics`, and operations with their arguments. */
import { accessOf, type CommonAccess, type RaceAccess } from './race-access.ts';
import type { RaceCompletions } from './race-completions.ts';
import { OpKind } from './race-events.ts';
import type { RaceMemories } from './race-memories.ts';
import type { RaceOrder } from './race-order.ts';
import { KeyOf, keyOf } from './race-records.ts';
import type { RaceTellers } from './race-tellers.ts';
import type { WordPlaces } from './race-words.ts';

/** Updates and puts of so many elements at most are taken for words that ranks synchronize by. */
const MOST_WORDS = 4;
/** Of the pairs of an operation's event. */
const FIRST_PLACE = 11;
/** Calls whose operations are completed one by one. */
const ALONE = /^(r|aggregate)/;

export class RaceAccesses {
  readonly #tellers: RaceTellers;
  readonly #order: RaceOrder;
  readonly #memories: RaceMemories;
  readonly #completions: RaceCompletions;
  readonly #strict: boolean;

  constructor(
    tellers: RaceTellers,
    order: RaceOrder,
    memories: RaceMemories,
    completions: RaceCompletions,
    strict: boolean,
  ) {
    this.#tellers = tellers;
    this.#order = order;
    this.#memories = memories;
    this.#completions = completions;
    this.#strict = strict;
  }

  access(rank: number, d: Float64Array, atomic: number): void {
    const writes = d[3] !== 0;
    const size = atomic < 0 ? 1 : (d[2] - d[1]) | 0;
    const phase = atomic < 0 ? 0 : (d[1] % size) | 0;
    const key = keyOf(KeyOf.ACCESS, this.#order.now(rank), d[4], d[5], d[3], atomic, phase, 0, 0, 0, 0);
    const { records } = this.#tellers.of(rank);
    const record = records.find(key, () =>
      accessOf(this.#plain(rank, d, size, atomic), this.#order.now(rank), undefined, writes, atomic, phase),
    );
    if (records.isNew) this.#memories.records++;
    this.#order.happened(rank);
    this.#memories.access(d[0], record, d[1], d[2], this.#order.momentOf(rank));
  }

  /** A load, a store, or one of `Atomics`. */
  #plain(rank: number, d: Float64Array, size: number, atomic: number): CommonAccess {
    return {
      rank,
      site: this.#tellers.text(rank, d[4]),
      call: this.#tellers.text(rank, d[5]),
      op: -1,
      size,
      isAlone: false,
      isMarked: atomic >= 0,
      window: '',
      target: -1,
      place: -1,
      epoch: undefined,
      fenced: '',
      fences: 0,
      done: true,
    };
  }

  /** A load or store of another rank's part. */
  partAccess(rank: number, d: Float64Array): void {
    const key = this.#tellers.text(rank, d[0]);
    const place = this.#memories.placeOf(key, this.#tellers.worldRank(key, d[1]), d[2], d[3]);
    if (place === undefined) return;
    const there = Float64Array.of(place.memory, place.low, place.high, d[4], d[5], d[6], d[7]);
    if (d[7] >= 0) this.atomic(rank, there);
    else this.access(rank, there, -1);
  }

  /** `Atomics` on memory of a window. */
  atomic(rank: number, d: Float64Array): void {
    if (this.#strict) {
      this.access(rank, d, -1);
      return;
    }
    const word = [d[0], d[1]];
    if (d[3] !== 0) {
      this.#order.giveWords(word, rank);
      this.access(rank, d, d[6]);
      return;
    }
    this.#order.takeWords(word, rank);
    this.#completions.learn(rank, this.#order.words.seen(d[0], d[1]));
    this.access(rank, d, d[6]);
  }

  operation(rank: number, d: Float64Array, length: number): void {
    const key = this.#tellers.text(rank, d[0]);
    // Whole numbers are half as long as others.
    const [target, kind, reads, base, size] = [d[1] | 0, d[2] | 0, d[3] | 0, d[4] | 0, d[5] | 0];
    const number = d[6];
    const [site, call, epoch, op] = [d[7] | 0, d[8] | 0, d[9], d[10] | 0];
    const owner = this.#tellers.worldRank(key, target);
    const isUpdate = kind === OpKind.UPDATE;
    const words = kind === OpKind.GET || this.#strict ? undefined : this.#wordsOf(key, owner, d, length, size);
    const time = this.#order.now(rank);
    // Before: who finds the word changed learns of what came before the operation.
    if (words !== undefined && reads === 0) this.#order.giveWords(words, rank);
    this.#order.called(rank);
    const within = this.#tellers.of(rank).epochs.get(epoch);
    const name = this.#tellers.text(rank, call);
    const common: CommonAccess = {
      rank,
      site: this.#tellers.text(rank, site),
      call: name,
      isAlone: ALONE.test(name),
      window: this.#tellers.windows.get(key)?.name ?? key,
      target: owner,
      place: target,
      epoch: within,
      fenced: key,
      fences: within?.kind === 'fence' ? this.#order.fencesOf(key, rank) : 0,
      op: this.#strict ? op : -1,
      size,
      isMarked: false,
      done: false,
    };
    const teller = this.#tellers.of(rank);
    const { isAlone } = common;
    const takes = isUpdate && words !== undefined && !/accumulate$/.test(common.call) ? words : undefined;
    // Updates that bring nothing back and are under way are complete together, whatever has happened between them: a
    // record for all of them. Others of one count.
    const count = this.#completions.countOf(rank, key, isUpdate && takes === undefined && !isAlone);
    teller.last = { target, site, call, alone: isAlone ? number : -1, count, common };
    for (let i = FIRST_PLACE; i + 1 < length; i += 2) {
      const place = this.#memories.placeOf(key, owner, d[i], d[i + 1]);
      if (place === undefined) continue;
      const phase = isUpdate ? (place.low % size) | 0 : 0;
      const alone = isAlone ? number : -1;
      const like = keyOf(KeyOf.TARGET, count, d[0], target, site, call, epoch, base * 8 + reads, phase, op, alone);
      const access = teller.records.find(like, () =>
        accessOf(common, time, 'target', kind !== OpKind.GET && reads === 0, isUpdate ? base : -1, phase),
      );
      const { isNew } = teller.records;
      if (isNew) this.#memories.records++;
      access.time = time;
      this.#memories.access(place.memory, access, place.low, place.high, this.#order.momentOf(rank));
      if (words !== undefined && access.writes) this.#order.words.changedBy(access, words);
      if (isNew)
        this.#completions.pend(rank, key, {
          ...{ access, number, target, endsHere: !access.writes, words: takes && [...takes], memory: -1 },
        });
      else if (takes !== undefined) this.#takesMore(access, takes);
    }
  }

  /** The words of an operation that has the record of another one. */
  #takesMore(access: RaceAccess, words: WordPlaces): void {
    if (access.pending !== undefined) (access.pending.words ??= []).push(...words);
  }

  /** The words of an update of few elements, by their place. */
  #wordsOf(key: string, owner: number, d: Float64Array, length: number, size: number): WordPlaces | undefined {
    const words: number[] = [];
    for (let i = FIRST_PLACE; i + 1 < length; i += 2) {
      if (words.length / 2 + (d[i + 1] - d[i]) / size > MOST_WORDS) return undefined;
      const place = this.#memories.placeOf(key, owner, d[i], d[i + 1]);
      if (place === undefined) continue;
      for (let at = place.low; at < place.high; at += size) words.push(place.memory, at);
    }
    return words;
  }

  use(rank: number, d: Float64Array, length: number): void {
    const key = this.#tellers.text(rank, d[0]);
    const number = d[1];
    const [memory, write, name] = [d[2], d[3] | 0, d[4] | 0];
    const teller = this.#tellers.of(rank);
    const { last } = teller;
    if (last === undefined) return;
    const side = this.#tellers.text(rank, name);
    const like = keyOf(KeyOf.USE, last.count, d[0], last.target, last.site, last.call, name, write, last.alone, 0, 0);
    const access = teller.records.find(like, () =>
      accessOf(last.common, this.#order.now(rank), side, write === 1, -1, 0),
    );
    const { isNew } = teller.records;
    if (isNew) this.#memories.records++;
    for (let i = 5; i + 1 < length; i += 2)
      this.#memories.access(memory, access, d[i], d[i + 1], this.#order.momentOf(rank));
    if (isNew)
      this.#completions.pend(rank, key, {
        access,
        number,
        target: last.target,
        endsHere: true,
        words: undefined,
        memory,
      });
    // Which memory is whose is known for the first only.
    else if (access.pending !== undefined && access.pending.memory !== memory) access.pending.memory = -1;
  }
}
