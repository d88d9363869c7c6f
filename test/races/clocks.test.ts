/** Files of ranks whose clocks differ: how the difference is taken out, and what is put in order all the same. */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EventRoom } from '../../src/races/logs/event-room.ts';
import { correction, writeClock } from '../../src/races/logs/host-clock.ts';
import { logFile } from '../../src/races/logs/race-log-format.ts';
import { analyzeLogs } from '../../src/races/logs/race-log-reader.ts';
import { Meeting, OpKind, RaceEvent } from '../../src/races/race-events.ts';
import { temporaryFolder } from '../support/folders.ts';

const folder = temporaryFolder('race-clocks');

describe('the difference of two clocks', () => {
  test('is none where it is not known', () => {
    expect(correction([])(7)).toBe(7);
  });

  test('changes evenly between two comparisons, and outside of them', () => {
    // It gains 1 in 100.
    const set = correction([
      { at: 10_100, ahead: 10_000, within: 1 },
      { at: 11_110, ahead: 10_010, within: 1 },
    ]);
    expect([10_100, 11_110, 10_605, 12_120, 9_090].map((time) => Math.round(set(time)))).toEqual([
      100, 1100, 600, 2100, -900,
    ]);
  });
});

/** What a rank of two tells, at which time: a window of 64 bytes at each, in memory 100 + rank. */
class Log {
  readonly #room = new EventRoom(() => {});
  readonly #texts = new Map<string, number>();
  readonly #rank: number;

  constructor(rank: number) {
    this.#rank = rank;
    this.tell(0, RaceEvent.COMMUNICATOR, [this.text('0'), this.text('world'), 0, 1]);
    this.tell(1, RaceEvent.WINDOW, [this.text('win'), this.text('w'), this.text('0'), 100 + rank, 0, 64, 0]);
  }

  text(text: string): number {
    const id = this.#texts.get(text) ?? this.#texts.size + 1;
    if (!this.#texts.has(text)) this.#room.text(id, text);
    this.#texts.set(text, id);
    return id;
  }

  tell(time: number, kind: number, numbers: readonly number[]): this {
    this.#room.event(kind, Float64Array.from(numbers), numbers.length, time);
    return this;
  }

  /** Of the window. */
  say(time: number, kind: number, ...numbers: readonly number[]): this {
    return this.tell(time, kind, [this.text('win'), ...numbers]);
  }

  puts(time: number, target: number): this {
    const line = [this.text(`put of ${this.#rank}`), this.text('put'), 0];
    return this.say(time, RaceEvent.OPERATION, target, OpKind.PUT, 0, 4, 4, time, ...line, -1, 0, 4);
  }

  flushes(time: number, target: number): this {
    return this.say(time, RaceEvent.COMPLETED, target, 0, Number.POSITIVE_INFINITY, 1);
  }

  loads(time: number): this {
    const line = [this.text(`load of ${this.#rank}`), this.text('load'), -1];
    return this.tell(time, RaceEvent.ACCESS, [100 + this.#rank, 0, 4, 0, ...line]);
  }

  write(): void {
    writeFileSync(logFile(folder, this.#rank), this.#room.bytes);
  }
}

/** By these files, and clocks that are thought to be set. */
function found(logs: readonly Log[]): { readonly races: number; readonly late: number } {
  for (const log of logs) log.write();
  writeClock(folder, 1, [{ at: 0, ahead: 0, within: 5000 }]);
  const { races, clocks } = analyzeLogs(folder, 2, {}, [0, 1]);
  expect(clocks).toMatchObject({ hosts: 2, within: 5 });
  return { races: races.length, late: clocks!.late };
}

describe('what comes too early by its clock', () => {
  const logs = (): [Log, Log] => [new Log(0), new Log(1)];

  test('is put behind what it takes: a message', () => {
    const [from, to] = logs();
    from
      .puts(100, 1)
      .flushes(110, 1)
      .tell(120, RaceEvent.SENT, [from.text('message'), 1]);
    to.tell(50, RaceEvent.RECEIVED, [to.text('message'), 0]).loads(60);
    expect(found([from, to])).toEqual({ races: 0, late: 1 });
  });

  test('a barrier', () => {
    const [from, to] = logs();
    for (const [rank, log, time] of [[0, from, 110] as const, [1, to, 40] as const]) {
      if (rank === 0) log.puts(100, 1).flushes(105, 1);
      log.tell(time, RaceEvent.ARRIVED, [log.text('barrier'), 1, 2, Meeting.ALL, 0, rank]);
      log.tell(time + 10, RaceEvent.LEFT, [log.text('barrier'), 1, rank]);
      if (rank === 1) log.loads(time + 20);
    }
    expect(found([from, to])).toEqual({ races: 0, late: 1 });
  });

  test('post and start, complete and wait', () => {
    const [origin, target] = logs();
    target.loads(100).say(110, RaceEvent.POSTED, 0);
    origin.say(20, RaceEvent.STARTED, 1).puts(30, 1);
    origin.say(40, RaceEvent.COMPLETE_BEGUN).say(50, RaceEvent.TOLD, 1);
    target.say(120, RaceEvent.WAITED, 0).loads(130);
    expect(found([origin, target])).toEqual({ races: 0, late: 1 });
  });

  test('complete and wait', () => {
    const [origin, target] = logs();
    target.say(10, RaceEvent.POSTED, 0);
    origin.say(20, RaceEvent.STARTED, 1).puts(100, 1);
    origin.say(110, RaceEvent.COMPLETE_BEGUN).say(120, RaceEvent.TOLD, 1);
    target.say(50, RaceEvent.WAITED, 0).loads(60);
    expect(found([origin, target])).toEqual({ races: 0, late: 1 });
  });

  test('a notification', () => {
    const [from, to] = logs();
    from.puts(100, 1).say(110, RaceEvent.NOTIFIED, 1);
    to.say(50, RaceEvent.TOOK).loads(60);
    expect(found([from, to])).toEqual({ races: 0, late: 1 });
  });

  test('a lock that another rank has', () => {
    const [first, second] = logs();
    first.say(40, RaceEvent.LOCKED, 1, 1).puts(100, 1).flushes(110, 1).say(120, RaceEvent.UNLOCKED, 1, 1);
    second.say(50, RaceEvent.LOCKED, 1, 1).loads(60).say(70, RaceEvent.UNLOCKED, 1, 1);
    expect(found([first, second])).toEqual({ races: 0, late: 1 });
  });

  test('a race is found all the same', () => {
    const [from, to] = logs();
    from
      .puts(100, 1)
      .tell(120, RaceEvent.SENT, [from.text('message'), 1])
      .flushes(130, 1);
    to.tell(50, RaceEvent.RECEIVED, [to.text('message'), 0]).loads(60);
    expect(found([from, to])).toEqual({ races: 1, late: 1 });
  });
});
