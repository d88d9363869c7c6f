/** Epochs and arrays that requirements of communication calls have in common. */
import assert from 'node:assert/strict';
import { Assert, type Datatype, Op, type TypedArray, type TypedArrayConstructor, type Window } from 'onesided';
import { iota, type Trial } from './requirement.ts';

/** Numbers that every element type has. */
export type Numbers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

export interface NumberType extends TypedArrayConstructor<Numbers> {
  of(...values: number[]): Numbers;
}

export const INTEGER_TYPES = [Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array] as NumberType[];

export const NUMBER_TYPES = [...INTEGER_TYPES, Float32Array, Float64Array] as NumberType[];

/** One fence epoch. */
export async function fenced<T extends TypedArray>(win: Window<T>, issue: () => unknown): Promise<void> {
  await win.fence(Assert.NO_PRECEDE);
  await issue();
  await win.fence(Assert.NO_SUCCEED);
}

/** One lockAll epoch, after which all ranks have ended theirs. */
export async function lockedAll<T extends TypedArray>(t: Trial, win: Window<T>, issue: () => unknown): Promise<void> {
  await win.lockAll();
  await issue();
  await win.unlockAll();
  await t.barrier();
}

/**
 * Everybody puts, everybody looks: the origin's elements with these numbers lie at these places of the target, in
 * order.
 */
export async function puts(
  t: Trial,
  origin: { type: Datatype; count: number } | undefined,
  target: { type: Datatype; count: number } | undefined,
  taken: readonly number[],
  placed: readonly number[],
): Promise<void> {
  const layout = { ...(origin && { origin }), ...(target && { target }) };
  await t.window(Int32Array, 40, async (win) => {
    const source = Int32Array.from(iota(origin === undefined ? taken.length : 40, 100 * t.rank));
    await fenced(win, () => win.put(source, t.next, 0, layout));
    const expected = new Int32Array(40);
    for (const [i, place] of placed.entries()) expected[place] = 100 * t.previous + taken[i];
    assert.deepEqual([...win.local], [...expected]);
    // And back: the same elements, at the places they came from.
    const back = new Int32Array(source.length).fill(-1);
    await fenced(win, () => win.get(back, t.next, 0, layout));
    const found = new Int32Array(source.length).fill(-1);
    for (const i of taken) found[i] = 100 * t.rank + i;
    assert.deepEqual([...back], [...found]);
  });
}

/** What each operation makes of the target's 6 and the origin's 3. */
export const RESULTS: Record<string, number> = {
  SUM: 9,
  PROD: 18,
  MIN: 3,
  MAX: 6,
  LAND: 1,
  LOR: 1,
  LXOR: 0,
  BAND: 2,
  BOR: 7,
  BXOR: 5,
  REPLACE: 3,
  NO_OP: 6,
};

/** One that is defined on the elements of whoever asks. */
export const operation = (name: string): typeof Op.SUM => Op[name as 'SUM'];

/**
 * What all ranks have fetched from three elements, to which they have added 1, 10 and 2: each element has been seen in
 * each of its states once. Elements are atomic, calls are not, so the three need not fit together.
 */
export async function eachStateOnce(t: Trial, fetched: readonly Numbers[]): Promise<void> {
  const all = new Float64Array(t.size * fetched.length * 3);
  await t.comm.allgather(Float64Array.from(fetched.flatMap((values) => [...values])), all);
  for (const [place, step] of [1, 10, 2].entries()) {
    assert.deepEqual(
      [...all].filter((_, i) => i % 3 === place).sort((a, b) => a - b),
      iota(t.size * fetched.length).map((i) => i * step),
    );
  }
}
