/**
 * What fences and locks promise whatever their scheme, as requirements for the explorer
 * (`npm run explore -- --chapter=fences`, `--chapter=locks`): random programs, each held against what must come out.
 * They are for ranks that are tasks: virtual time passes where they compute, and what all of them have done is seen in
 * one place.
 */
import assert from 'node:assert/strict';
import { Assert, Lock, Op, type Window, type WindowInfo } from 'onesided';
import type { BarrierOptions } from 'onesided/fabrics';
import type { Requirement, Trial } from '../conformance/requirement.ts';
import { BARRIERS, Entries, enterMany } from './barriers.ts';
import { FENCES, LAYOUTS, LOCKS, SCHEDULES } from './explorer.ts';
import { layouts } from './layouts.ts';
import { schedules } from './schedules.ts';

const ROUNDS = 6;
/** Elements of a put: inline, of one packet, of several. */
const LENGTHS = [1, 40, 700];
const MOST = LENGTHS[LENGTHS.length - 1];

/**
 * In each round, every rank puts to random others, reads what they had put in the round before, and adds to a counter,
 * with a fence before and behind it. Its part has a place for each source, twice: what a round writes, the next one
 * reads. Behind each fence the owner compares all of its part: a put that came late is missing, one that came before
 * its epoch was open is there too soon.
 */
async function fences(t: Trial, info: WindowInfo): Promise<void> {
  const { rank, size, random, shared } = t;
  /** The same at all ranks: what each puts to whom, 0 elements: nothing. */
  const plan = Array.from({ length: ROUNDS }, () => ({
    lengths: t.ranks.map(() => t.ranks.map(() => (shared.chance(0.5) ? shared.pick(LENGTHS) : 0))),
    splits: shared.chance(0.5),
  }));
  const stamp = (round: number, source: number, i: number): number => 1e6 * (round + 1) + 1e4 * source + i;
  const half = size * MOST;
  await t.window(
    Float64Array,
    2 * half + 1,
    async (win) => {
      const { local } = win;
      const expected = new Float64Array(local.length);
      await win.fence(Assert.NO_PRECEDE);
      for (const [round, { lengths, splits }] of plan.entries()) {
        const at = (round % 2) * half;
        const fetched: { readonly target: number; readonly found: Float64Array }[] = [];
        await t.comm.compute(random.below(3) * random.below(30));
        for (const target of t.ranks) {
          const length = lengths[rank][target];
          if (length === 0) continue;
          win.put(
            Float64Array.from({ length }, (_, i) => stamp(round, rank, i)),
            target,
            at + rank * MOST,
          );
          win.accumulate(Float64Array.of(1), target, 2 * half, Op.SUM);
          if (round === 0 || lengths[rank][target] === 1) continue;
          const found = new Float64Array(MOST);
          win.get(found, target, half - at + rank * MOST);
          fetched.push({ target, found });
        }
        await t.comm.compute(random.below(3) * random.below(30));
        if (splits) {
          await win.fence(Assert.NO_SUCCEED);
          await t.comm.compute(random.below(20));
        } else await win.fence();
        for (const source of t.ranks) {
          const length = lengths[source][rank];
          if (length > 0) expected[2 * half]++;
          for (let i = 0; i < length; i++) expected[at + source * MOST + i] = stamp(round, source, i);
        }
        const wrong = local.findIndex((value, i) => value !== expected[i]);
        assert.ok(wrong < 0, `round ${round}: element ${wrong} is ${local[wrong]}, not ${expected[wrong]}`);
        for (const { target, found } of fetched) {
          const length = plan[round - 1].lengths[rank][target];
          for (let i = 0; i < length; i++)
            assert.equal(found[i], stamp(round - 1, rank, i), `round ${round}, fetched from ${target}`);
        }
        // Others may put again as soon as this rank has come to this one: the look is over.
        await win.fence(splits ? Assert.NO_PRECEDE : 0);
      }
      await win.fence(Assert.NO_SUCCEED);
    },
    { info },
  );
}

/**
 * Who holds the lock of each rank's part, seen from outside: locks are held from the return of `lock` to the call of
 * `unlock`.
 */
class Holders {
  readonly #shared: number[];
  readonly #exclusive: number[];

  constructor(size: number) {
    this.#shared = new Array<number>(size).fill(0);
    this.#exclusive = new Array<number>(size).fill(0);
  }

