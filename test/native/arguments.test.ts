import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addon } from '../support/addon.ts';

/**
 * Whatever the arguments: a call returns, or throws an Error with a code. A crash would end the test run. Left out is
 * only what would do to this process what it was asked to: a wait without end, and a signal at the end of the parent.
 */
const native = addon();

function detached(): Int32Array {
  const words = new Int32Array(4);
  structuredClone(words.buffer, { transfer: [words.buffer] });
  return words;
}

type ResizableBuffer = new (
  bytes: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { resize(bytes: number): void };

const file = native.memoryCreate('onesided-arguments');
native.memoryResize(file, 4096);

function mapped(bytes: number): ArrayBuffer {
  return native.memoryMap(file, 0, bytes);
}

const hostile = {
  valueOf(): number {
    throw new Error('asked for its value');
  },
};
const number = fc.oneof(
  fc.constantFrom(file, 4096),
  fc.integer({ min: -2, max: 16 }),
  fc.double(),
  fc.constantFrom(
    0,
    -0,
    0.5,
    -1,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32,
    2 ** 53 - 1,
    2 ** 53,
    2 ** 63,
    Number.NaN,
    Infinity,
    -Infinity,
  ),
);
const memory = fc.oneof(
  fc.nat({ max: 64 }).map((bytes) => new ArrayBuffer(bytes)),
  fc.nat({ max: 64 }).map((bytes) => new SharedArrayBuffer(bytes)),
  fc.constant(4096).map(mapped),
);
const view = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  fc.int32Array({ maxLength: 40 }),
  fc.int32Array({ min: 0, max: 3, maxLength: 40 }),
  fc.bigUint64Array({ maxLength: 40 }),
  fc.float64Array({ maxLength: 40 }),
  fc.nat({ max: 8 }).map((length) => new Int32Array(new SharedArrayBuffer(40), 4, length)),
  fc.nat({ max: 8 }).map((length) => new Uint8Array(mapped(4096), 4089 - length, length)),
  fc.constant(0).map(detached),
  fc.nat({ max: 8 }).map((bytes) => new DataView(new ArrayBuffer(bytes))),
  ...[globalThis as unknown as { Float16Array?: new (length: number) => ArrayBufferView }].flatMap(
    // From Node 24 on.
    ({ Float16Array }) => (Float16Array === undefined ? [] : [fc.nat({ max: 40 }).map((n) => new Float16Array(n))]),
  ),
  // Its length is what the buffer leaves of it.
  fc.nat({ max: 40 }).map((bytes) => {
    const buffer = new (ArrayBuffer as unknown as ResizableBuffer)(64, { maxByteLength: 64 });
    const bytesOf = new Uint8Array(buffer, 8);
    buffer.resize(bytes);
    return bytesOf;
  }),
);
const anything = fc.oneof(
  { weight: 3, arbitrary: number },
  { weight: 2, arbitrary: view },
  { weight: 1, arbitrary: memory },
  fc.constantFrom(
    undefined,
    null,
    true,
    '',
    '7',
    'x'.repeat(300),
    'a\0b',
    10n,
    Symbol('s'),
    {},
    [],
    hostile,
    () => {},
    new Proxy({}, {}),
  ),
);

/** Calls with the arguments; passes if it returns, or throws an Error that says what is wrong. */
function survives(call: (...args: unknown[]) => unknown, args: readonly unknown[]): void {
  try {
    call(...args);
  } catch (error) {
    if (!(error instanceof Error) || typeof (error as NodeJS.ErrnoException).code !== 'string') throw error;
    expect(error.message.length).toBeGreaterThan(10);
  }
}

