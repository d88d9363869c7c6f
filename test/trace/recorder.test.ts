/** The ring that a rank records into, the clock, and what is made of the records of all ranks. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordSignals } from '../../src/collective/traced-calls.ts';
import { barrierWords, makeBarrier } from '../../src/collective/word-barrier.ts';
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { writeTrace } from '../../src/trace/chrome-trace.ts';
import { monotonicClock } from '../../src/trace/clock.ts';
import { type Recorder, recordInMemory } from '../../src/trace/recorder.ts';
import type { Span } from '../../src/trace/span.ts';
import { timelineOf } from '../../src/trace/timeline.ts';
import {
  defaultEvents,
  FIELDS,
  Field,
  Kind,
  MAX_EVENTS,
  MIN_EVENTS,
  type Recording,
  RingWriter,
  readRing,
  ringBytes,
} from '../../src/trace/trace-ring.ts';
import { temporaryFolder } from '../support/folders.ts';
import { checkTrace } from './events.ts';

/** A ring of its own, and a look at it. */
function makeRing(rank: number, events: number): { memory: Uint8Array; look(): Recording } {
  const memory = new Uint8Array(ringBytes(events));
  return { memory, look: () => readRing(rank, memory.length, (bytes) => memory.slice(0, bytes)) };
}

/** Ranks in virtual time: a clock that all of them share, and that a test moves on. */
function makeRanks(
  size: number,
  events = 1024,
): { ranks: Recorder[]; at(time: number): void; recordings(): Recording[] } {
  let now = 0;
  const all = Array.from({ length: size }, (_, rank) => recordInMemory(rank, () => now, events));
  return {
    ranks: all.map(({ recorder }) => recorder),
    at: (time) => {
      now = time;
    },
    recordings: () => all.map(({ recording }) => recording()),
  };
}

const valuesOf = ({ records, count }: Recording): number[] =>
  Array.from({ length: count }, (_, i) => records[FIELDS * i + Field.VALUE]);

describe('a ring', () => {
  it('gives back what was written last, in order, and counts what is gone', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 64, max: 128 }), (written, events) => {
        const { memory, look } = makeRing(3, events);
        const ring = new RingWriter(memory.buffer, 0, events);
        for (let i = 0; i < written; i++) ring.write(10 * i, Kind.CALL, 0, 0, -1, 0, 0, i);
        const recording = look();
        const values = valuesOf(recording);
        const room = 2 ** Math.ceil(Math.log2(events));
        // The oldest of a full ring may be the place of the next one.
        expect(values.length).toBe(Math.min(written, room - (written >= room ? 1 : 0)));
        expect(values).toEqual(Array.from({ length: values.length }, (_, i) => written - values.length + i));
        expect(recording).toMatchObject({ rank: 3, dropped: written - values.length, textsLost: 0 });
      }),
    );
  });

  it('that is read while its rank records gives no record that may have been overwritten meanwhile', () => {
    const events = 64;
    for (const more of [1, 5, 63, 64, 1000]) {
      const memory = new Uint8Array(ringBytes(events));
      const ring = new RingWriter(memory.buffer, 0, events);
      let next = 0;
      const write = (count: number): void => {
        for (let i = 0; i < count; i++, next++) ring.write(next, Kind.CALL, 0, 0, -1, 0, 0, next);
      };
      write(100);
      const seen = valuesOf(
        readRing(0, memory.length, (bytes) => {
          // What the header says first is older than the records that are copied after it.
          const copy = memory.slice(0, bytes);
          if (next > 100) return copy;
          const header = copy.slice(0, 64);
          write(more);
          const late = memory.slice(0, bytes);
          late.set(header);
          return late;
        }),
      );
      expect(seen).toEqual(Array.from({ length: Math.max(0, 63 - more) }, (_, i) => 37 + more + i));
    }
  });

  it('of a rank that never came is empty', () => {
    expect(makeRing(1, 64).look()).toMatchObject({ rank: 1, count: 0, dropped: 0 });
  });

  it('has each text once, and counts those that found no room', () => {
    const { memory, look } = makeRing(0, 64);
    const ring = new RingWriter(memory.buffer, 0, 64);
    expect(ring.text('')).toBe(0);
    const numbers = ['fence', 'wait für rank 2', 'fence'].map((text) => ring.text(text));
    expect(numbers).toEqual([1, 2, 1]);
    const many = Array.from({ length: 2000 }, (_, i) => `text number ${i}: ${'x'.repeat(40)}`);
    const found = many.map((text) => ring.text(text));
    const { texts, textsLost } = look();
    expect(texts.slice(0, 3)).toEqual(['', 'fence', 'wait für rank 2']);
    expect(textsLost).toBeGreaterThan(0);
    for (const [i, number] of found.entries()) expect([many[i], '…']).toContain(texts[number]);
    expect(found.filter((number) => texts[number] === '…').length).toBe(textsLost);
    // It never takes more than its place: the records behind it are as they were.
    expect(look().count).toBe(0);
  });

  it('has room for fewer events the more ranks there are, within bounds', () => {
    for (const size of [1, 2, 16, 17, 64, 1024, 4096]) {
      const events = defaultEvents(size);
      expect(events).toBeGreaterThanOrEqual(MIN_EVENTS);
      expect(events).toBeLessThanOrEqual(MAX_EVENTS);
      expect(Math.log2(events) % 1).toBe(0);
    }
    expect([defaultEvents(1), defaultEvents(16), defaultEvents(64), defaultEvents(4096)]).toEqual([
      65536, 65536, 16384, 1024,
    ]);
  });
});