  enter(target: number, exclusive: boolean): void {
    if (exclusive) this.#exclusive[target]++;
    else this.#shared[target]++;
    const [e, s] = [this.#exclusive[target], this.#shared[target]];
    assert.ok(e === 0 || (e === 1 && s === 0), `the lock of rank ${target} has ${e} exclusive and ${s} shared holders`);
  }

  leave(target: number, exclusive: boolean): void {
    if (exclusive) this.#exclusive[target]--;
    else this.#shared[target]--;
  }
}

/** What the ranks of one run share outside of the fabric, by its communicator's first collective. */
interface Scene {
  readonly holders: Holders;
  /** Ranks that have had all the locks that they wanted. */
  done: number;
  /** Increments under locks, by target, and those that were given up. */
  readonly added: number[];
  /** The same of a word that goes up by single operations, too. */
  readonly counted: number[];
}

const LOCKS_WANTED = 8;
/** Virtual milliseconds within which a lock is had by whoever waits, however many others come again and again. */
const PATIENCE_MS = 400;

let scene: Scene | undefined;

/**
 * Every rank takes locks again and again until each has had so many: nobody is kept out by the others. Under an
 * exclusive lock two words go up by one, in two steps with time between; under a shared one they are the same at every
 * look. Some give up soon. A third word goes up by one in epochs of one operation, which may travel with its lock, and
 * in others, which read it and write it back.
 */
async function locks(t: Trial, info: WindowInfo): Promise<void> {
  const { rank, size, random } = t;
  await t.barrier();
  const zeros = (): number[] => new Array<number>(size).fill(0);
  if (rank === 0) scene = { holders: new Holders(size), done: 0, added: zeros(), counted: zeros() };
  await t.barrier();
  const { holders, added, counted } = scene!;
  const mine = scene!;
  const held = info.lock_defer !== true;
  const one = async (
    win: Window<Int32Array>,
    target: number,
    exclusive: boolean,
    patience: number,
  ): Promise<boolean> => {
    const options = patience === 0 ? { timeout: held ? PATIENCE_MS * t.slowness : 0 } : { timeout: patience };
    const deferred = !held && patience > 0;
    try {
      await win.lock(target, exclusive ? Lock.EXCLUSIVE : Lock.SHARED, 0, held || deferred ? options : undefined);
    } catch (error) {
      if (patience > 0 && (error as { code?: unknown }).code === 'ERR_RMA_TIMEOUT') return false;
      throw error;
    }
    if (held) holders.enter(target, exclusive);
    const words = new Int32Array(2);
    const count = new Int32Array(1);
    win.get(words, target, 0);
    win.get(count, target, 3);
    await win.flush(target);
    assert.equal(
      words[0],
      words[1],
      `the words of rank ${target}, under ${exclusive ? 'an exclusive' : 'a shared'} lock`,
    );
    const before = words[0];
    await t.comm.compute(random.below(3) * random.below(20));
    if (exclusive) {
      win.put(Int32Array.of(before + 1), target, 0);
      await win.flush(target);
      await t.comm.compute(random.below(5));
      win.put(Int32Array.of(before + 1), target, 1);
      win.put(Int32Array.of(count[0] + 1), target, 3);
      added[target]++;
      counted[target]++;
    } else {
      win.get(words, target, 0);
      await win.flush(target);
      assert.deepEqual(
        [...words],
        [before, before],
        `the words of rank ${target}, at the second look under a shared lock`,
      );
    }
    if (held) holders.leave(target, exclusive);
    await win.unlock(target);
    return true;
  };
  const single = async (win: Window<Int32Array>, target: number): Promise<void> => {
    await win.lock(target, Lock.EXCLUSIVE);
    win.accumulate(Int32Array.of(1), target, 3, Op.SUM);
    counted[target]++;
    await win.unlock(target);
  };
  await t.window(
    Int32Array,
    4,
    async (win) => {
      const exclusive = 0.2 + 0.6 * (random.below(100) / 100);
      const idle = random.below(4) * 10;
      for (let had = 0; mine.done < size; ) {
        const target = random.chance(0.7) ? 0 : random.below(size);
        if (random.chance(0.3)) await single(win as Window<Int32Array>, target);
        const patience = random.chance(0.15) ? 0.02 * (1 + random.below(10)) : 0;
        if (await one(win as Window<Int32Array>, target, random.chance(exclusive), patience)) had++;
        if (had === LOCKS_WANTED) mine.done++;
        if (had === LOCKS_WANTED) had++;
        await t.comm.compute(random.below(1 + idle));
      }
      await t.barrier();
      for (const target of t.ranks) {
        await win.lock(target, Lock.SHARED);
        const words = new Int32Array(4);
        win.get(words, target, 0);
        await win.unlock(target);
        const expected = [added[target], added[target], counted[target]];
        assert.deepEqual([words[0], words[1], words[3]], expected, `increments at rank ${target}`);
      }
      // What others have read of it, too, is over.
      await t.barrier();
      await win.lockAll();
      win.accumulate(Int32Array.of(1), t.next, 2, Op.SUM);
      await win.unlockAll();
      await t.barrier();
      await win.lock(rank, Lock.EXCLUSIVE);
      assert.equal(win.local[2], 1);
      await win.unlock(rank);
      await t.barrier();
    },
    { info },
  );
}

/**
 * Every rank takes some locks of two windows, in one order of all of them, and gives them back in any order: nobody
 * waits for ever, and what is counted up under all of them, in any order, is counted once.
 */
async function ordered(t: Trial, info: WindowInfo): Promise<void> {
  const { size, random } = t;
  const turns = 4;
  const others: WindowInfo = { lock: 'remote' };
  const counts = [0, 0].map(() => new Int32Array(size));
  await t.window(
    Int32Array,
    1,
    async (first) => {
      await t.window(
        Int32Array,
        1,
        async (second) => {
          const windows = [first, second] as Window<Int32Array>[];
          const places = windows.flatMap((win, w) => t.ranks.map((target) => ({ win, w, target })));
          const shuffled = <T>(list: readonly T[]): T[] =>
            list
              .map((item) => ({ item, key: random.below(1 << 20) }))
              .sort((a, b) => a.key - b.key)
              .map(({ item }) => item);
          for (let turn = 0; turn < turns; turn++) {
            const wanted = places.filter(() => random.chance(0.4));
            for (const { win, target } of wanted) {
              await win.lock(target, Lock.EXCLUSIVE);
              if (random.chance(0.2)) await t.comm.compute(random.below(20));
            }
            for (const { win, w, target } of shuffled(wanted)) {
              const found = new Int32Array(1);
              win.get(found, target, 0);
              await win.flush(target);
              win.put(Int32Array.of(found[0] + 1), target, 0);
              if (random.chance(0.5)) await win.flush(target);
              counts[w][target]++;
            }
            for (const { win, target } of shuffled(wanted)) await win.unlock(target);
          }
          const all = new Int32Array(2 * size);
          await t.comm.allreduce(Int32Array.from(counts.flatMap((of) => [...of])), all, Op.SUM);
          for (const [w, win] of windows.entries()) {
            await win.lock(t.rank, Lock.SHARED);
            assert.equal(win.local[0], all[w * size + t.rank], `increments in window ${w}`);
            await win.unlock(t.rank);
          }
          await t.barrier();
        },
        { info },
      );
    },
    { info: others },
  );
}

/**
 * Hands numbers on from rank to rank; whoever waits for one does so in its epoch, without a flush of its own or of the
 * one before it.
 */
async function notifications(t: Trial, info: WindowInfo): Promise<void> {
  await t.window(
    Int32Array,
    ROUNDS,
    async (win) => {
      const handOn = async (from: number): Promise<void> => {
        for (let i = from; i < ROUNDS; i += 2) {
          win.putNotify(Int32Array.of(100 * t.rank + i), t.next, i);
          await win.waitNotify();
          assert.equal(win.local[i], 100 * t.previous + i);
        }
      };
      await win.lockAll();
      await handOn(0);
      await win.unlockAll();
      await t.barrier();
      await win.lock(t.next, Lock.EXCLUSIVE);
      await handOn(1);
      await win.unlock(t.next);
    },
    { info },
  );
}

/** As `--scheme` names them: `direct`, `hybrid network threshold:2`. */
const nameOf = (info: WindowInfo): string =>
  Object.entries(info)
    .map(([key, value]) => (key === 'lock_defer' ? 'deferred' : value))
    .join(' ');

const requirementsOf = (
  list: readonly WindowInfo[],
  section: string,
  says: string,
  run: (t: Trial, info: WindowInfo) => Promise<void>,
): Requirement[] =>
  list.map((info) => ({
    section,
    says: `${nameOf(info)}: ${says}`,
    like: [],
    from: 2,
    run: (t: Trial) => run(t, info),
  }));

const nameOfBarrier = ({ barrier, barrierAlgorithm }: BarrierOptions): string => `${barrier} ${barrierAlgorithm}`;

export const schemeNames: readonly string[] = [
  ...[...FENCES, ...LOCKS, ...SCHEDULES, ...LAYOUTS].map(nameOf),
  ...BARRIERS.map(nameOfBarrier),
];

/** Whether a requirement is one of a scheme, or of one of its variants: `hybrid` is any hybrid one. */
export function isOfScheme({ says }: Requirement, scheme: string): boolean {
  return says.startsWith(`${scheme}: `) || says.startsWith(`${scheme} `);
}

let entries: Entries | undefined;

const barriers: readonly Requirement[] = BARRIERS.map((options) => ({
  section: 'barriers',
  says: `${nameOfBarrier(options)}: no rank leaves before all have entered, and none waits for ever`,
  like: [],
  from: 2,
  barriers: options,
  run: async (t) => {
    await t.barrier();
    if (t.rank === 0) entries = new Entries();
    await t.barrier();
    await enterMany(t.comm, t.random, t.shared, entries!);
  },
}));

/** By chapters, as those of the conformance suite. */
export const schemes: Readonly<Record<string, readonly Requirement[]>> = {
  barriers,
  fences: requirementsOf(FENCES, '12.5.1', 'what an epoch has put is there after its fence, and not before', fences),
  locks: [
    ...requirementsOf(
      LOCKS,
      '12.5.3',
      'a lock excludes as it says, gives what the last holder has left, and is had by all who wait',
      locks,
    ),
    ...requirementsOf(LOCKS, '12.5.3', 'ranks that take several locks in one order do not block each other', ordered),
    ...requirementsOf(LOCKS, 'beyond', 'a notified put does not wait for the end of its epoch', notifications),
  ],
  schedules: requirementsOf(
    SCHEDULES,
    '12.7',
    'what an epoch has put, fetched and added is right behind it, and only a flush orders it before',
    schedules,
  ),
  layouts: requirementsOf(
    LAYOUTS,
    '12.3',
    'what an epoch has put, fetched and added is right behind it, whatever the layouts on both sides',
    layouts,
  ),
};
