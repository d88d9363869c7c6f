/** The analysis of races, on small stories whose outcome is worked out by hand. */
import { describe, expect, test } from 'vitest';
import { Meeting, RaceEvent } from '../../src/races/race-events.ts';
import { SHORT, Told } from './teller.ts';

test('a rank that came to a collective which it was refused comes again by another one', () => {
  const told = new Told(3);
  const [root, other, third] = told.ranks;
  other.put(0, 0, 'A');
  other.flushes(0);
  // Refused: it had no such root. The next call gets its number.
  other.meets('collective', 1, Meeting.FROM_ROOT, 7);
  other.meets('collective', 1, Meeting.TO_ROOT, 0);
  root.meets('collective', 1, Meeting.TO_ROOT, 0);
  third.meets('collective', 1, Meeting.TO_ROOT, 0);
  for (const rank of told.ranks) rank.parts('collective', 1);
  root.loads(0, 'B');
  expect(told.lines).toEqual([]);
  third.put(0, 0, 'C');
  expect(told.lines).toEqual(['A-C', 'B-C']);
});

describe('what meets', () => {
  test('two puts of different ranks to the same bytes race, and to other bytes do not', () => {
    const told = new Told(3);
    told.ranks[0].put(1, 0, 'A');
    told.ranks[2].put(1, 4, 'B');
    expect(told.lines).toEqual([]);
    told.ranks[2].put(1, 2, 'C');
    expect(told.lines).toEqual(['A-C', 'B-C']);
  });

  test('two gets do not race, nor a get and a load', () => {
    const told = new Told(3);
    told.ranks[0].get(1, 0, 'A');
    told.ranks[2].get(1, 0, 'B');
    told.ranks[1].loads(0, 'C');
    expect(told.lines).toEqual([]);
    told.ranks[1].stores(0, 'D');
    expect(told.lines).toEqual(['A-D', 'B-D']);
  });

  test('updates of one type meet, those of two types do not, nor an update and a put', () => {
    const told = new Told(3);
    told.ranks[0].accumulate(1, 0, 'A');
    told.ranks[2].accumulate(1, 0, 'B');
    expect(told.lines).toEqual([]);
    told.ranks[2].accumulate(1, 0, 'C', SHORT);
    expect(told.lines).toEqual(['A-C', 'B-C']);
    told.ranks[0].put(1, 2, 'D');
    expect(told.lines.slice(2).sort()).toEqual(['A-D', 'B-D', 'C-D']);
  });

  test('updates of one type that overlap in half an element race', () => {
    const told = new Told(3);
    told.ranks[0].accumulate(1, 0, 'A', { bytes: 8 });
    told.ranks[2].accumulate(1, 2, 'B');
    expect(told.lines).toEqual(['A-B']);
  });

  test('two updates in epochs that no fence opens are not told to be mended by one', () => {
    const mendIn = (kind: string): string => {
      const told = new Told(3);
      for (const [place, rank] of [0, 2].map((one) => told.ranks[one]).entries()) {
        rank.opens(kind);
        rank.accumulate(1, 0, `${place}`, place === 0 ? {} : SHORT);
      }
      return told.report.races[0].mend;
    };
    const one = 'one element type and whole elements';
    expect(mendIn('lockAll')).toBe(`${one}, or a flush and a barrier between the two lines`);
    expect(mendIn('fence')).toBe(`${one}, or a fence between the two lines`);
  });

  test('a race is told once for each pair of lines, and counted', () => {
    const told = new Told(2);
    for (let i = 0; i < 5; i++) {
      told.ranks[0].put(1, 4 * i, 'A');
      told.ranks[1].loads(4 * i, 'B');
    }
    expect(told.report.races).toHaveLength(1);
    expect(told.report.races[0].count).toBe(5);
  });

  test('bytes are told as those of the part', () => {
    const told = new Told(2);
    told.ranks[0].put(1, 8, 'A', { bytes: 12 });
    told.ranks[1].loads(12, 'B');
    expect(told.report.races[0].where).toEqual({ window: 'w', rank: 1, bytes: [12, 15] });
  });
});

