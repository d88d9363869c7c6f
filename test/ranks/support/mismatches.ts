/** Programs whose ranks call different collectives, and what each rank must be told. */
import { Assert, type Communicator, type FenceSchemeName, Op, Window } from 'onesided';

export interface Mismatch {
  readonly name: string;
  readonly size: number;
  /** It blocks its ranks' threads. */
  readonly blocks?: boolean;
  /** What a rank does on a fresh communicator. */
  run(comm: Communicator): Promise<unknown>;
  /** What must be in the words for how each rank's program ended. */
  readonly told: readonly (readonly string[])[];
}

/** How a rank's program ends: `done`, or its error's code and message. */
export function ending(mismatch: Mismatch, comm: Communicator): Promise<string> {
  return mismatch.run(comm).then(
    () => 'done',
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );
}

/** What is missing in the endings of all ranks, by rank. */
export function missing({ told }: Mismatch, endings: readonly string[]): string[] {
  return told.flatMap((parts, rank) =>
    parts
      .filter((part) => !endings[rank].includes(part))
      .map((part) => `rank ${rank}: "${part}" in "${endings[rank]}"`),
  );
}

const four = (fill = 0): Float64Array => new Float64Array(4).fill(fill);

function told(rank: number, theirs: string, mine: string, number = '1st'): string[] {
  return [
    `ERR_COLLECTIVE: rank ${rank} called ${theirs}, its ${number} collective on communicator`,
    `while this rank called ${mine};`,
  ];
}

/** Of two ranks, each is told what the other one called. */
const each = (calls: readonly [string, string], number: string): Mismatch['told'] => [
  told(1, calls[1], calls[0], number),
  told(0, calls[0], calls[1], number),
];

const BROADCAST = 'broadcast(Float64Array of 4, root 0)';
const SUM = 'allreduce(Float64Array of 4, SUM)';

/** Two ranks, each of which makes a call of its own. */
function two(
  name: string,
  calls: readonly [string, string],
  first: (comm: Communicator) => Promise<unknown>,
  second: (comm: Communicator) => Promise<unknown>,
  number = '1st',
): Mismatch {
  return { name, size: 2, run: (comm) => (comm.rank === 0 ? first(comm) : second(comm)), told: each(calls, number) };
}

const sum = (comm: Communicator): Promise<void> => comm.allreduce(four(), four(), Op.SUM);

