/**
 * The rows of the benchmark on our windows (rma.ts): what each times, and what must have happened in the end. A row is
 * an entry here and one of bench/peers/rma.c.
 */
import { type Communicator, Lock, Op, type TransferLayout, type TypedArray, type Window } from 'onesided';
import type { Loop } from './samples.ts';

/** Operations of a bandwidth row before each flush. */
const DEPTH = 64;
/** Of the row `puts-flush`, whose time is that of all of them. */
const FEW = 16;
export const TARGET = 1;

/** `all`: every rank runs the loop in a lockAll epoch; `neighbours`: both run it, in epochs of their own. */
type Epoch = 'lock-all' | 'all' | 'per operation' | 'neighbours' | 'fences' | 'none';

/** How the target's elements lie. */
type Shape = 'vector' | 'subarray' | 'scattered';

interface Context {
  readonly world: Communicator;
  readonly window: Window;
  readonly origin: TypedArray;
  /** Elements of one operation. */
  readonly length: number;
  /** The target's, where it is not consecutive. */
  readonly layout: TransferLayout | undefined;
  /** Places in the window that the operations of a bandwidth row go to in turn; a power of two. */
  readonly places: number;
  /** Those of a vector. */
  readonly pieces: number;
}

/** The pieces of a vector as operations of their own: each with its origin, and where it goes. */
function separately({ origin, length, pieces }: Context): { readonly from: TypedArray; readonly to: number }[] {
  const each = length / pieces;
  return Array.from({ length: pieces }, (_, i) => ({
    from: origin.subarray(i * each, (i + 1) * each),
    to: 2 * i * each,
  }));
}

export interface Row {
  readonly epoch: Epoch;
  /** What must have happened in the end. */
  readonly check: 'written' | 'read' | 'counted' | 'all counted' | 'contended' | 'swapped' | 'nothing';
  readonly depth?: number;
  readonly element?: 'int64' | 'float64';
  readonly shape?: Shape;
  /** The window is made over memory of the program's own. */
  readonly ownMemory?: boolean;
  loop(context: Context): Loop;
}

function accumulateScattered(element: 'float64' | 'int64'): Row {
  return {
    epoch: 'lock-all',
    check: 'all counted',
    element,
    shape: 'scattered',
    loop:
      ({ window, origin, layout }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.accumulate(origin, TARGET, 0, Op.SUM, layout);
          window.flushSync(TARGET);
        }
      },
  };
}

