/** The list in which puts and gets of windows with a schedule wait (src/transfer/schedule). */
import { describe, expect, test } from 'vitest';
import { sideAt } from '../../src/datatype/layout.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { FOLDED_BYTES } from '../../src/transfer/schedule/aggregate.ts';
import {
  HELD_BYTES,
  HELD_OPERATIONS,
  HeldOperations,
  type Poster,
} from '../../src/transfer/schedule/held-operations.ts';
import { type ScheduleHint, scheduleOf } from '../../src/transfer/schedule/schedule-kinds.ts';

/**
 * A list, what has been posted from it: `p3` is a put to byte 3, `g3` a get; and what has failed. Byte 13 is refused.
 */
function listOf(hint: ScheduleHint) {
  const held = new HeldOperations(scheduleOf(hint));
  const posted: string[] = [];
  const note =
    (kind: string) =>
    (_origin: unknown, _from: unknown, at: number): void => {
      if (at === 13) throw new Error('the device has no room');
      posted.push(`${kind}${at}`);
    };
  const failures: Error[] = [];
  const failed = (error: unknown): void => void failures.push(error as Error);
  const poster: Poster = { put: note('p'), get: note('g'), failed, turn: 0 };
  const hold = (name: string, origin: Uint8Array = new Uint8Array(8), rank = 0): void => {
    const side = sideAt(TypeCode.BYTE, origin.length, undefined);
    const at = Number(name.slice(1));
    held.hold({ puts: name[0] === 'p', poster, rank, origin, from: side, at, to: side, turn: 0 });
  };
  return { held, posted, failures, hold };
}

describe('held operations are posted', () => {
  const ISSUED = ['p1', 'p2', 'g3', 'g4', 'p5', 'g6', 'p7', 'p8'];
  test.each<[ScheduleHint, string]>([
    ['gets-first', 'g3 g4 g6 p1 p2 p5 p7 p8'],
    ['interleave', 'p1 g3 p2 g4 p5 g6 p7 p8'],
    ['interleave,gets-first', 'g3 p1 g4 p2 g6 p5 p7 p8'],
    ['aggregate,gets-first', 'g3 g4 g6 p1 p2 p5 p7 p8'],
    ['gets-first,interleave,aggregate', 'g3 p1 g4 p2 g6 p5 p7 p8'],
  ])('in the order of %s', (hint, order) => {
    const { held, posted, hold } = listOf(hint);
    for (const name of ISSUED) hold(name);
    expect(posted).toEqual([]);
    held.post();
    expect(posted.join(' ')).toBe(order);
    expect(held.isEmpty).toBe(true);
  });

  test('when as many wait as may, before the next one waits', () => {
    const { held, posted, hold } = listOf('gets-first');
    for (let i = 0; i < HELD_OPERATIONS; i++) hold(i === HELD_OPERATIONS - 1 ? 'g999' : 'p1');
    expect(posted).toEqual([]);
    hold('p2');
    expect(posted.length).toBe(HELD_OPERATIONS);
    expect(posted[0]).toBe('g999');
    held.post();
    expect(posted.at(-1)).toBe('p2');
  });

  test('when as many bytes wait as may, also if one alone has more', () => {
    const { posted, hold } = listOf('gets-first');
    const half = new Uint8Array(HELD_BYTES / 2);
    hold('p1', half);
    hold('p2', half);
    expect(posted).toEqual([]);
    hold('g3', new Uint8Array(1));
    expect(posted).toEqual(['p1', 'p2']);
    hold('p4', new Uint8Array(HELD_BYTES + 1));
    expect(posted).toEqual(['p1', 'p2', 'g3']);
    hold('p5');
    expect(posted).toEqual(['p1', 'p2', 'g3', 'p4']);
  });

  test('each of those that can be; why one cannot, its target’s path is told once', () => {
    const { held, posted, failures, hold } = listOf('gets-first');
    const lost = new Uint8Array(8);
    hold('p1', lost);
    hold('g2');
    structuredClone(lost.buffer, { transfer: [lost.buffer] });
    held.post();
    expect(posted).toEqual(['g2']);
    expect(failures.map(({ message }) => message)).toEqual([
      expect.stringContaining('the origin of a put to rank 0 was lost'),
    ]);
    held.post();
    hold('g13');
    hold('p4');
    held.post();
    expect(failures.map(({ message }) => message).slice(1)).toEqual(['the device has no room']);
    expect(posted).toEqual(['g2', 'p4']);
  });

  test('which has shrunk below what a layout says of it, is lost too', () => {
    const { held, posted, failures, hold } = listOf('interleave');
    const buffer: ArrayBuffer & { resize(bytes: number): void } = Reflect.construct(ArrayBuffer, [
      16,
      { maxByteLength: 16 },
    ]);
    hold('g1', new Uint8Array(buffer, 0, 16));
    hold('p2', new Uint8Array(buffer, 0, 4));
    buffer.resize(8);
    held.post();
    expect(failures).toMatchObject([{ code: 'ERR_BUFFER' }]);
    expect(posted).toEqual(['p2']);
  });

  test('so that a call which holds another one does not throw for those before it', () => {
    const { held, posted, failures, hold } = listOf('gets-first');
    hold('p13');
    for (let i = 1; i < HELD_OPERATIONS; i++) hold('p1');
    hold('p2');
    expect(posted.length).toBe(HELD_OPERATIONS - 1);
    expect(failures).toMatchObject([{ message: 'the device has no room' }]);
    held.post();
    expect(posted.at(-1)).toBe('p2');
  });

  test('and who waits for them is told then', () => {
    const { held, posted, hold } = listOf('gets-first');
    const told: string[][] = [];
    const follow = (): void => held.whenPosted(() => told.push([...posted]));
    follow();
    expect(told).toEqual([[]]);
    hold('p1');
    follow();
    hold('g2');
    expect(told.length).toBe(1);
    held.post();
    expect(told[1]).toEqual(['g2', 'p1']);
  });
});

