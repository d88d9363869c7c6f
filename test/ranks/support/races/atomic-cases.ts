/** Which updates may meet, and accesses that are hard to see in the source: aliases, calls, pointers to functions. */
import { Datatype, Op } from 'onesided';
import { fenced, print, type RaceCase, type RaceContext } from './race-case.ts';

const four = Datatype.contiguous(4, Datatype.INT32);
const deep = (levels: number, last: () => void): void => {
  if (levels === 0) last();
  else deep(levels - 1, last);
};
const same = (array: Int32Array): Int32Array => array;

export const ATOMIC_CASES: readonly RaceCase[] = [
  {
    name: 'atomic/001 customdatatype',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Int32Array.of(1, 1, 1, 1), 1, 0, Op.SUM),
      2: ({ win }) =>
        win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 0, Op.SUM, { origin: { type: four }, target: { type: four } }),
    }),
  },
  {
    name: 'atomic/002 customdatatype',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Int16Array.of(1, 1, 1, 1) as never, 1, 0, Op.SUM),
      2: ({ win }) =>
        win.accumulate(Int32Array.of(1, 1, 1, 1), 1, 0, Op.SUM, { origin: { type: four }, target: { type: four } }),
    }),
  },
  {
    // Half an element further: displacements that are not aligned are refused, so another type takes their place.
    name: 'atomic/003 disp',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Int32Array.of(1, 1, 1, 1), 1, 1, Op.SUM),
      2: ({ win }) => win.accumulate(BigInt64Array.of(1n, 2n) as never, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'atomic/004 disp',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Int32Array.of(1, 1, 1, 1), 1, 0, Op.SUM),
      2: ({ win }) => win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 1, Op.SUM),
    }),
  },
  {
    name: 'atomic/005 short-int',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Int16Array.of(1, 1, 1, 1) as never, 1, 0, Op.SUM),
      2: ({ win }) => win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 0, Op.SUM),
    }),
  },
  {
    name: 'atomic/006 float-int',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Float32Array.of(1, 1, 1, 1) as never, 1, 0, Op.SUM),
      2: ({ win }) => win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 0, Op.SUM),
    }),
  },
  {
    name: 'atomic/007 float-int-sameorigin',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win }) => {
        win.accumulate(Float32Array.of(1, 1, 1, 1) as never, 1, 0, Op.SUM);
        win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 0, Op.SUM);
      },
    }),
  },
  {
    name: 'atomic/008 double-float',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Float64Array.of(1, 1, 1, 1) as never, 1, 0, Op.SUM),
      2: ({ win }) => win.accumulate(Float32Array.of(1, 2, 3, 4) as never, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'atomic/009 int-int',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win }) => win.accumulate(Int32Array.of(1, 1, 1, 1), 1, 0, Op.SUM),
      2: ({ win }) => win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 0, Op.SUM),
    }),
  },
  {
    name: 'atomic/010 int-int-sameorigin',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win }) => {
        win.accumulate(Int32Array.of(1, 1, 1, 1), 1, 0, Op.SUM);
        win.accumulate(Int32Array.of(1, 2, 3, 4), 1, 0, Op.SUM);
      },
    }),
  },
];

export const MISC_CASES: readonly RaceCase[] = [
  {
    name: 'misc/001 put-load-deep-nesting-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        deep(5, () => win.put(value, 1, 0));
        deep(5, () => print(value[0]));
      },
    }),
  },
  {
    name: 'misc/002 get-load-deep-nesting-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        deep(5, () => win.get(value, 1, 0));
        deep(5, () => print(value[0]));
      },
    }),
  },
  {
    name: 'misc/003 put-load-aliasing-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        const alias = value.subarray(0);
        win.put(value, 1, 0);
        print(alias[0]);
      },
    }),
  },
  {
    name: 'misc/004 get-load-aliasing-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        const alias = value.subarray(0);
        win.get(value, 1, 0);
        print(alias[0]);
      },
    }),
  },
  {
    name: 'misc/005 put-load-retval-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.put(same(value), 1, 0);
        print(same(value)[0]);
      },
    }),
  },
  {
    name: 'misc/006 get-load-retval-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.get(same(value), 1, 0);
        print(same(value)[0]);
      },
    }),
  },
  {
    name: 'misc/007 put-load-memcpy-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.put(value, 1, 0);
        value2.set(value);
      },
    }),
  },
  {
    name: 'misc/008 get-load-memcpy-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.get(value, 1, 0);
        value2.set(value);
      },
    }),
  },
  {
    name: 'misc/009 get-load-deep-nesting-remote',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => deep(5, () => win.get(value, 1, 0)),
      1: ({ win }) => deep(5, () => print(win.local[0])),
    }),
  },
  {
    name: 'misc/010 get-store-deep-nesting-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => deep(5, () => win.get(value, 1, 0)),
      1: ({ win }) =>
        deep(5, () => {
          win.local[0] = 42;
        }),
    }),
  },
  {
    name: 'misc/011 get-load-funcpointer-remote',
    racy: false,
    size: 2,
    run: fenced({ 0: (context) => pointers(context)[0](), 1: (context) => pointers(context)[1]() }),
  },
  {
    name: 'misc/012 get-store-funcpointer-remote',
    racy: true,
    size: 2,
    run: fenced({ 0: (context) => storing(context)[0](), 1: (context) => storing(context)[1]() }),
  },
  {
    name: 'misc/013 get-load-aliasing-remote',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      1: ({ win }) => print(new Uint8Array(win.local.buffer, win.local.byteOffset, 4)[1]),
    }),
  },
  {
    name: 'misc/014 get-store-aliasing-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      1: ({ win }) => {
        new Uint8Array(win.local.buffer, win.local.byteOffset, 4)[1] = 42;
      },
    }),
  },
  {
    name: 'misc/015 get-load-retval-remote',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(same(value), 1, 0),
      1: ({ win }) => print(same(win.local)[0]),
    }),
  },
  {
    name: 'misc/016 get-store-retval-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(same(value), 1, 0),
      1: ({ win }) => {
        same(win.local)[0] = 42;
      },
    }),
  },
  {
    name: 'misc/017 get-load-memcpy-remote',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      1: ({ win, value }) => value.set(win.local.subarray(0, 1)),
    }),
  },
  {
    name: 'misc/018 get-store-memcpy-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      1: ({ win, value }) => win.local.set(value),
    }),
  },
];

function pointers({ win, value }: RaceContext): readonly (() => void)[] {
  return [() => win.get(value, 1, 0), () => print(win.local[0])];
}

function storing({ win, value }: RaceContext): readonly (() => void)[] {
  return [
    () => win.get(value, 1, 0),
    () => {
      win.local[0] = 42;
    },
  ];
}