export const MISMATCHES: readonly Mismatch[] = [
  {
    name: 'allreduce among broadcasts',
    size: 4,
    async run(comm) {
      if (comm.rank === 2) return comm.allreduce(four(7), four(), Op.SUM);
      const mine = four();
      await comm.broadcast(mine, 0);
      if (mine.some((x) => x !== 0)) throw new Error(`a broadcast gave ${mine}`);
    },
    told: [['done'], ['done'], told(0, BROADCAST, SUM), told(2, SUM, BROADCAST)],
  },
  two(
    'another length',
    ['allreduce(Float64Array of 5, SUM)', SUM],
    (comm) => comm.allreduce(new Float64Array(5), new Float64Array(5), Op.SUM),
    sum,
  ),
  two('another operation', [SUM, 'allreduce(Float64Array of 4, MAX)'], sum, (comm) =>
    comm.allreduce(four(), four(), Op.MAX),
  ),
  two('another type of as many bytes', [SUM, 'allreduce(BigInt64Array of 4, SUM)'], sum, (comm) =>
    comm.allreduce(new BigInt64Array(4), new BigInt64Array(4), Op.SUM),
  ),
  {
    // Whoever has its buffer before another root's message comes is told in its next collective.
    name: 'another root',
    size: 3,
    async run(comm) {
      await comm.broadcast(four(), comm.rank === 1 ? 1 : 0);
      await sum(comm);
    },
    told: [
      ['ERR_COLLECTIVE: rank 1 called broadcast(Float64Array of 4, root 1), its 1st collective'],
      ['ERR_COLLECTIVE: rank 0 called broadcast(Float64Array of 4, root 0), its 1st collective'],
      ['ERR_COLLECTIVE: rank 1 called broadcast(Float64Array of 4, root 1), its 1st collective'],
    ],
  },
  {
    // Rank 0 is told in its first call or in its second, as it happens.
    name: 'a call that the other rank leaves out',
    size: 2,
    async run(comm) {
      if (comm.rank === 0) await comm.gather(four(), null, 1);
      await sum(comm);
    },
    told: [[told(1, SUM, SUM)[0]], told(0, 'gather(Float64Array of 4, root 1)', SUM)],
  },
  {
    name: 'two calls begun at once, in another order',
    size: 2,
    async run(comm) {
      const both = comm.rank === 0 ? [comm.broadcast(four(), 0), sum(comm)] : [sum(comm), comm.broadcast(four(), 0)];
      const [first, second] = await Promise.allSettled(both);
      if (comm.rank === 1 && second.status === 'rejected') {
        throw new Error(`first: ${(first as PromiseRejectedResult).reason.code}, second: ${second.reason.code}`);
      }
      await Promise.all(both);
    },
    told: [[told(1, SUM, SUM)[0]], ['first: ERR_COLLECTIVE, second: ERR_COMM']],
  },
  two('a split and a reduction', ['split()', SUM], (comm) => comm.split(0), sum),
  two('a window and a reduction', ['Window.allocate()', SUM], (comm) => Window.allocate(comm, Float64Array, 4), sum),
  two(
    'windows of two kinds',
    ['Window.allocate()', 'Window.createDynamic()'],
    (comm) => Window.allocate(comm, Float64Array, 4),
    (comm) => Window.createDynamic(comm),
  ),
  two(
    'fences of two windows',
    ['win.fence() of the 1st window', 'win.fence() of the 2nd window'],
    (comm) => windows(comm).then(([a]) => a.fence()),
    (comm) => windows(comm).then(([, b]) => b.fence()),
    '3rd',
  ),
  two(
    'the ends of two windows',
    ['win.free() of the 1st window', 'win.free() of the 2nd window'],
    (comm) => windows(comm).then(([a]) => a.free()),
    (comm) => windows(comm).then(([, b]) => b.free()),
    '3rd',
  ),
];

/** The same with barriers, of ranks that wait for long. Tasks are told of the deadlock instead. */
export const BARRIER_MISMATCHES: readonly Mismatch[] = [
  ...(['broadcast', 'allreduce', 'finalize'] as const).flatMap((name) =>
    [false, true].map((sync): Mismatch => {
      const call = { broadcast: BROADCAST, allreduce: SUM, finalize: 'finalize()' }[name];
      return {
        name: `a barrier beside ${name}${sync ? ', blocking' : ''}`,
        size: 3,
        async run(comm) {
          await sum(comm);
          await comm.barrier();
          if (comm.rank === 1) {
            if (sync) comm.barrierSync();
            else await comm.barrier();
          } else if (name === 'finalize') await comm.finalize();
          else if (name === 'allreduce') await sum(comm);
          // Who sends is told in what comes next.
          else await comm.broadcast(four(), 1).then(() => sum(comm));
        },
        told:
          name === 'broadcast'
            ? [
                ['ERR_COLLECTIVE: rank ', 'called barrier, its 2nd', 'broadcast(Float64Array of 4, root 1), its 2nd'],
                ['ERR_COLLECTIVE: rank ', 'while this rank called barrier, its 2nd', 'broadcast(Float64Array of 4'],
                ['ERR_COLLECTIVE: rank ', 'called barrier, its 2nd', 'broadcast(Float64Array of 4, root 1), its 2nd'],
              ]
            : [
                ['ERR_COLLECTIVE: rank ', 'rank 1 called barrier, its 2nd', `${call}, its 2nd collective`],
                [
                  'ERR_COLLECTIVE: rank ',
                  'while this rank called barrier, its 2nd',
                  `called ${call}, its 2nd collective`,
                ],
                ['ERR_COLLECTIVE: rank ', 'rank 1 called barrier, its 2nd', `${call}, its 2nd collective`],
              ],
      };
    }),
  ),
  {
    name: 'barriers and collectives begun at once, in another order',
    size: 2,
    async run(comm) {
      const both = comm.rank === 0 ? [comm.barrier(), sum(comm), comm.barrier()] : [comm.barrier(), comm.barrier()];
      await Promise.all(both);
      if (comm.rank === 1) await sum(comm);
    },
    told: [
      [`rank 1 called barrier, its 2nd on communicator`, `called ${SUM}, its 1st collective on it`],
      ['ERR_COLLECTIVE: rank 0 gave up its 1st collective', 'while this rank called barrier, its 2nd'],
    ],
  },
];

