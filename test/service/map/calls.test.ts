/** What the calls of a map promise, one by one: codecs, times, refusals. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { HEAD, HEADER_BYTES, TAIL } from '../../../src/service/map/map-layout.ts';
import { memoryBytes, newMap, openMap } from './support.ts';

const BYTES = 1 << 20;

afterEach(() => vi.restoreAllMocks());

/** A clock that stands until it is moved. */
function clock(): (milliseconds: number) => void {
  let time = 5000;
  vi.spyOn(performance, 'now').mockImplementation(() => time);
  return (milliseconds) => {
    time += milliseconds;
  };
}

describe('values', () => {
  it('bytes are copies, of whatever offset', () => {
    const { map } = newMap<Uint8Array>({ bytes: BYTES, codec: 'bytes' });
    const source = Uint8Array.from({ length: 300 }, (_, i) => i);
    for (const [begin, end] of [
      [0, 0],
      [1, 2],
      [3, 9],
      [7, 300],
    ]) {
      const value = source.subarray(begin, end);
      map.set('key', value);
      const found = map.get('key')!;
      expect(found).toEqual(Uint8Array.from(value));
      found.fill(1);
      expect(map.get('key')).toEqual(Uint8Array.from(value));
    }
    map.set('shared', new Uint8Array(new SharedArrayBuffer(5)));
    expect(map.get('shared')).toEqual(new Uint8Array(5));
  });

  it('found bytes stay as they are when others are found', () => {
    const { map } = newMap<Uint8Array>({ bytes: BYTES, codec: 'bytes' });
    for (let i = 0; i < 100; i++) map.set(`${i}`, new Uint8Array(1 + 37 * i).fill(i));
    const found = Array.from({ length: 400 }, (_, i) => map.get(`${i % 100}`)!);
    for (const [i, value] of found.entries())
      expect(Buffer.compare(value, new Uint8Array(1 + 37 * (i % 100)).fill(i % 100))).toBe(0);
  });

  it('strings of all characters, as keys and as values', () => {
    const { map } = newMap<string>({ bytes: BYTES, codec: 'string' });
    const texts = [
      '',
      'a',
      'ÿ',
      'é'.repeat(300),
      'Ā漢字',
      '😀'.repeat(50),
      '\ud83d',
      'x\udc00y',
      'a'.repeat(3000),
      '\0',
    ];
    for (const text of texts) map.set(text.slice(0, 200), text);
    for (const text of texts) expect(map.get(text.slice(0, 200))).toBe(text);
    expect(new Set(map.keys())).toEqual(new Set(texts.map((text) => text.slice(0, 200))));
    expect(new Set(map.values())).toEqual(new Set(texts));
    // Not the same key: one byte a character, and two.
    map.set('ab', 'narrow');
    expect(map.has('慢')).toBe(false);
  });

  it('JSON and structured clones', () => {
    const json = newMap({ bytes: BYTES }).map;
    const value = { user: 1, name: 'ä', list: [1, 2, { deep: null }] };
    expect(json.set('key', value).get('key')).toEqual(value);
    const structured = newMap<unknown>({ bytes: BYTES, codec: 'structured' }).map;
    const clone = {
      at: new Date(7),
      set: new Set([1]),
      numbers: Float64Array.of(1, 2),
      big: 5n,
      of: new Map([[1, 2]]),
    };
    structured.set('key', clone);
    structured.set('nothing', undefined);
    expect(structured.get('key')).toEqual(clone);
    const { numbers } = structured.get('key') as { numbers: Float64Array };
    structured.get('key');
    expect(numbers).toEqual(Float64Array.of(1, 2));
  });

  it('a codec of the program', () => {
    const codec = {
      encode: (value: number) => new Uint8Array(Float64Array.of(value).buffer),
      decode: (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0, true),
    };
    const { map } = newMap<number>({ bytes: BYTES, codec });
    expect(map.set('pi', Math.PI).get('pi')).toBe(Math.PI);
    expect(map.increment('pi')).toBe(Math.PI + 1);
  });
});