describe('operations that meet on an element', () => {
  const SUM = 2;
  const MAX = 5;

  test('two that are not alike may not, if MPI is taken by its letter', () => {
    for (const strict of [false, true]) {
      const told = new Told(3, { strict });
      const [zero, , two] = told.ranks;
      zero.accumulate(1, 0, 'A', { op: SUM });
      two.accumulate(1, 0, 'B', { op: MAX });
      expect(told.lines).toEqual(strict ? ['A-B'] : []);
    }
  });

  test('one and the same may, and what meets all', () => {
    const told = new Told(3, { strict: true });
    const [zero, , two] = told.ranks;
    zero.accumulate(1, 0, 'A', { op: SUM });
    two.accumulate(1, 0, 'B', { op: SUM });
    two.fetch(1, 0, 'C', { reads: true });
    expect(told.lines).toEqual([]);
    // What B and C have left does not hide it.
    two.accumulate(1, 0, 'D', { op: MAX });
    expect(told.lines).toEqual(['A-D']);
  });
});

describe('updates that are under way', () => {
  test('the last one of a rank stands for those before it', () => {
    const told = new Told(3);
    const [zero, one, two] = told.ranks;
    for (const site of ['A', 'B', 'C']) {
      zero.accumulate(1, 0, site);
      // Now time goes on, and the next one is another record.
      zero.sends(2);
    }
    two.put(1, 0, 'D');
    expect(told.lines).toEqual(['C-D']);
    zero.flushes(1);
    zero.sends(1);
    one.receives(0);
    one.loads(0, 'E');
    expect(told.lines).toEqual(['C-D', 'D-E']);
  });

  test('but not for one that its own request completes, nor for one at another place', () => {
    const told = new Told(3);
    const [zero, , two] = told.ranks;
    zero.accumulate(1, 0, 'A', { call: 'raccumulate' });
    zero.sends(2);
    zero.accumulate(1, 4, 'B');
    zero.sends(2);
    zero.accumulate(1, 0, 'C');
    two.put(1, 0, 'D', { bytes: 8 });
    expect(told.lines).toEqual(['A-D', 'C-D', 'B-D']);
  });
});