describe('with aggregate alone', () => {
  test('only what can be folded waits: one small put to a rank', () => {
    const { held, posted, hold } = listOf('aggregate');
    hold('p1');
    hold('p2', new Uint8Array(FOLDED_BYTES), 1);
    hold('p3', new Uint8Array(FOLDED_BYTES + 1), 2);
    hold('g6', new Uint8Array(1), 4);
    expect(posted).toEqual(['p3', 'g6']);
    hold('g4');
    expect(posted).toEqual(['p3', 'g6', 'p1', 'g4']);
    hold('p5', new Uint8Array(1), 3);
    expect(held.postAllBut(({ rank }) => rank === 1)).toMatchObject([{ puts: true, at: 2, rank: 1 }]);
    expect(posted).toEqual(['p3', 'g6', 'p1', 'g4', 'p5']);
    expect(held.isEmpty).toBe(true);
  });

  test.each<[ScheduleHint, string]>([
    ['aggregate-gets', 'g1'],
    ['aggregate,aggregate-gets', 'p0 g1'],
  ])('%s: which kinds wait', (hint, waits) => {
    const { held, posted, hold } = listOf(hint);
    hold('p0');
    hold('g1', new Uint8Array(FOLDED_BYTES), 1);
    hold('g2', new Uint8Array(FOLDED_BYTES + 1), 2);
    const taken = held.postAllBut(() => true).map(({ puts, at }) => `${puts ? 'p' : 'g'}${at}`);
    expect(taken.join(' ')).toBe(waits);
    expect(posted).toEqual(['p0', 'g2'].filter((name) => !taken.includes(name)));
  });

  test('what is to travel with a message does so, though another one is refused', () => {
    const { held, posted, failures, hold } = listOf('aggregate');
    hold('p13');
    hold('p1', new Uint8Array(8), 1);
    expect(held.postAllBut(({ rank }) => rank === 1)).toMatchObject([{ at: 1 }]);
    expect(failures).toMatchObject([{ message: 'the device has no room' }]);
    expect(posted).toEqual([]);
    expect(held.isEmpty).toBe(true);
  });
});