describe('calls', () => {
  it('update gives what is there, and takes out what becomes undefined', () => {
    const { map } = newMap<number[]>({ bytes: BYTES });
    expect(map.update('list', (old) => [...(old ?? []), 1])).toEqual([1]);
    expect(map.update('list', (old) => [...(old ?? []), 2])).toEqual([1, 2]);
    expect(map.update('list', () => undefined)).toBeUndefined();
    expect(map.has('list')).toBe(false);
    expect(map.update('list', () => undefined)).toBeUndefined();
  });

  it('update changes nothing if its function throws, and the map can be used', () => {
    const { map } = newMap<number>({ bytes: BYTES });
    map.set('key', 1);
    const thrower = (): never => {
      throw new Error('mine');
    };
    expect(() => map.update('key', thrower)).toThrow('mine');
    expect(map.set('key', 2).get('key')).toBe(2);
    expect(map.statistics().recovered).toBe(0);
  });

  it('update refuses to write the map inside, and lets it be read', () => {
    const { map } = newMap<number>({ bytes: BYTES });
    map.set('other', 5);
    const inside = [
      () => map.set('x', 1),
      () => map.delete('other'),
      () => map.clear(),
      () => map.increment('other'),
      () => map.compareAndSet('other', 5, 6),
      () => map.update('other', () => 1),
    ];
    for (const call of inside) {
      expect(() =>
        map.update('key', () => {
          call();
          return 1;
        }),
      ).toThrow(expect.objectContaining({ code: 'ERR_RMA_WOULD_DEADLOCK' }));
    }
    expect(map.update('key', () => map.get('other')! + [...map].length)).toBe(6);
    expect(map.get('key')).toBe(6);
  });

  it('increment counts, and refuses what is no number', () => {
    const { map } = newMap<unknown>({ bytes: BYTES });
    expect(map.increment('n')).toBe(1);
    expect(map.increment('n', 2.5)).toBe(3.5);
    expect(map.increment('n', -4)).toBe(-0.5);
    map.set('text', 'a');
    expect(() => map.increment('text')).toThrow(/must be a number, not "a"/);
    expect(() => map.increment('n', Number.NaN)).toThrow(/not finite/);
    expect(map.get('n')).toBe(-0.5);
    expect(() => newMap<string>({ bytes: BYTES, codec: 'string' }).map.increment('n')).toThrow(/no numbers/);
  });

  it('compareAndSet compares bytes of the codec, and undefined with nothing', () => {
    const { map } = newMap<unknown>({ bytes: BYTES });
    expect(map.compareAndSet('key', 1, 2)).toBe(false);
    expect(map.compareAndSet('key', undefined, { a: 1 })).toBe(true);
    expect(map.compareAndSet('key', undefined, 2)).toBe(false);
    expect(map.compareAndSet('key', { a: 2 }, 2)).toBe(false);
    expect(map.compareAndSet('key', 'x'.repeat(1_000_000), 2)).toBe(false);
    expect(map.compareAndSet('key', { a: 1 }, { a: 2 })).toBe(true);
    expect(map.compareAndSet('key', { a: 2 }, undefined)).toBe(true);
    expect(map.has('key')).toBe(false);
    expect(map.compareAndSet('key', undefined, undefined)).toBe(true);
  });

  it('two members see each other', () => {
    const options = { bytes: BYTES, ttl: 1000 } as const;
    const { map, memory, dead } = newMap<number>(options);
    const { map: other } = openMap<number>(memory, 2, dead, options);
    map.set('key', 1);
    expect(other.get('key')).toBe(1);
    expect(other.increment('key')).toBe(2);
    expect(map.get('key')).toBe(2);
    other.clear();
    expect(map.size).toBe(0);
  });
});