describe('strands', () => {
  test('an operation is under way until it is completed: messages and barriers alone do not order it', () => {
    const told = new Told(3);
    told.ranks[0].put(1, 0, 'A');
    told.barrier();
    told.ranks[2].get(1, 0, 'B');
    expect(told.lines).toEqual(['A-B']);
    expect(told.report.races[0].mend).toContain('flush(1)');
  });

  test('a flush and then a message order it', () => {
    const told = new Told(3);
    told.ranks[0].put(1, 0, 'A');
    told.ranks[0].flushes(1);
    told.ranks[0].sends(2);
    told.ranks[2].receives(0);
    told.ranks[2].get(1, 0, 'B');
    expect(told.lines).toEqual([]);
    told.ranks[1].loads(0, 'C');
    expect(told.lines).toEqual(['A-C']);
  });

  test('a message before the flush orders nothing', () => {
    const told = new Told(2);
    told.ranks[0].put(1, 0, 'A');
    told.ranks[0].sends(1);
    told.ranks[0].flushes(1);
    told.ranks[1].receives(0);
    told.ranks[1].loads(0, 'B');
    expect(told.lines).toEqual(['A-B']);
  });

  test('flushLocal completes the origin, and what was read, but no put', () => {
    const told = new Told(2);
    const [zero] = told.ranks;
    zero.put(1, 0, 'A');
    zero.uses('origin', 0, false);
    zero.flushesLocally(1);
    zero.stores(0, 'B', 200);
    expect(told.lines).toEqual([]);
    zero.get(1, 0, 'C');
    expect(told.lines).toEqual(['A-C']);
  });

  test('an origin that is stored to, and a result that is loaded, before it is complete', () => {
    const told = new Told(2);
    const [zero] = told.ranks;
    zero.put(1, 0, 'A');
    zero.uses('origin', 0, false);
    zero.loads(0, 'B', 200);
    expect(told.lines).toEqual([]);
    zero.stores(0, 'C', 200);
    expect(told.lines).toEqual(['A-C']);
    zero.get(1, 8, 'D');
    zero.uses('origin', 8, true);
    zero.loads(8, 'E', 200);
    expect(told.lines).toEqual(['A-C', 'D-E']);
    zero.flushes(1);
    zero.loads(8, 'F', 200);
    expect(told.report.races).toHaveLength(2);
  });

  test('two operations of one line that nothing completes race with each other', () => {
    const told = new Told(2);
    told.ranks[0].put(1, 0, 'A');
    told.ranks[0].put(1, 0, 'A');
    expect(told.lines).toEqual(['A-A']);
  });

  test('a request completes its own operation only', () => {
    const told = new Told(2);
    const [zero] = told.ranks;
    zero.put(1, 0, 'A', { call: 'rput' });
    zero.uses('origin', 0, false);
    zero.put(1, 8, 'A', { call: 'rput' });
    zero.uses('origin', 8, false);
    zero.waitsFor(1, 1);
    zero.stores(0, 'B', 200);
    expect(told.lines).toEqual([]);
    zero.stores(8, 'C', 200);
    expect(told.lines).toEqual(['A-C']);
  });
});