/** Two windows whose fences exchange messages. */
function windows(comm: Communicator): Promise<[Window, Window]> {
  return windowsOf(comm, 'deferred');
}

async function windowsOf(comm: Communicator, fence: FenceSchemeName | undefined): Promise<[Window, Window]> {
  const make = (): Promise<Window> =>
    Window.allocate(comm, Int32Array, 1, { info: fence === undefined ? {} : { fence } });
  return [await make(), await make()];
}

/** Calls of the others beside a fence of rank 1, and what is said of them. */
const BESIDE_FENCES: readonly {
  readonly name: string;
  call(comm: Communicator, windows: [Window, Window], sync: boolean): Promise<unknown>;
  readonly words: string;
}[] = [
  {
    name: 'a barrier',
    call: async (comm, _windows, sync) => (sync ? comm.barrierSync() : comm.barrier()),
    words: 'barrier, its 1st',
  },
  {
    name: "another window's fence",
    call: async (_comm, [, b], sync) => (sync ? b.fenceSync() : b.fence()),
    words: 'win.fence() of the 2nd window',
  },
  // Who sends is told in what comes next.
  {
    name: 'broadcast',
    call: (comm, [, b]) => comm.broadcast(four(), 1).then(() => b.fence()),
    words: 'broadcast(Float64Array of 4, root 1)',
  },
  { name: 'allreduce', call: (comm) => sum(comm), words: SUM },
  { name: 'free', call: (_comm, [, b]) => b.free(), words: 'win.free() of the 2nd window' },
];

/** Ranks 0 and 2 call something else than the fence of rank 1. */
function besideFence(
  fence: FenceSchemeName | undefined,
  assertion: number,
  sync: boolean,
  { name, call, words }: (typeof BESIDE_FENCES)[number],
): Mismatch {
  const asserted = assertion === 0 ? '' : ', asserted';
  return {
    name: `a fence (${fence ?? 'default'}${asserted}) beside ${name}${sync ? ', blocking' : ''}`,
    size: 3,
    blocks: sync,
    async run(comm) {
      const pair = await windowsOf(comm, fence);
      const [a] = pair;
      for (const window of pair) for (let i = 0; i < 3; i++) await window.fence();
      if (comm.rank !== 1) await call(comm, pair, sync);
      else if (sync) a.fenceSync(assertion);
      else await a.fence(assertion);
    },
    told: [words, 'of the 1st window', words].map((mine) => ['ERR_COLLECTIVE: rank ', mine, 'of the 1st window']),
  };
}

/** Fences of windows beside other collectives. Tasks are told of the deadlock where no messages show it. */
export const FENCE_MISMATCHES: readonly Mismatch[] = [
  ...BESIDE_FENCES.flatMap((other) => [false, true].map((sync) => besideFence(undefined, 0, sync, other))),
  ...BESIDE_FENCES.flatMap((other) =>
    (['remote-notify', 'deferred', 'immediate-naive', 'immediate-optimized', 'notify-all'] as const).flatMap((fence) =>
      (fence === 'deferred' ? [0] : [0, Assert.NO_PRECEDE]).map((assertion) =>
        besideFence(fence, assertion, false, other),
      ),
    ),
  ),
  {
    name: 'fences and barriers in the same order, of a rank that comes late',
    size: 3,
    async run(comm) {
      const [a, b] = await windowsOf(comm, undefined);
      for (const call of [() => a.fence(), () => comm.barrier(), () => b.fence(), () => sum(comm), () => a.fence()]) {
        if (comm.rank === 1) await new Promise((resolve) => setTimeout(resolve, 1300));
        await call();
      }
      await a.free();
      await b.fence();
    },
    told: [['done'], ['done'], ['done']],
  },
];
