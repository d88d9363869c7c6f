import { PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Destination, LineMerger, prefixOf, type Terminal, wantsColour } from '../../src/launcher/line-merger.ts';

/** A destination that keeps what it gets. */
function collector(): { destination: Writable; text: () => string } {
  const chunks: Buffer[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { destination, text: () => Buffer.concat(chunks).toString('utf8') };
}

/** Connects one source a prefix. `end` resolves when all that was written has been passed on. */
function merge(destination: Writable, prefixes: string[], terminal?: Terminal) {
  const failures: Error[] = [];
  const merger = new LineMerger(destination, terminal, (error) => failures.push(error));
  const ended: Promise<void>[] = [];
  const sources = prefixes.map((prefix) => {
    const source = new PassThrough();
    ended.push(new Promise((resolve) => merger.connect(source, prefix, resolve)));
    return source;
  });
  const end = async (): Promise<void> => {
    for (const source of sources) source.end();
    await Promise.all(ended);
    await sleep(0);
  };
  return { merger, sources, failures, end };
}

describe('prefixes', () => {
  it('are as wide for every rank', () => {
    expect([0, 9, 10].map((rank) => prefixOf(rank, 11, false))).toEqual(['[ 0] ', '[ 9] ', '[10] ']);
    expect(prefixOf(0, 1, false)).toBe('[0] ');
  });

  it('have colours on a terminal only, and not if NO_COLOR is set', () => {
    const terminal = { isTTY: true } as Destination;
    expect(wantsColour(terminal, {})).toBe(true);
    expect(wantsColour(terminal, { NO_COLOR: '1' })).toBe(false);
    expect(wantsColour(terminal, { NO_COLOR: '' })).toBe(true);
    expect(wantsColour(terminal, { TERM: 'dumb' })).toBe(false);
    expect(wantsColour({} as Destination, {})).toBe(false);
    expect(prefixOf(1, 2, true)).toBe('\x1b[33m[1]\x1b[0m ');
  });
});

describe('lines of several ranks', () => {
  it('never stand inside one another, whatever the chunks', async () => {
    const { destination, text } = collector();
    const { sources, end } = merge(destination, ['[0] ', '[1] ']);
    sources[0].write('one ');
    sources[1].write('uno ');
    await sleep(0);
    sources[0].write('two\nthree');
    sources[1].write('due\n\ntre\n');
    await sleep(0);
    expect(text()).toBe('[0] one two\n[1] uno due\n[1] \n[1] tre\n');
    await end();
    expect(text()).toBe('[0] one two\n[1] uno due\n[1] \n[1] tre\n[0] three\n');
  });

  it('keep their UTF-8 when a chunk ends within a character', async () => {
    const { destination, text } = collector();
    const { sources, end } = merge(destination, ['[0] ']);
    for (const byte of Buffer.from('größer → 😀\n¿')) {
      sources[0].write(Buffer.from([byte]));
      await sleep(0);
    }
    await end();
    expect(text()).toBe('[0] größer → 😀\n[0] ¿\n');
  });

  it('keep their carriage returns where the destination is no terminal', async () => {
    const { destination, text } = collector();
    const { sources, end } = merge(destination, ['[0] ']);
    sources[0].write('\r10 %\r20 %\r\n');
    await end();
    expect(text()).toBe('[0] \r10 %\r20 %\r\n');
  });

  it('are broken between characters when they are too long to keep', async () => {
    const { destination, text } = collector();
    const { sources, end } = merge(destination, ['[0] ']);
    // An odd start puts the limit into the middle of a two-byte character.
    const line = `x${'é'.repeat(100_000)}`;
    sources[0].write(line);
    await end();
    const lines = text().trimEnd().split('\n');
    expect(lines.length).toBe(Math.ceil(200_001 / 65_536));
    expect(lines.map((part) => part.replace(/^\[0\] /, '')).join('')).toBe(line);
  });
});

describe('a destination that takes no more', () => {
  it('pauses every rank until it takes more, and loses nothing', async () => {
    const held: (() => void)[] = [];
    let received = 0;
    const destination = new Writable({
      highWaterMark: 1000,
      write(chunk: Buffer, _encoding, done) {
        received += chunk.length;
        held.push(done);
      },
    });
    const { merger, sources, end } = merge(destination, ['', '']);
    const line = `${'y'.repeat(99)}\n`;
    for (let i = 0; i < 200; i++) for (const source of sources) source.write(line);
    await sleep(5);
    expect(merger.blocked).toBe(true);
    expect(sources.every((source) => source.isPaused())).toBe(true);
    const kept = destination.writableLength;
    await sleep(20);
    // Not more than a chunk above the mark, and no growth while it is full.
    expect(destination.writableLength).toBe(kept);
    expect(kept).toBeLessThan(1000 + 65_536);
    const ended = end();
    const timer = setInterval(() => {
      for (const done of held.splice(0)) done();
    }, 1);
    await ended;
    while (received < 400 * line.length) await sleep(1);
    clearInterval(timer);
    expect(received).toBe(400 * line.length);
  });

  it('is given up when it fails, once, and the ranks go on', async () => {
    const destination = new Writable({
      write(_chunk, _encoding, done) {
        done(Object.assign(new Error('nobody reads'), { code: 'EPIPE' }));
      },
    });
    const { sources, failures, end } = merge(destination, ['[0] ', '[1] ']);
    for (let i = 0; i < 10; i++) {
      for (const source of sources) source.write('more\n');
      await sleep(1);
    }
    await end();
    expect(failures.map((error) => error.message)).toEqual(['nobody reads']);
  });
});

describe('a terminal', () => {
  const terminal = (): Terminal => ({ showsPartial: false, columns: () => 40 });

  it('shows a question although its line has not ended, and erases it when another rank prints', async () => {
    const { destination, text } = collector();
    const { sources, end } = merge(destination, ['[0] ', '[1] '], terminal());
    sources[0].write('name? ');
    while (text() === '') await sleep(5);
    expect(text()).toBe('[0] name? ');
    sources[1].write('hello\n');
    await sleep(0);
    expect(text()).toBe('[0] name? \r\x1b[2K[1] hello\n');
    await end();
    expect(text()).toBe('[0] name? \r\x1b[2K[1] hello\n[0] name? \n');
  });

  it('shows the latest state of a progress bar, not wider than itself, and keeps the last one', async () => {
    const { destination, text } = collector();
    const { sources, end } = merge(destination, ['[0] '], terminal());
    sources[0].write('\r10 %\r20 %');
    while (text() === '') await sleep(5);
    expect(text()).toBe('[0] 20 %');
    sources[0].write(`\r${'='.repeat(100)}`);
    while (text() === '[0] 20 %') await sleep(5);
    expect(text()).toBe(`[0] 20 %\r\x1b[2K[0] ${'='.repeat(32)}`);
    sources[0].write('\r100 %\r\n');
    await end();
    expect(text().split('\x1b[2K').at(-1)).toBe('[0] 100 %\n');
  });
});