describe('the clock of real ranks', () => {
  it('is the same in all threads: what one reads between two readings of another lies between them', async () => {
    const here = monotonicClock();
    const worker = new Worker(
      `const { monotonicClock } = await import(process.env.CLOCK);
       const { parentPort } = await import('node:worker_threads');
       const there = monotonicClock();
       parentPort.on('message', () => parentPort.postMessage(there()));`,
      { eval: true, env: { ...process.env, CLOCK: new URL('../../dist/trace/clock.js', import.meta.url).href } },
    );
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const before = here();
      const there = await new Promise<number>((resolve) => {
        worker.once('message', resolve);
        worker.postMessage('');
      });
      // What is left of the error is well below a microsecond; a message between threads takes several.
      expect(there).toBeGreaterThan(before - 1000);
      expect(there).toBeLessThan(here() + 1000);
      expect(there).toBeGreaterThanOrEqual(last);
      last = there;
    }
    await worker.terminate();
  });
});

describe('the file of a trace', () => {
  const program = `
    const { writeTrace } = await import(process.env.DIST + '/trace/chrome-trace.js');
    const { recordInMemory } = await import(process.env.DIST + '/trace/recorder.js');
    let now = 0;
    const { recorder, recording } = recordInMemory(0, () => now++, 4096);
    for (let i = 0; i < 2000; i++) recorder.end(recorder.begin('wait', 'something'));
    writeTrace(process.argv[1], [recording()], { title: 'test' });`;
  const env = { ...process.env, DIST: new URL('../../dist', import.meta.url).href };
  const write = (limit: string, file: string): SpawnSyncReturns<string> =>
    spawnSync('sh', ['-c', `${limit} exec "$0" "$@"`, process.execPath, '--input-type=module', '-e', program, file], {
      env,
      encoding: 'utf8',
    });
  const folder = temporaryFolder('test');

  it('is there when it is complete', () => {
    const file = join(folder, 'whole.json');
    expect(write('', file)).toMatchObject({ status: 0 });
    expect(JSON.parse(readFileSync(file, 'utf8')).traceEvents.length).toBeGreaterThan(2000);
  });

  it('is not there, and what was there stays, if there is room for a part of it', () => {
    const file = join(folder, 'part.json');
    writeFileSync(file, 'before');
    const { status, stderr } = write('ulimit -f 16;', file);
    expect(status, stderr).toBe(1);
    expect(stderr).toMatch(/EFBIG/);
    expect(readFileSync(file, 'utf8')).toBe('before');
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });
});