export const ROWS: Readonly<Record<string, Row>> = {
  'put-flush': {
    epoch: 'lock-all',
    check: 'written',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.put(origin, TARGET, 0);
          window.flushSync(TARGET);
        }
      },
  },
  'puts-flush': {
    epoch: 'lock-all',
    check: 'written',
    loop:
      ({ window, origin, length }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < FEW; j++) window.put(origin, TARGET, j * length);
          window.flushSync(TARGET);
        }
      },
  },
  'put-flush-async': {
    epoch: 'lock-all',
    check: 'written',
    loop:
      ({ window, origin }) =>
      async (n) => {
        for (let i = 0; i < n; i++) {
          window.put(origin, TARGET, 0);
          await window.flush(TARGET);
        }
      },
  },
  'get-flush': {
    epoch: 'lock-all',
    check: 'read',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.get(origin, TARGET, 0);
          window.flushSync(TARGET);
        }
      },
  },
  'get-flush-async': {
    epoch: 'lock-all',
    check: 'read',
    loop:
      ({ window, origin }) =>
      async (n) => {
        for (let i = 0; i < n; i++) {
          window.get(origin, TARGET, 0);
          await window.flush(TARGET);
        }
      },
  },
  'fop-flush': {
    epoch: 'lock-all',
    check: 'counted',
    element: 'int64',
    loop: ({ window, origin }) => {
      const result = new BigInt64Array(1);
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.fetchAndOp(origin, result, TARGET, 0, Op.SUM);
          window.flushSync(TARGET);
        }
      };
    },
  },
  'cas-flush': {
    epoch: 'lock-all',
    check: 'swapped',
    element: 'int64',
    loop: ({ window, origin }) => {
      const compare = new BigInt64Array(1);
      const result = new BigInt64Array(1);
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.compareAndSwap(origin as BigInt64Array, compare, result, TARGET, 0);
          window.flushSync(TARGET);
        }
      };
    },
  },
  'acc-flush': {
    epoch: 'lock-all',
    check: 'counted',
    element: 'int64',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.accumulate(origin, TARGET, 0, Op.SUM);
          window.flushSync(TARGET);
        }
      },
  },
  'acc-flush-double': {
    epoch: 'lock-all',
    check: 'counted',
    element: 'float64',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.accumulate(origin, TARGET, 0, Op.SUM);
          window.flushSync(TARGET);
        }
      },
  },
  'lock-put-unlock': {
    epoch: 'per operation',
    check: 'written',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.lockSync(TARGET, Lock.EXCLUSIVE);
          window.put(origin, TARGET, 0);
          window.unlockSync(TARGET);
        }
      },
  },
  'lock-put-unlock-async': {
    epoch: 'per operation',
    check: 'written',
    loop:
      ({ window, origin }) =>
      async (n) => {
        for (let i = 0; i < n; i++) {
          await window.lock(TARGET, Lock.EXCLUSIVE);
          window.put(origin, TARGET, 0);
          await window.unlock(TARGET);
        }
      },
  },
  'lock-shared-put-unlock': {
    epoch: 'per operation',
    check: 'written',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.lockSync(TARGET, Lock.SHARED);
          window.put(origin, TARGET, 0);
          window.unlockSync(TARGET);
        }
      },
  },
  'put-bandwidth': {
    epoch: 'lock-all',
    check: 'written',
    depth: DEPTH,
    loop:
      ({ window, origin, length, places }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < DEPTH; j++) window.put(origin, TARGET, (j & (places - 1)) * length);
          window.flushSync(TARGET);
        }
      },
  },
  'get-bandwidth': {
    epoch: 'lock-all',
    check: 'read',
    depth: DEPTH,
    loop:
      ({ window, origin, length, places }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < DEPTH; j++) window.get(origin, TARGET, (j & (places - 1)) * length);
          window.flushSync(TARGET);
        }
      },
  },
  'fence-put-fence': {
    epoch: 'fences',
    check: 'written',
    loop: ({ world, window, origin }) => {
      const puts = world.rank === 0;
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.fenceSync();
          if (puts) window.put(origin, TARGET, 0);
          window.fenceSync();
        }
      };
    },
  },
  'fence-put-fence-async': {
    epoch: 'fences',
    check: 'written',
    loop: ({ world, window, origin }) => {
      const puts = world.rank === 0;
      return async (n) => {
        for (let i = 0; i < n; i++) {
          await window.fence();
          if (puts) window.put(origin, TARGET, 0);
          await window.fence();
        }
      };
    },
  },
  barrier: {
    epoch: 'none',
    check: 'nothing',
    loop:
      ({ world }) =>
      (n) => {
        for (let i = 0; i < n; i++) world.barrierSync();
      },
  },
  // The number of the row is a time, in microseconds, for which each rank computes.
  'ibarrier-compute': {
    epoch: 'none',
    check: 'nothing',
    loop:
      ({ world, pieces }) =>
      async (n) => {
        for (let i = 0; i < n; i++) {
          const barrier = world.barrier();
          await world.compute(pieces);
          await barrier;
        }
      },
  },
  'pscw-put': {
    epoch: 'neighbours',
    check: 'written',
    loop: ({ world, window, origin }) => {
      const other = world.group.include([1 - world.rank]);
      if (world.rank === 0) {
        return (n) => {
          for (let i = 0; i < n; i++) {
            window.startSync(other);
            window.put(origin, TARGET, 0);
            window.completeSync();
          }
        };
      }
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.postSync(other);
          window.waitSync();
        }
      };
    },
  },
  'lockall-put': {
    epoch: 'per operation',
    check: 'written',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.lockAllSync();
          window.put(origin, TARGET, 0);
          window.unlockAllSync();
        }
      },
  },
  'rput-wait': {
    epoch: 'lock-all',
    check: 'written',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) window.rput(origin, TARGET, 0).waitSync();
      },
  },
  'getacc-flush': {
    epoch: 'lock-all',
    check: 'counted',
    element: 'int64',
    loop: ({ window, origin }) => {
      const result = new BigInt64Array(1);
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.getAccumulate(origin, result, TARGET, 0, Op.SUM);
          window.flushSync(TARGET);
        }
      };
    },
  },
  sync: {
    epoch: 'lock-all',
    check: 'nothing',
    loop:
      ({ window }) =>
      (n) => {
        for (let i = 0; i < n; i++) window.sync();
      },
  },
  'acc-doubles': {
    epoch: 'lock-all',
    check: 'all counted',
    element: 'float64',
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.accumulate(origin, TARGET, 0, Op.SUM);
          window.flushSync(TARGET);
        }
      },
  },
  'getacc-doubles': {
    epoch: 'lock-all',
    check: 'all counted',
    element: 'float64',
    loop: ({ world, window, origin }) => {
      const result = world.allocMem(Float64Array, origin.length);
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.getAccumulate(origin, result, TARGET, 0, Op.SUM);
          window.flushSync(TARGET);
        }
      };
    },
  },
  'acc-contended': {
    epoch: 'all',
    check: 'contended',
    element: 'int64',
    loop: ({ world, window, origin }) => {
      const disp = 8 * world.rank;
      return (n) => {
        for (let i = 0; i < n; i++) {
          window.accumulate(origin, TARGET, disp, Op.SUM);
          window.flushSync(TARGET);
        }
      };
    },
  },
  'put-vector': {
    epoch: 'lock-all',
    check: 'written',
    shape: 'vector',
    loop:
      ({ window, origin, layout }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.put(origin, TARGET, 0, layout);
          window.flushSync(TARGET);
        }
      },
  },
  'separate-puts': {
    epoch: 'lock-all',
    check: 'written',
    shape: 'vector',
    loop: (context) => {
      const { window } = context;
      const puts = separately(context);
      return (n) => {
        for (let i = 0; i < n; i++) {
          for (const { from, to } of puts) window.put(from, TARGET, to);
          window.flushSync(TARGET);
        }
      };
    },
  },
  'aggregate-puts': {
    epoch: 'lock-all',
    check: 'written',
    shape: 'vector',
    loop: (context) => {
      const { window } = context;
      const puts = separately(context);
      return (n) => {
        for (let i = 0; i < n; i++) {
          const batch = window.aggregate(TARGET);
          for (const { from, to } of puts) batch.put(from, to);
          batch.waitSync();
        }
      };
    },
  },
  'get-vector': {
    epoch: 'lock-all',
    check: 'read',
    shape: 'vector',
    loop:
      ({ window, origin, layout }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.get(origin, TARGET, 0, layout);
          window.flushSync(TARGET);
        }
      },
  },
  'put-subarray': {
    epoch: 'lock-all',
    check: 'written',
    shape: 'subarray',
    loop:
      ({ window, origin, layout }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.put(origin, TARGET, 0, layout);
          window.flushSync(TARGET);
        }
      },
  },
  'acc-indexed': accumulateScattered('float64'),
  'acc-indexed-integer': accumulateScattered('int64'),
  'put-usermemory': {
    epoch: 'lock-all',
    check: 'written',
    ownMemory: true,
    loop:
      ({ window, origin }) =>
      (n) => {
        for (let i = 0; i < n; i++) {
          window.put(origin, TARGET, 0);
          window.flushSync(TARGET);
        }
      },
  },
  'barrier-async': {
    epoch: 'none',
    check: 'nothing',
    loop:
      ({ world }) =>
      async (n) => {
        for (let i = 0; i < n; i++) await world.barrier();
      },
  },
};