describe('values that are kept near', () => {
  it('are the same object until another value is set', () => {
    const options = { bytes: BYTES };
    const { map: other, memory, dead } = newMap<{ n: number }>(options);
    const { map } = openMap<{ n: number }>(memory, 2, dead, { ...options, near: 10 });
    other.set('key', { n: 1 });
    const first = map.get('key');
    expect(map.get('key')).toBe(first);
    other.set('key', { n: 2 });
    expect(map.get('key')).toEqual({ n: 2 });
    map.set('key', { n: 3 });
    expect(map.get('key')).toEqual({ n: 3 });
    other.delete('key');
    expect(map.get('key')).toBeUndefined();
  });

  it('are forgotten when the map is cleared, also if positions begin again', () => {
    const { map, memory } = newMap<number>({ bytes: 64 << 10, near: 10 }, { hashMask: 0xff });
    const words = new Int32Array(memory, HEADER_BYTES);
    const begin = words[HEAD];
    map.set('key', 1);
    expect(map.get('key')).toBe(1);
    map.clear();
    words[HEAD] = begin;
    words[TAIL] = begin;
    map.set('key', 2);
    expect(map.get('key')).toBe(2);
  });

  it('not more than were asked for', () => {
    const { map } = newMap<object>({ bytes: BYTES, near: 10 });
    for (let i = 0; i < 100; i++) map.set(`${i}`, {});
    const first = Array.from({ length: 100 }, (_, i) => map.get(`${i}`));
    const again = first.map((value, i) => map.get(`${i}`) === value);
    expect(again.filter(Boolean).length).toBeLessThanOrEqual(10);
    expect(map.get('99')).toBe(map.get('99'));
  });
});

describe('times', () => {
  it('of the map and of the entry', () => {
    const pass = clock();
    const { map } = newMap<number>({ bytes: BYTES, ttl: 100 });
    map.set('map', 1);
    map.set('short', 1, { ttl: 10 });
    map.set('never', 1, { ttl: Number.POSITIVE_INFINITY });
    map.set('undefined', 1, {});
    pass(9);
    expect([...map.keys()].sort()).toEqual(['map', 'never', 'short', 'undefined']);
    pass(1);
    expect(map.has('short')).toBe(false);
    expect(map.delete('short')).toBe(false);
    expect(map.compareAndSet('short', undefined, 5)).toBe(true);
    pass(90);
    expect([...map.keys()].sort()).toEqual(['never', 'short']);
    expect(map.update('map', (old) => (old === undefined ? 7 : 8))).toBe(7);
  });

  it('a new value begins a new time, an increment does not', () => {
    const pass = clock();
    const { map } = newMap<number>({ bytes: BYTES });
    map.increment('window', 1, { ttl: 100 });
    map.set('value', 1, { ttl: 100 });
    pass(60);
    expect(map.increment('window', 1, { ttl: 100 })).toBe(2);
    map.set('value', 2, { ttl: 100 });
    pass(60);
    expect(map.increment('window', 1, { ttl: 100 })).toBe(1);
    expect(map.get('value')).toBe(2);
  });

  it('touch begins a new time for the value that is there, and remainingTtl says what is left', () => {
    const pass = clock();
    const { map } = newMap<string>({ bytes: BYTES, ttl: 100, codec: 'string', near: 10 });
    map.set('key', 'välue');
    map.set('never', 'x', { ttl: Number.POSITIVE_INFINITY });
    pass(60);
    expect(map.get('key')).toBe('välue');
    expect([map.remainingTtl('key'), map.remainingTtl('never')]).toEqual([40, Number.POSITIVE_INFINITY]);
    expect(map.touch('key')).toBe(true);
    expect(map.remainingTtl('key')).toBe(100);
    pass(60);
    expect(map.get('key')).toBe('välue');
    // Also sooner, and for whoever keeps the value.
    expect(map.touch('key', { ttl: 10 })).toBe(true);
    pass(10);
    expect(map.get('key')).toBeUndefined();
    expect([map.touch('key'), map.remainingTtl('key'), map.touch('none')]).toEqual([false, undefined, false]);
    expect(map.has('key')).toBe(false);
    expect(map.touch('never', { ttl: 5 })).toBe(true);
    expect(map.remainingTtl('never')).toBe(5);
  });

  it('what has expired makes room first', () => {
    const pass = clock();
    const { map } = newMap<string>({ bytes: 64 << 10, codec: 'string' });
    for (let i = 0; i < 100; i++) map.set(`old ${i}`, 'x'.repeat(100), { ttl: 10 });
    pass(11);
    // Always other keys: so that every part of the map is written all over, whichever parts this map's hashes choose.
    for (let i = 0; i < 5000; i++) {
      map.set(`new ${i}`, 'y'.repeat(100));
      map.delete(`new ${i - 50}`);
    }
    expect(map.statistics()).toMatchObject({ evicted: 0, expired: 100, entries: 50 });
  });
});

