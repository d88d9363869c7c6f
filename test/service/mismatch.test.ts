/** One name, asked for in two ways: refused, with both in words, whoever asks. */
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { Service } from '../../src/service/service.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

endMembersAfterEach();
afterEach(() => void vi.unstubAllEnvs());

const bytes = 1 << 20;
const own = {
  encode: (text: string) => Buffer.from(text),
  decode: (bytes: Uint8Array) => Buffer.from(bytes).toString(),
};

const CASES: [
  what: string,
  made: (s: Service) => Promise<object>,
  asked: (s: Service) => Promise<object>,
  said: RegExp,
][] = [
  ['kind', (s) => s.counter('x'), (s) => s.mutex('x'), /was made as a counter, .*asks for a mutex/],
  ['kind', (s) => s.map('x', { bytes }), (s) => s.limiter('x', { rate: 1, per: 1 }), /made as a map, .*a limiter/],
  [
    'capacity',
    (s) => s.queue('x', Int32Array, 5),
    (s) => s.queue('x', Int32Array, 6),
    /queue with capacity 5.*capacity 6/,
  ],
  [
    'length',
    (s) => s.queue('x', Int32Array, 5),
    (s) => s.queue('x', Int32Array, 5, { length: 2 }),
    /queue with length 1.*length 2/,
  ],
  [
    'type',
    (s) => s.queue('x', Int32Array, 5),
    (s) => s.queue('x', Float32Array, 5),
    /queue with entries of Int32Array.*asks for entries of Float32Array/,
  ],
  [
    'type',
    (s) => s.queue('x', Int32Array, 5),
    (s) => s.queue('x', { capacity: 5 }),
    /queue with entries of Int32Array.*asks for values of codec "json"/,
  ],
  [
    'codec',
    (s) => s.queue('x', { capacity: 5, codec: 'bytes' }),
    (s) => s.queue('x', { capacity: 5 }),
    /queue with values of codec "bytes".*asks for values of codec "json"/,
  ],
  [
    'longest',
    (s) => s.queue('x', { capacity: 5 }),
    (s) => s.queue('x', { capacity: 5, longest: 99 }),
    /queue with longest 1000.*asks for longest 99/,
  ],
  [
    'bytes',
    (s) => s.map('x', { bytes }),
    (s) => s.map('x', { bytes: bytes + 1 }),
    /map with 1048576 bytes.*1048577 bytes/,
  ],
  ['ttl', (s) => s.map('x', { bytes, ttl: 0.5 }), (s) => s.map('x', { bytes }), /map with ttl 0.5 ms.*for no ttl/],
  ['ttl', (s) => s.map('x', { bytes }), (s) => s.map('x', { bytes, ttl: 7 }), /map with no ttl.*for ttl 7 ms/],
  ['codec', (s) => s.map('x', { bytes }), (s) => s.map('x', { bytes, codec: 'bytes' }), /codec "json".*codec "bytes"/],
  [
    'codec',
    (s) => s.map('x', { bytes, codec: 'string' }),
    (s) => s.map('x', { bytes, codec: own }),
    /codec "string".*a codec of functions/,
  ],
  ['longest', (s) => s.map('x', { bytes }), (s) => s.map('x', { bytes, longest: 99 }), /with no `longest`.*longest 99/],
  ['rate', (s) => s.limiter('x', { rate: 5, per: 1 }), (s) => s.limiter('x', { rate: 6, per: 1 }), /rate 5.*rate 6/],
  [
    'per',
    (s) => s.limiter('x', { rate: 5, per: 1 }),
    (s) => s.limiter('x', { rate: 5, per: 1.5 }),
    /per 1 ms.*per 1.5 ms/,
  ],
];

describe.skipIf(loadNative() === undefined)('a name that was made as something else is refused', () => {
  it.each(CASES)('another %s (%#)', async (_, made, asked, said) => {
    const name = fresh();
    const [one, two] = [await join(name), await join(name)];
    await made(one);
    const refused = {
      code: 'ERR_SERVICE_MISMATCH',
      message: expect.stringMatching(new RegExp(`"x" of the service "${name}" .*${said.source}`)),
    };
    for (const service of [one, two]) await expect(asked(service)).rejects.toMatchObject(refused);
    expect(await made(one)).toBe(await made(one));
    await made(two);
  });

  it('but each member may keep another number of values near, always the same', async () => {
    const name = fresh();
    const [one, two] = [await join(name), await join(name)];
    await one.map('x', { bytes });
    await two.map('x', { bytes, near: 10 });
    await expect(one.map('x', { bytes, near: 10 })).rejects.toMatchObject({
      code: 'ERR_SERVICE_MISMATCH',
      message: expect.stringMatching(/has the map "x" .* with near 0, and this call asks for near 10/),
    });
  });
});

describe.skipIf(loadNative() === undefined)('XDG_RUNTIME_DIR', () => {
  it.each(['missing', 'relative'])('that is %s is refused by its name, and not made', async (kind) => {
    const folder = kind === 'missing' ? joinPath(tmpdir(), fresh(), 'run') : 'run';
    vi.stubEnv('XDG_RUNTIME_DIR', folder);
    await expect(Service.join(fresh())).rejects.toMatchObject({
      code: 'ERR_COMM',
      message: expect.stringMatching(
        /^Service\.join: .*XDG_RUNTIME_DIR says ".*run", which (does not exist|is not absolute)/,
      ),
    });
    expect(existsSync(folder)).toBe(false);
  });
});