describe('whatever the arguments, there is an answer from', () => {
  const names = [
    'memoryMap',
    'memoryUnmap',
    'memoryResize',
    'memoryPunch',
    'memoryRemappable',
    'memoryRemap',
    'memoryReclaim',
    'futexWake',
    'accumulate',
    'accumulateIndexed',
    'schedYield',
    'fileLock',
    'membarrier',
    'membarrierRegister',
    'addressOf',
    'accumulateAt',
    'accumulateRun',
    'copyNest',
    'copyBlocks',
    'processRead',
    'processReadSegments',
    'pmixExchange',
  ] as const;

  it.each(names)('%s', (name) => {
    const call = native[name] as (...args: unknown[]) => unknown;
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 9 }), (args) => survives(call, args)),
      { numRuns: 300 },
    );
  });

  it.each(['accumulate', 'accumulateIndexed'] as const)('%s, close to what it wants', (name) => {
    const call = native[name] as (...args: unknown[]) => unknown;
    const small = fc.oneof(
      { weight: 5, arbitrary: fc.integer({ min: -1, max: 12 }) },
      { weight: 1, arbitrary: number },
    );
    const [fifth, sixth] =
      name === 'accumulate' ? [view, small] : [fc.int32Array({ min: -1, max: 40, maxLength: 40 }), view];
    const optional = fc.oneof(small, view, fc.constant(undefined));
    fc.assert(
      fc.property(fc.tuple(small, small, view, small, fifth, sixth, small, optional), (args) => survives(call, args)),
      { numRuns: 1500 },
    );
  });

  const little = fc.oneof({ weight: 8, arbitrary: fc.integer({ min: -1, max: 12 }) }, { weight: 1, arbitrary: number });
  const offsets = fc.oneof(
    fc.int32Array({ min: -1, max: 8, maxLength: 12 }),
    fc.float64Array({ min: -1, max: 40, maxLength: 12 }),
    fc.array(fc.integer({ min: -8, max: 40 }), { maxLength: 12 }).map((list) => Float64Array.from(list)),
    fc.constant(undefined),
    view,
  );
  const whole = fc.constant(0).map(() => new Int32Array(512));

  it('accumulateAt, close to what it wants', () => {
    fc.assert(
      fc.property(
        fc.tuple(fc.nat({ max: 13 }), fc.nat({ max: 15 }), view, little, offsets, view, offsets),
        fc.tuple(fc.option(view, { nil: undefined }), offsets, little, whole, number, fc.constantFrom(1, 7, 0)),
        (some, rest) => survives(native.accumulateAt as never, [...some, ...rest]),
      ),
      { numRuns: 3000 },
    );
  });

  it('accumulateRun, whatever its plan', () => {
    fc.assert(
      fc.property(
        fc.tuple(fc.nat({ max: 13 }), fc.integer({ min: 7, max: 16 }), little, little, number, fc.constantFrom(1, 0)),
        fc.tuple(view, fc.option(view, { nil: undefined }), whole, fc.option(view, { nil: undefined })),
        (plan, args) => {
          native.accumulatePlan.set(plan);
          survives(native.accumulateRun as never, args);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('copyNest, whatever its plan', () => {
    // It does as many rounds as it is told to, if they stay inside: not too many, then.
    const rounds = fc.oneof(fc.integer({ min: -1, max: 6 }), fc.constantFrom(Number.NaN, 0.5, -Infinity, -(2 ** 53)));
    const loop = fc.tuple(rounds, little, little);
    fc.assert(
      fc.property(little, loop, loop, loop, little, little, view, view, (block, a, b, c, to, from, ...sides) => {
        native.copyPlan.set([block, ...a, ...b, ...c, to, from]);
        survives(native.copyNest as never, sides);
        // Within one memory as well.
        survives(native.copyNest as never, [sides[0], sides[0]]);
      }),
      { numRuns: 3000 },
    );
  });

  it('copyBlocks, close to what it wants', () => {
    const starts = fc.int32Array({ min: -3, max: 20, maxLength: 12 });
    fc.assert(
      fc.property(view, little, view, little, starts, little, little, fc.boolean(), (...args) => {
        survives(native.copyBlocks as never, args);
        survives(native.copyBlocks as never, args.with(2, args[0]));
      }),
      { numRuns: 3000 },
    );
  });

  it('processReadSegments, close to what it wants', () => {
    const remote = new Uint8Array(64);
    const address = native.addressOf(remote);
    const segments = fc.array(little, { maxLength: 12 }).map((list) => Float64Array.from(list));
    fc.assert(
      fc.property(view, segments, little, (memory, list, count) => {
        survives(native.processReadSegments as never, [process.pid, address + 16, memory, list, count]);
      }),
      { numRuns: 1000 },
    );
  });

  it('Server', () => {
    fc.assert(
      fc.property(fc.oneof(anything, whole), fc.oneof(anything, fc.constant(1)), (words, slots) => {
        survives((...args) => new native.Server(...(args as [Int32Array, number])).close(), [words, slots]);
      }),
      { numRuns: 300 },
    );
    const server = new native.Server(new Int32Array(16_384), 1);
    fc.assert(
      fc.property(anything, anything, (memory, number) => {
        survives(server.add.bind(server) as never, [memory]);
        survives(server.remove.bind(server) as never, [number]);
      }),
      { numRuns: 300 },
    );
    server.close();
    server.close();
    expect(() => server.add(new Uint8Array(1))).toThrow(RangeError);
  });

  it('methods of one class that are called on another', () => {
    const server = new native.Server(new Int32Array(16_384), 1);
    const parker = new native.Parker(() => {});
    for (const self of [server, parker, {}, undefined, null, 1, Object.create(parker), new Proxy(parker, {})]) {
      for (const owner of [native.Server, native.Parker]) {
        if (self instanceof owner && (self === server || self === parker)) continue;
        for (const name of Object.getOwnPropertyNames(owner.prototype)) {
          if (name === 'constructor') continue;
          const method = (owner.prototype as unknown as Record<string, () => void>)[name]!;
          expect(() => method.call(self as never), `${owner.name}.${name}`).toThrow();
        }
        expect(() => (owner as unknown as () => void)()).toThrow();
      }
    }
    parker.close();
    server.close();
  });

  it('memoryCreate', () => {
    fc.assert(
      fc.property(anything, (name) => {
        // A descriptor a run would be left.
        fc.pre(typeof name !== 'string' || name.length > 249);
        expect(() => native.memoryCreate(name as string)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
      }),
    );
  });

  it('futexWait', () => {
    fc.assert(
      fc.property(fc.array(anything, { minLength: 4, maxLength: 4 }), (args) => {
        fc.pre(!(typeof args[3] === 'number' && args[3] > 1));
        survives(native.futexWait as never, args);
      }),
      { numRuns: 300 },
    );
  });

  it('Parker', () => {
    const parker = new native.Parker(() => {});
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 5 }), (args) => {
        survives(parker.begin.bind(parker) as never, args);
        survives(parker.interrupt.bind(parker) as never, args);
      }),
      { numRuns: 300 },
    );
    parker.close();
  });

  it('parentDeathSignal', () => {
    fc.assert(
      fc.property(anything, (signal) => {
        fc.pre(!(typeof signal === 'number' && Number.isInteger(signal) && signal > 0 && signal < 65));
        survives(native.parentDeathSignal as never, [signal]);
      }),
    );
    expect(native.parentDeathSignal(0)).toBe(process.ppid);
  });
});