describe('sizes', () => {
  it('the longest entry fits, and one byte more is refused with both numbers', () => {
    const { map } = newMap<string>({ bytes: BYTES, codec: 'string' });
    const { longest } = map.statistics();
    map.set('1234', 'x'.repeat(longest - 4));
    expect(map.get('1234')?.length).toBe(longest - 4);
    expect(() => map.set('1234', 'x'.repeat(longest - 3))).toThrow(
      expect.objectContaining({ code: 'ERR_SIZE', message: expect.stringMatching(`${longest - 3} bytes.*${longest}`) }),
    );
    expect(() => map.set('k'.repeat(longest + 1), '')).toThrow(expect.objectContaining({ code: 'ERR_SIZE' }));
    expect(map.get('1234')?.length).toBe(longest - 4);
  });

  it('longest is what was asked for at least', () => {
    for (const longest of [1, 100, 10_000, 65_000]) {
      const { map } = newMap<Uint8Array>({ bytes: BYTES, longest, codec: 'bytes' });
      expect(map.statistics().longest).toBeGreaterThanOrEqual(longest);
      map.set('', new Uint8Array(longest));
      expect(map.get('')?.length).toBe(longest);
    }
  });

  it('texts of a megabyte, of all kinds', () => {
    const { map } = newMap<string>({ bytes: 64 << 20, longest: 3 << 20, codec: 'string' });
    for (const letter of ['a', 'ä', '漢', '\ud83d']) {
      const text = letter.repeat(1 << 20);
      map.set('long', text).set('short', letter);
      expect(map.get('long') === text).toBe(true);
      expect(map.get('short')).toBe(letter);
    }
  });

  // Not where address space may be short.
  it.skipIf(process.env['ONESIDED_TEST_GATE'] !== undefined)('a map of 3 GiB, of which it touches little', () => {
    const { map } = newMap<string>({ bytes: 3 * 2 ** 30, codec: 'string' });
    for (let i = 0; i < 1000; i++) map.set(`key ${i}`, `${i}`);
    for (let i = 0; i < 1000; i++) expect(map.get(`key ${i}`)).toBe(`${i}`);
    expect(map.size).toBe(1000);
    for (const bytes of [3, 4.5, 8]) expect(memoryBytes({ bytes: bytes * 2 ** 30 })).toBeGreaterThan(2 ** 31);
    expect(() => memoryBytes({ bytes: 8 * 2 ** 30, longest: 2 ** 27 })).toThrow(/at most 67108\d+/);
    expect(memoryBytes({ bytes: 8 * 2 ** 30, longest: 6e7 })).toBeGreaterThan(2 ** 32);
  });

  it('uses the memory that it was given', () => {
    for (let bytes = 64 << 10; bytes < 8 * 2 ** 30; bytes = Math.floor(bytes * 1.37)) {
      const used = memoryBytes({ bytes });
      expect(used).toBeLessThanOrEqual(bytes);
      expect(used).toBeGreaterThan(0.87 * bytes);
    }
  });

  it('keeps four fifths of what fits, whatever changes', () => {
    const { map } = newMap<string>({ bytes: BYTES, codec: 'string' });
    const { capacity } = map.statistics();
    const count = Math.floor((0.7 * capacity) / 232);
    for (let i = 0; i < 20 * count; i++) map.set(`key ${(i * 7919) % count}`, 'x'.repeat(196));
    expect(map.statistics()).toMatchObject({ evicted: 0, entries: count });
  });
});