describe('edges', () => {
  test('a fence completes and orders', () => {
    const told = new Told(3);
    told.ranks[0].put(1, 0, 'A');
    told.fence();
    told.ranks[2].put(1, 0, 'B');
    told.fence();
    told.ranks[1].loads(0, 'C');
    expect(told.lines).toEqual([]);
  });

  test('what a rank does between the call of a fence and its end is not ordered by it', () => {
    const told = new Told(2);
    const [zero, one] = told.ranks;
    zero.tellOf(RaceEvent.FENCE_BEGUN);
    zero.stores(0, 'A');
    one.tellOf(RaceEvent.FENCE_BEGUN);
    one.tellOf(RaceEvent.FENCE_ENDED);
    one.get(0, 0, 'B');
    expect(told.lines).toEqual(['A-B']);
  });

  test('an operation comes behind the fence of its target, though its rank left that fence before', () => {
    const told = new Told(2);
    const [zero, one] = told.ranks;
    one.tellOf(RaceEvent.FENCE_BEGUN);
    one.tellOf(RaceEvent.FENCE_ENDED);
    one.opens('fence');
    one.put(0, 0, 'A');
    zero.stores(0, 'B');
    zero.tellOf(RaceEvent.FENCE_BEGUN);
    expect(told.lines).toEqual([]);
    zero.stores(0, 'C');
    expect(told.lines).toEqual(['A-C']);
  });

  test('an exclusive lock orders those who have it one after the other', () => {
    const told = new Told(3);
    const [zero, , two] = told.ranks;
    zero.locks(1, true);
    zero.put(1, 0, 'A');
    zero.unlocks(1, true);
    two.locks(1, true);
    two.put(1, 0, 'B');
    two.unlocks(1, true);
    expect(told.lines).toEqual([]);
    told.ranks[1].loads(0, 'C');
    expect(told.lines).toEqual(['B-C']);
  });

  test('shared locks order nothing among each other, but behind and before an exclusive one', () => {
    const told = new Told(3);
    const [zero, one, two] = told.ranks;
    zero.locks(1, false);
    zero.put(1, 0, 'A');
    zero.unlocks(1, false);
    two.locks(1, false);
    two.put(1, 0, 'B');
    two.unlocks(1, false);
    expect(told.lines).toEqual(['A-B']);
    one.locks(1, true);
    one.stores(0, 'C');
    one.unlocks(1, true);
    expect(told.lines).toEqual(['A-B']);
  });

  test('complete tells the target alone', () => {
    const told = new Told(3);
    const [zero, one, two] = told.ranks;
    one.tellOf(RaceEvent.POSTED, 0);
    zero.tellOf(RaceEvent.STARTED, 1);
    zero.put(1, 0, 'A');
    zero.uses('origin', 0, false);
    zero.tellOf(RaceEvent.COMPLETE_BEGUN);
    zero.tellOf(RaceEvent.TOLD, 1);
    zero.stores(0, 'B', 200);
    zero.sends(2);
    two.receives(0);
    two.get(1, 0, 'C');
    expect(told.lines).toEqual(['A-C']);
    two.flushes(1);
    two.sends(1);
    one.receives(2);
    one.tellOf(RaceEvent.WAITED, 0);
    one.stores(0, 'D');
    expect(told.lines).toEqual(['A-C']);
  });

  test('a notification completes for its target what its rank has put there', () => {
    const told = new Told(2);
    const [zero, one] = told.ranks;
    zero.put(1, 0, 'A');
    zero.put(1, 4, 'B');
    zero.tellOf(RaceEvent.NOTIFIED, 1);
    zero.put(1, 8, 'C');
    one.tellOf(RaceEvent.TOOK);
    one.loads(0, 'D');
    one.loads(4, 'E');
    expect(told.lines).toEqual([]);
    one.loads(8, 'F');
    expect(told.lines).toEqual(['C-F']);
  });

  test('a broadcast tells all of the root, and the root of nobody', () => {
    const told = new Told(3);
    for (const rank of told.ranks) rank.stores(0, 'A');
    for (const rank of told.ranks) rank.meets('world', 1, Meeting.FROM_ROOT, 1);
    for (const rank of told.ranks) rank.parts('world', 1);
    told.ranks[0].get(1, 0, 'B');
    expect(told.lines).toEqual([]);
    told.ranks[1].get(0, 0, 'C');
    expect(told.lines).toEqual(['A-C']);
  });

  test('a word that is polled by fetches orders, unless that is forbidden', () => {
    for (const strict of [false, true]) {
      const told = new Told(3, { strict });
      const [zero, , two] = told.ranks;
      zero.put(1, 0, 'A');
      zero.flushes(1);
      zero.accumulate(1, 32, 'B');
      zero.flushes(1);
      two.fetch(1, 32, 'C', { reads: true });
      two.flushes(1);
      two.get(1, 0, 'D');
      expect(told.lines).toEqual(strict ? ['A-D'] : []);
    }
  });

  test('a fetch of another word brings nothing', () => {
    const told = new Told(3);
    const [zero, , two] = told.ranks;
    zero.put(1, 0, 'A');
    zero.flushes(1);
    zero.accumulate(1, 32, 'B');
    two.fetch(1, 36, 'C', { reads: true });
    two.flushes(1);
    two.get(1, 0, 'D');
    expect(told.lines).toEqual(['A-D']);
  });

  test('an owner that looks by Atomics knows of what has changed the word, and of what came before', () => {
    const told = new Told(2);
    const [zero, one] = told.ranks;
    zero.put(1, 0, 'A');
    zero.flushes(1);
    zero.accumulate(1, 32, 'B');
    one.looks(32, 'C');
    one.loads(32, 'D');
    one.loads(0, 'E');
    expect(told.lines).toEqual([]);
  });
});

test('memory is bounded: what was forgotten is said, and nobody is accused', () => {
  const told = new Told(2, { memory: 1 });
  const [zero, one] = told.ranks;
  one.tell(RaceEvent.WINDOW, [one.text('big'), one.text('big'), one.text('0'), 300, 0, 2 ** 20, 0]);
  for (let i = 0; i < 20_000; i++) one.stores(8 * i, 'A', 300);
  expect(told.report.forgotten).toBeGreaterThan(0);
  expect(told.lines).toEqual([]);
  zero.stores(0, 'B');
});