describe('a barrier that is recorded', () => {
  it.each([
    ['of two', 2, false],
    ['by dissemination', 5, false],
    ['at one counter', 4, true],
  ])('%s shows who told whom', (_, size, central) => {
    const { ranks, at, recordings } = makeRanks(size);
    const contexts = createLocalFabric(size).map((fabric) => openEmulator(fabric));
    const blocks = contexts.map(() => new Int32Array(new SharedArrayBuffer(4 * barrierWords(size))));
    const all = ranks.map((_, rank) => rank);
    const barriers = ranks.map((recorder, rank) =>
      makeBarrier(
        contexts[rank],
        rank,
        all,
        { central, plainFlags: false },
        (other) => blocks[other],
        recordSignals(recorder.flow('barrier', '4', size), all),
      ),
    );
    const rounds = 3;
    let time = 0;
    for (let round = 0; round < rounds; round++) {
      const left = new Set(all);
      for (const barrier of barriers) {
        at(++time);
        barrier.begin();
        // Again, as after a deadline: it is not entered twice.
        barrier.begin();
      }
      while (left.size > 0) {
        for (const rank of left) {
          at(++time);
          if (barriers[rank].advance()) left.delete(rank);
        }
      }
    }
    const { arrows, disordered } = timelineOf(recordings());
    const perRound = central ? size - 1 : size * Math.ceil(Math.log2(size));
    expect([arrows.length, disordered]).toEqual([rounds * perRound, 0]);
    for (const { from, to } of arrows) expect(to.rank).toBe(from.args['to']);
    for (const context of contexts) context.close();
  });
});

describe('what is made of the records', () => {
  it('are spans that nest; those that do not get lanes of their own', () => {
    const { ranks, at, recordings } = makeRanks(1);
    const [rank] = ranks;
    const times: [string, number, number][] = [
      ['a', 0, 100],
      ['b', 10, 50],
      ['c', 20, 60],
      ['d', 50, 55],
      ['e', 55, 120],
      ['f', 100, 110],
    ];
    const open = new Map<string, number>();
    for (let time = 0; time <= 120; time++) {
      at(time);
      for (const [name, , end] of times) if (end === time) rank.end(open.get(name)!);
      for (const [name, start] of times) if (start === time) open.set(name, rank.begin('wait', name));
    }
    const lanes = Object.fromEntries(timelineOf(recordings()).spans[0].map(({ name, lane }) => [name, lane]));
    expect(lanes).toEqual({ a: 0, b: 0, c: 1, d: 0, e: 2, f: 0 });
  });

  it('say which spans were never ended, and by which error others were', () => {
    const { ranks, at, recordings } = makeRanks(2);
    const lost = ranks[0].begin('call', 'fence', { place: 7 });
    at(10);
    ranks[1].begin('wait', 'for ever');
    at(20);
    ranks[0].end(lost, Object.assign(new Error(), { code: 'ERR_RMA_TIMEOUT' }));
    const [[fence], [wait]] = timelineOf(recordings()).spans;
    expect(fence).toMatchObject({ start: 0, end: 20, args: { fence: 7, error: 'ERR_RMA_TIMEOUT' } });
    expect(wait).toMatchObject({ start: 10, end: 20, args: { unfinished: true } });
  });

  it('passes a lock on from its last holder to who waited, and not to who did not', () => {
    const { ranks, at, recordings } = makeRanks(3);
    const scope = ranks.map((rank) => rank.text('4.1|w'));
    const steps: [number, 'got' | 'waited' | 'released', boolean][] = [
      [0, 'got', true],
      [0, 'released', true],
      [1, 'waited', false],
      [2, 'waited', false],
      [1, 'released', false],
      [2, 'released', false],
      [0, 'waited', true],
    ];
    for (const [i, [rank, what, exclusive]] of steps.entries()) {
      at(10 * i);
      if (what === 'released') ranks[rank].released(scope[rank], 1, exclusive);
      else ranks[rank].acquired(scope[rank], 1, exclusive, what === 'waited');
    }
    const { arrows } = timelineOf(recordings());
    const passed = [...arrows]
      .sort((a, b) => a.to.start - b.to.start)
      .map(({ from, to }) => [from.rank, from.start, to.rank, to.start]);
    expect(passed).toEqual([
      [0, 10, 1, 20],
      [0, 10, 2, 30],
      [2, 50, 0, 60],
    ]);
  });

  it('draws an arrow for each notification that was taken', () => {
    const { ranks, at, recordings } = makeRanks(3);
    const scope = ranks.map((rank) => rank.text('4.1|w'));
    for (const [i, from] of [0, 1, 0].entries()) {
      at(i);
      ranks[from].notified(scope[from], 2);
    }
    at(10);
    ranks[2].took(scope[2], 2);
    const taken = timelineOf(recordings()).arrows.map(({ from, to }) => [from.rank, from.start, to.rank]);
    expect(taken).toEqual([
      [0, 0, 2],
      [1, 1, 2],
    ]);
  });

  it('leaves out, and counts, what would arrive before it was sent', () => {
    const { ranks, at, recordings } = makeRanks(2);
    const flows = ranks.map((rank) => rank.flow('message', '', 2));
    at(100);
    flows[0].sent(1, 8);
    at(50);
    flows[1].seen(0, 8);
    const { arrows, disordered } = timelineOf(recordings());
    expect([arrows.length, disordered]).toEqual([0, 1]);
  });

  it('matches messages also where the first ones are no longer in the ring', () => {
    const { ranks, at, recordings } = makeRanks(2, 64);
    const flows = ranks.map((rank) => rank.flow('message', '', 2));
    for (let i = 0; i < 100; i++) {
      at(2 * i);
      flows[0].sent(1, i);
      at(2 * i + 1);
      flows[1].seen(0, i);
    }
    const { arrows, dropped } = timelineOf(recordings());
    expect(dropped).toEqual([37, 37]);
    expect(arrows.map(({ from, to }) => (to.args['bytes'] as number) - (from.args['bytes'] as number))).toEqual(
      new Array(63).fill(0),
    );
  });
});