describe('refusals', () => {
  it.each([
    [{ bytes: 1000 }, 'ERR_SIZE'],
    [{ bytes: 1e6 + 0.5 }, 'ERR_ARG'],
    [{ bytes: BYTES, longest: 65_536 }, 'ERR_SIZE'],
    [{ bytes: BYTES, ttl: 0 }, 'ERR_ARG'],
    [{ bytes: BYTES, ttl: '1' }, 'ERR_ARG'],
    [{ bytes: BYTES, codec: 'jsn' }, 'ERR_ARG'],
    [{ bytes: BYTES, codec: { encode: 1 } }, 'ERR_ARG'],
    [{ bytes: BYTES, tll: 5 }, 'ERR_ARG'],
    [undefined, 'ERR_ARG'],
  ])('options %o', (options, code) => {
    expect(() => memoryBytes(options as never)).toThrow(expect.objectContaining({ code }));
  });

  it('arguments', () => {
    const bytes = newMap<Uint8Array>({ bytes: BYTES, codec: 'bytes' }).map;
    const json = newMap({ bytes: BYTES }).map;
    const circle: unknown[] = [];
    circle.push(circle);
    const calls = [
      () => bytes.get(1 as never),
      () => bytes.set('key', 'text' as never),
      () => bytes.set('key', new Float64Array(1) as never),
      () => json.set('key', undefined),
      () => json.set('key', circle),
      () => json.set('key', 1, { ttl: -1 }),
      () => json.set('key', 1, { tl: 1 } as never),
      () => json.set('key', 1, 5 as never),
      () => json.update('key', 1 as never),
      () => json.update('key', async () => 1),
      () => json.increment('key', '1' as never),
      () => newMap<unknown>({ bytes: BYTES, codec: 'structured' }).map.set('key', () => 1),
    ];
    for (const call of calls) expect(call).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    expect([json.size, bytes.size]).toEqual([0, 0]);
  });

  it('a header that is not that of the map', () => {
    const { memory, dead } = newMap({ bytes: BYTES, ttl: 100 });
    const damaged = expect.objectContaining({ code: 'ERR_DAMAGED' });
    expect(() => openMap(memory, 2, dead, { bytes: BYTES, ttl: 200 })).toThrow(damaged);
    expect(() => openMap(memory, 2, dead, { bytes: BYTES, ttl: 100, codec: 'bytes' })).toThrow(damaged);
    expect(() => openMap(new ArrayBuffer(BYTES), 2, dead, { bytes: BYTES })).toThrow(damaged);
  });

  it('say which map, which key, and why', () => {
    const { map } = newMap<unknown>({ bytes: BYTES });
    const circle: unknown[] = [];
    circle.push(circle);
    const structured = newMap<unknown>({ bytes: BYTES, codec: 'structured' }).map;
    const said: [call: () => unknown, message: RegExp][] = [
      [
        () => map.set('ann', circle),
        /^SharedMap\.set: the value of the key "ann" in the map "test" cannot be written as JSON: .*circular/,
      ],
      [
        () => map.set('ann', undefined),
        /set: the value of the key "ann" in the map "test" is undefined, for which JSON/,
      ],
      [
        () => map.update('ann', () => 1n),
        /update: the value of the key "ann" in the map "test" cannot .* JSON: .*BigInt/,
      ],
      [() => structured.set('bob', () => 1), /"bob" in the map "test" cannot be cloned: .*could not be cloned/],
      [
        () => map.set('eve', 'x'.repeat(BYTES)),
        /^SharedMap\.set: the value of the key "eve" in the map "test" has \d+ /,
      ],
      [() => map.get(7 as never), /^SharedMap\.get: a key of the map "test" must be a string, not 7/],
      [() => map.set('a', 1, { timeout: 0 }), /^SharedMap\.set: timeout must be more than 0/],
    ];
    for (const [call, message] of said)
      expect(call).toThrow(
        expect.objectContaining({ code: expect.stringMatching('ERR_'), message: expect.stringMatching(message) }),
      );
  });
});