test('what nobody can race with any more is swept out', () => {
  const told = new Told(2);
  const [, one] = told.ranks;
  one.tell(RaceEvent.WINDOW, [one.text('big'), one.text('big'), one.text('0'), 300, 0, 2 ** 24, 0]);
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 60_000; i++) one.stores(16 * i + 8 * (round % 2), `A${round}`, 300);
    told.barrier();
  }
  expect(told.report.forgotten).toBe(0);
});

describe('how much is kept', () => {
  const boundOf = (bytes: number, memory?: number): number => {
    const told = new Told(2, memory === undefined ? {} : { memory });
    const [, one] = told.ranks;
    one.tell(RaceEvent.WINDOW, [one.text('big'), one.text('big'), one.text('0'), 300, 0, bytes, 0]);
    expect(told.report.shadow.windows).toBe(bytes + 128);
    return told.report.shadow.bound;
  };

  test('six times the windows, but not less than 64 MiB nor more than 1 GiB, or what is asked for', () => {
    expect(boundOf(1)).toBe(2 ** 26);
    expect(boundOf(2 ** 25)).toBe(6 * (2 ** 25 + 128));
    expect(boundOf(2 ** 32)).toBe(2 ** 30);
    expect(boundOf(2 ** 32, 2 ** 21)).toBe(2 ** 21);
  });

  test('words beyond it are taken for one, which is said, and accuses nobody', () => {
    const told = new Told(3, { memory: 2 ** 22 });
    const [zero, one, two] = told.ranks;
    one.tell(RaceEvent.WINDOW, [one.text('big'), one.text('big'), one.text('0'), 300, 0, 2 ** 20, 0]);
    const flag = (at: number): readonly number[] => [300, at, at + 4];
    const changes = (rank: typeof zero, at: number): void =>
      rank.tell(RaceEvent.ATOMIC, [...flag(at), 1, rank.text('F'), rank.text('Atomics.store()'), 4]);
    const looks = (rank: typeof zero, at: number): void =>
      rank.tell(RaceEvent.ATOMIC, [...flag(at), 0, rank.text('L'), rank.text('Atomics.load()'), 4]);
    zero.put(1, 0, 'A');
    zero.flushes(1);
    changes(zero, 0);
    for (let i = 1; i < 20_000; i++) changes(one, 8 * i);
    expect(told.report.shadow.words).toBeGreaterThan(1000);
    expect(told.report.shadow.bytes).toBeLessThanOrEqual(2 ** 22);
    looks(two, 0);
    two.put(1, 0, 'B');
    expect(told.lines).toEqual([]);
    // Who has looked at no word has heard of nobody.
    const other = new Told(3);
    other.ranks[0].put(1, 0, 'A');
    other.ranks[0].flushes(1);
    other.ranks[2].put(1, 0, 'B');
    expect(other.lines).toEqual(['A-B']);
  });

  test('words of a window that is freed are forgotten', () => {
    const told = new Told(2);
    const [zero, one] = told.ranks;
    for (let round = 0; round < 3; round++) {
      const key = one.text(`win ${round}`);
      one.tell(RaceEvent.WINDOW, [key, one.text('w'), one.text('0'), 300 + round, 0, 2 ** 20, 0]);
      for (let i = 0; i < 100; i++)
        one.tell(RaceEvent.ATOMIC, [300 + round, 8 * i, 8 * i + 4, 1, one.text('F'), one.text('store'), 4]);
      one.tell(RaceEvent.FREED, [key]);
    }
    zero.loads(0, 'A');
    // A hundred words with their clocks, a hundred stretches with their records; three rounds of words take more.
    expect(told.report.shadow.bytes).toBeLessThan(100 * 700);
  });
});
