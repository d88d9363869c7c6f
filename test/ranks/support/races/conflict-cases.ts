/** Which accesses of one epoch meet: at the origin (`local`), and at the target (`remote`). */
import { Op } from 'onesided';
import { fenced, print, type RaceCase } from './race-case.ts';

const one = Int32Array.of(1);

export const CONFLICT_CASES: readonly RaceCase[] = [
  {
    name: 'conflict/001 put-load-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.put(value, 1, 0);
        print(value[0]);
      },
    }),
  },
  {
    name: 'conflict/002 put-store-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.put(value, 1, 0);
        value[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/003 put-put-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.put(value, 1, 0);
        win.put(value, 1, 1);
      },
    }),
  },
  {
    name: 'conflict/004 get-load-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.get(value, 1, 0);
        print(value[0]);
      },
    }),
  },
  {
    name: 'conflict/005 get-store-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.get(value, 1, 0);
        value[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/006 get-put-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.get(value, 1, 0);
        win.put(value, 1, 1);
      },
    }),
  },
  {
    name: 'conflict/007 get-get-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.get(value, 1, 0);
        win.get(value, 1, 1);
      },
    }),
  },
  {
    name: 'conflict/008 acc-store-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.accumulate(value, 1, 0, Op.SUM);
        value[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/009 acc-load-local',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => {
        win.accumulate(value, 1, 0, Op.SUM);
        print(value[0]);
      },
    }),
  },
  {
    name: 'conflict/010 gacc-store-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.getAccumulate(value, value2, 1, 0, Op.SUM);
        value2[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/011 gacc-load-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.getAccumulate(value, value2, 1, 0, Op.SUM);
        print(value2[0]);
      },
    }),
  },
  {
    name: 'conflict/012 fop-store-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.fetchAndOp(value, value2, 1, 0, Op.SUM);
        value[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/013 fop-load-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.fetchAndOp(value, value2, 1, 0, Op.SUM);
        print(value2[0]);
      },
    }),
  },
  {
    name: 'conflict/014 cas-store-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.compareAndSwap(value, win.local.subarray(0, 1), value2, 1, 0);
        value[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/015 cas-load-local',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => {
        win.compareAndSwap(value, win.local.subarray(0, 1), value2, 1, 0);
        print(value2[0]);
      },
    }),
  },
  {
    name: 'conflict/016 get-load-remote',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'conflict/017 get-get-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      2: ({ win, value }) => win.get(value, 1, 0),
    }),
  },
  {
    name: 'conflict/018 get-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/019 get-put-remote',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      2: ({ win, value }) => win.put(value, 1, 0),
    }),
  },
  {
    name: 'conflict/020 get-gaccread-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      2: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
    }),
  },
  {
    name: 'conflict/021 get-acc-remote',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.get(value, 1, 0),
      2: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'conflict/022 put-load-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.put(value, 1, 0),
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'conflict/023 put-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.put(value, 1, 0),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/024 put-put-remote',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.put(value, 1, 0),
      2: ({ win, value }) => win.put(value, 1, 0),
    }),
  },
  {
    name: 'conflict/025 put-gaccread-remote',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.put(value, 1, 0),
      2: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
    }),
  },
  {
    name: 'conflict/026 put-acc-remote',
    racy: true,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.put(value, 1, 0),
      2: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'conflict/027 acc-load-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'conflict/028 acc-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/029 acc-acc-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
      2: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'conflict/030 acc-gaccread-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.accumulate(value, 1, 0, Op.SUM),
      2: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
    }),
  },
  {
    name: 'conflict/031 gaccread-gaccread-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
      2: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
    }),
  },
  {
    name: 'conflict/032 gaccread-load-remote',
    racy: false,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
      1: ({ win }) => print(win.local[0]),
    }),
  },
  {
    name: 'conflict/033 gaccread-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value }) => win.getAccumulate<Int32Array>(null, value, 1, 0, Op.NO_OP),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/034 gacc-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => win.getAccumulate(value, value2, 1, 0, Op.SUM),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/035 gacc-gacc-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value, value2 }) => win.getAccumulate(value, value2, 1, 0, Op.SUM),
      2: ({ win, value, value2 }) => win.getAccumulate(value, value2, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'conflict/036 fop-fop-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value, value2 }) => win.fetchAndOp(value, value2, 1, 0, Op.SUM),
      2: ({ win, value, value2 }) => win.fetchAndOp(value, value2, 1, 0, Op.SUM),
    }),
  },
  {
    name: 'conflict/037 fop-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => win.fetchAndOp(value, value2, 1, 0, Op.SUM),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/038 cas-store-remote',
    racy: true,
    size: 2,
    run: fenced({
      0: ({ win, value, value2 }) => win.compareAndSwap(value, one, value2, 1, 0),
      1: ({ win }) => {
        win.local[0] = 42;
      },
    }),
  },
  {
    name: 'conflict/039 cas-cas-remote',
    racy: false,
    size: 3,
    run: fenced({
      0: ({ win, value, value2 }) => win.compareAndSwap(value, one, value2, 1, 0),
      2: ({ win, value, value2 }) => win.compareAndSwap(value, one, value2, 1, 0),
    }),
  },
];