describe('the file', () => {
  const folder = temporaryFolder('trace-file');

  /** Random runs of some ranks: nested calls, waits that overlap, messages back and forth. */
  const random = fc.array(fc.tuple(fc.nat(2), fc.nat(5), fc.nat(30)), { maxLength: 120 });

  it('is a correct trace whatever was recorded, and in virtual time as well', () => {
    const file = join(folder, 'random.json');
    fc.assert(
      fc.property(random, (steps) => {
        const { ranks, at, recordings } = makeRanks(3, 64);
        const open: number[][] = [[], [], []];
        const flows = ranks.map((rank) => rank.flow('message', '', 3));
        const scope = ranks.map((rank) => rank.text('4.1|a "window" <with> a name'));
        const sent = ranks.map(() => [0, 0, 0]);
        let now = 0;
        for (const [who, what, pause] of steps) {
          now += pause / 7;
          at(now);
          const rank = ranks[who];
          const peer = (who + 1) % 3;
          if (what < 2) open[who].push(rank.begin(what === 0 ? 'call' : 'wait', 'x', { scope: scope[who] }));
          // Any of the open ones.
          else if (what === 2 && open[who].length > 0) rank.end(open[who].splice(pause % open[who].length, 1)[0]);
          else if (what === 3)
            rank.operation(rank.text('put'), scope[who], peer, 8, pause, now - pause / 10, pause % 2 === 0);
          else if (what === 4) {
            flows[who].sent(peer, pause);
            sent[who][peer]++;
          } else if (what === 5 && sent[peer][who] > 0) {
            sent[peer][who]--;
            flows[who].seen(peer, pause);
          }
        }
        writeTrace(file, recordings(), { title: 'a test', clock: 'virtual' });
        expect(checkTrace(file).other.clock).toBe('virtual');
      }),
      { numRuns: 60 },
    );
  });

  it('replaces an older one when it is complete, and leaves nothing else', () => {
    const file = join(folder, 'again.json');
    writeFileSync(file, 'old');
    const { ranks, recordings } = makeRanks(1);
    ranks[0].end(ranks[0].begin('call', 'fence'));
    expect(writeTrace(file, recordings(), { title: 'x' })).toBe(
      `trace of 1 rank, 2 events, in ${file}: open it in https://ui.perfetto.dev`,
    );
    expect(readFileSync(file, 'utf8')).toContain('"fence"');
    expect(() => writeTrace(join(folder, 'none/x.json'), recordings(), { title: 'x' })).toThrow('ENOENT');
    expect(readdirSync(folder).filter((name) => name.includes('part'))).toEqual([]);
  });

  it('has spans that name their window, escaped', () => {
    const span = (spans: readonly Span[]): Span => spans[0];
    const { ranks, recordings } = makeRanks(1);
    ranks[0].begin('call', 'lock', { scope: ranks[0].text('4.2|a|b'), peer: 0, place: 1 });
    expect(span(timelineOf(recordings()).spans[0]).args).toEqual({
      windowId: '4.2',
      window: 'a|b',
      target: 0,
      exclusive: true,
      unfinished: true,
    });
  });
});
