/**
 * Rows that are measured on real ranks as well (`--real`), by the programs of their figures: processes of this host,
 * and where a claim is about more and more of them, as many as it has cores for, up to 16. What a fabric is needed for
 * is not there: a row's 8 to 64 nodes, more ranks than processors, and how long a message takes from node to node. An
 * emulated network in shared memory is between the ranks, so requests of the network are about as fast as stores.
 *
 * Each row has a verdict for this machine, by the criterion of its figure where that is one of counts or of who is
 * faster, with tolerances for a machine that does other things too.
 */
import { Assert, type WindowInfo } from 'onesided';
import type { EpochsResult, WayName } from '../hpcc/epochs.ts';
import { UPDATE_WAYS } from './chapter-7.ts';
import { FENCES, type Fence, forEach, POLICIES } from './figure.ts';
import {
  type By,
  by,
  field,
  NOTHING_UNDER_WAY,
  OPERATIONS,
  ofMore,
  onRanks,
  processes,
  RANKS,
  type RealRow,
  type Result,
  rises,
  SAMPLES,
  show,
  told,
  toldEach,
  WARM,
} from './on-ranks.ts';
import { ASSERTIONS, mean, sum, together } from './programs.ts';
import { ROWS_8_9 } from './real-8-9.ts';
import { BSP_ROWS } from './real-bsp.ts';

const TWO = ['two-sided', 'direct'] as const;
const THREE = ['two-sided', 'direct', 'hybrid'] as const;

/**
 * As in the figures: `two-sided` is the dissertation's, which does not wait for the lock. Locks around nothing are
 * waited for.
 */
const LOCKS: Readonly<Record<(typeof TWO)[number], WindowInfo>> = {
  'two-sided': { lock: 'two-sided', lock_defer: true },
  direct: { lock: 'direct' },
};
const FENCE_HINTS = Object.fromEntries(FENCES.map((fence) => [fence, { fence }])) as Readonly<
  Record<Fence, WindowInfo>
>;

const NO_ADAPTER =
  'here a compare-and-swap is one instruction and a message wakes another process; ' +
  'there is no adapter with a slow loopback';

const ROWS: Readonly<Record<string, () => Promise<RealRow>>> = {
  ...ROWS_8_9,
  ...BSP_ROWS,
  'D4.1': async () => {
    const computing = (compute: number): Promise<By<(typeof TWO)[number], Result<'locked'>>> =>
      by(TWO, async (lock) => {
        const options = { info: { lock }, compute, rounds: SAMPLES, warm: WARM };
        const [found] = await onRanks(2, 'locked', options);
        return found;
      });
    const tell = ({ took, atomics, messages }: Result<'locked'>): string =>
      `${show(took)} (${show(atomics)} atomic operations, ${show(messages)} messages)`;
    const [idle, busy] = [await computing(0), await computing(400)];
    return {
      measured:
        `2 processes, µs for lock and unlock: target idle: ${told(idle, tell)}; target computes for ` +
        `400 µs: ${told(busy, tell)}`,
      expected:
        'direct: two atomic operations, no message, and at most a tenth of the computation longer; two-sided: ' +
        'at least three quarters of it longer',
      holds:
        [idle, busy].every(({ direct }) => direct.atomics === 2 && direct.messages === 0) &&
        busy.direct.took - idle.direct.took <= 40 &&
        busy['two-sided'].took - idle['two-sided'].took >= 300,
    };
  },
  'D4.2': async () => {
    const found = await onRanks(4, 'sharing', { info: { lock: 'direct' }, locks: 500, shared: 50 });
    const [violations, most] = [sum(found, 'violations'), Math.max(...found.map((one) => one.together))];
    return {
      measured:
        `4 processes, 500 locks each, half of them shared: ${violations} violations, ` +
        `at most ${most} shared holders at a time`,
      expected: 'no violation; several ranks hold shared locks at a time',
      holds: violations === 0 && most > 1,
    };
  },
  'D4.3': async () => {
    const of = (bytes: number, operation: 'put' | 'get'): Promise<By<(typeof TWO)[number], number>> =>
      by(TWO, async (lock) => {
        const samples = bytes < 65536 ? SAMPLES : SAMPLES / 10;
        const [took] = await onRanks(2, 'epoch', { info: LOCKS[lock], bytes, operation, samples, warm: samples });
        return took;
      });
    const found = await forEach(OPERATIONS, async (operation) => ({
      operation,
      small: await of(4, operation),
      large: await of(2 ** 18, operation),
    }));
    return {
      measured:
        '2 processes, µs: ' +
        found
          .map(
            ({ operation, small, large }) =>
              `${operation} 4 B: ${told(small, show)}; ${operation} 256 KiB: ${told(large, show)}`,
          )
          .join('; '),
      expected: 'put and get: two-sided faster at 4 bytes, direct at most 2 % slower at 256 KiB',
      holds: found.every(
        ({ small, large }) => small['two-sided'] < small.direct && large.direct <= 1.02 * large['two-sided'],
      ),
      why: NO_ADAPTER,
    };
  },
  'D4.4': async () => {
    const found = await field('overlap', 2, '--side sender --operation put --bytes 262144', LOCKS, 'overlap');
    return {
      measured: `2 processes, put of 256 KiB, overlap in %: ${told(found, show)}`,
      expected: 'direct at least 85 %, two-sided below 10 %',
      holds: found.direct >= 85 && found['two-sided'] < 10,
      why: NOTHING_UNDER_WAY,
    };
  },
  'D4.6': async () => {
    const args = '--side receiver --bytes 32768 --pieces 2000 --form promise';
    const found = await forEach(RANKS, (ranks) => field('overlap', ranks, args, LOCKS, 'slowdown'));
    return {
      measured:
        `${RANKS.map((ranks) => ranks - 1).join(', ')} origins, computation of the target, ` +
        `relative to its time alone: ${toldEach(found, show)}`,
      expected: `direct at most 1.1, two-sided above direct${ofMore(', and slower with more', 'how it grows')}`,
      holds:
        found.every((one) => one.direct <= 1.1 && one['two-sided'] > one.direct) &&
        rises(found.map((one) => one['two-sided'])),
    };
  },
  'D4.7': async () => {
    const found = await field('lu', 2, '--n 1024 --samples 3', LOCKS, 'milliseconds');
    return {
      measured: `2 processes, n = 1024, ms: ${told(found, show)}`,
      expected: 'direct at least 25 % faster',
      holds: found.direct <= 0.75 * found['two-sided'],
    };
  },
  'D5.1': async () => {
    // As if there were two of them on each of two hosts: on one, a lock stays in CPU mode.
    const env = { ONESIDED_DEBUG: 'requests,neighbours' };
    const found = await by(POLICIES, async (policy) => {
      const info = { lock: 'hybrid', lock_migration: policy } as const;
      const all = await onRanks(4, 'sharing', { info, locks: 250, shared: 25 }, env);
      return { violations: sum(all, 'violations'), migrations: sum(all, 'migrations') };
    });
    const changes = POLICIES.map((policy) => found[policy].migrations);
    return {
      measured:
        '4 processes, as if on 2 nodes, 250 locks each: ' +
        `${told(found, ({ violations, migrations }) => `${violations} violations, ${migrations} changes of mode`)}`,
      expected: 'no violation; changes of mode with every policy except never, most with every-request',
      holds:
        POLICIES.every((policy) => found[policy].violations === 0) &&
        changes.every((n, i) => n > 0 !== (POLICIES[i] === 'never')) &&
        changes[0] === Math.max(...changes),
    };
  },
  'D5.2': async () => {
    const found = await paired(1);
    return {
      measured: `2 processes, µs: ${told(found, show)}`,
      expected: 'hybrid < two-sided < direct',
      holds: found.hybrid < found['two-sided'] && found['two-sided'] < found.direct,
      why: NO_ADAPTER,
    };
  },
  'D5.3': async () => {
    const [idle, busy] = [await paired(1), await paired(1, { compute: 100, pieces: 4 * SAMPLES })];
    return {
      measured: `2 processes, µs: no computation: ${told(idle, show)}; pieces of 100 µs: ${told(busy, show)}`,
      expected:
        'with pieces of 100 µs, two-sided takes at least 5 times as long as without, ' +
        'the others at most a tenth of a piece longer',
      holds:
        busy['two-sided'] >= 5 * idle['two-sided'] &&
        busy.direct - idle.direct <= 10 &&
        busy.hybrid - idle.hybrid <= 10,
    };
  },
  'D5.5': async () => {
    const takers = [1, 2, ...RANKS.slice(1).map((ranks) => ranks - 1)];
    const found = await forEach(takers, (others) => paired(others));
    const oneWord = await forEach(takers, (others) => pairedBy({ lock: 'hybrid', lock_cpu: 'one-word' }, others));
    return {
      measured:
        `${takers.join(', ')} ranks take the lock of one more, in all up to ${processes(takers.at(-1)! + 1)}, µs: ` +
        `${toldEach(found, show)}; hybrid with one word ${oneWord.map(show).join(', ')}`,
      expected: 'hybrid fastest, direct slowest',
      holds: found.every(
        ({ 'two-sided': twoSided, direct, hybrid }) => hybrid <= Math.min(twoSided, direct) && direct >= twoSided,
      ),
      why: NO_ADAPTER,
    };
  },
  'D6.1': async () => {
    const epochs = 200;
    const ranks = 4;
    const found = await by(FENCES, async (fence) =>
      together(await onRanks(ranks, 'counted', { fence, seed: 1, epochs })),
    );
    const must = (name: Fence, puts: number): readonly number[] => [
      name === 'deferred' ? puts : 0,
      name === 'immediate-naive' || name === 'immediate-optimized' ? puts : 0,
      name === 'immediate-naive' ? ranks * 2 * epochs * (ranks - 1) : 0,
      0,
    ];
    return {
      measured:
        `4 processes, ${2 * epochs} fences each: ` +
        told(
          found,
          ({ puts, messages, finishes, flags, wrong }) =>
            `${messages} messages, ${finishes} finish messages, ${flags} flags for ${puts} puts, ${wrong} wrong values`,
        ),
      expected:
        'the counts of the figure: a message, a finish message or neither for each put; ' +
        'flags only with immediate-naive; no wrong value',
      holds: FENCES.every((name) => {
        const { puts, messages, finishes, flags, wrong } = found[name];
        const counts = [messages, finishes, flags, wrong];
        return must(name, puts).every((count, k) => count === counts[k]);
      }),
    };
  },
  'D6.3': async () => {
    const found = await field('overlap', 2, '--side fence --bytes 131072', FENCE_HINTS, 'overlap');
    return {
      measured: `2 processes, put of 128 KiB, overlap in %: ${told(found, show)}`,
      expected: 'deferred below 10 %, the others at least 80 %',
      holds: FENCES.every((name) => (name === 'deferred' ? found[name] < 10 : found[name] >= 80)),
      why: NOTHING_UNDER_WAY,
    };
  },
  'D6.7': async () => {
    const args = '--neighbours 8 --bytes 32768 --compute 200 --steps 50';
    const found = await field('halo', 4, args, FENCE_HINTS, 'microseconds');
    const times = Object.values(found);
    return {
      measured: `${processes(4)}, µs per step: ${told(found, show)}`,
      expected: 'remote-notify fastest (within 1 %), deferred slowest',
      holds: found['remote-notify'] <= 1.01 * Math.min(...times) && found.deferred === Math.max(...times),
    };
  },
  'D6.9': async () => {
    const times = await by(FENCES, (fence) =>
      forEach(ASSERTIONS, async (assert) =>
        mean(await onRanks(2, 'fences', { fence, epochs: SAMPLES, warm: WARM, assert })),
      ),
    );
    const [{ right, refills }] = await onRanks(4, 'flooded', { puts: 5000, compute: 5000 });
    return {
      measured:
        `2 processes, µs: ${told(times, (all) => all.map(show).join(' / '))}; ` +
        `4 × 5000 notified puts to one of 4 processes ${right ? 'arrive once each' : 'do NOT arrive once each'} ` +
        `and make it post more receives ${refills} times`,
      expected:
        'for every scheme: with NO_SUCCEED or NO_PRECEDE at most a tenth slower than with neither, ' +
        'with both at most a tenth of that time; the puts arrive. Puts that find no receive are not counted here',
      holds:
        right &&
        FENCES.every((name) => {
          const [all, ends, opens, neither] = times[name];
          return Math.max(ends, opens) <= 1.1 * all && neither <= 0.1 * all;
        }),
    };
  },
  'D7.2': async () => {
    const found = await across(['get-modify-put', 'accumulate']);
    const leads = found.map((one) => one.accumulate.rate - one['get-modify-put'].rate);
    return {
      measured: `${RANKS.join(', ')} processes, million updates a second: ${toldRates(found)}`,
      expected: `accumulate is faster and loses no update${ofMore(', by more with more', 'whether the gap grows')}`,
      holds: leads[0] > 0 && rises(leads) && found.every(({ accumulate }) => accumulate.lost === 0),
    };
  },
  'D7.3': async () => {
    const how = ['an epoch each', 'one epoch', 'packed'] as const;
    const found = await by(how, async (how) => {
      const [took] = await onRanks(2, 'many', { info: LOCKS['two-sided'], number: 512, how, samples: 20 });
      return took;
    });
    const ways = await across(['accumulate', 'packed']);
    return {
      measured:
        `2 processes, 512 updates, µs: ${told(found, show)}; RandomAccess of ${RANKS.join(', ')} processes, ` +
        `million updates a second: ${toldRates(ways)}`,
      expected: 'packed faster than an epoch for each update, and in RandomAccess faster than accumulate',
      holds:
        found.packed < found['an epoch each'] && ways.every(({ packed, accumulate }) => packed.rate > accumulate.rate),
    };
  },
  'D7.4': async () => {
    const of = async (way: 'get-modify-put' | 'accumulate', info: WindowInfo, assert: number): Promise<number> => {
      const [took] = await onRanks(2, 'single', { info, way, assert, samples: SAMPLES });
      return took;
    };
    const times = {
      'get-modify-put': await of('get-modify-put', LOCKS['two-sided'], 0),
      accumulate: await of('accumulate', LOCKS['two-sided'], 0),
      direct: await of('accumulate', {}, Assert.NO_CHECK),
    };
    const ways = await across(['get-modify-put', 'accumulate', 'direct']);
    const leads = ways.map((one) => one.direct.rate - Math.max(one['get-modify-put'].rate, one.accumulate.rate));
    return {
      measured:
        `2 processes, a single update, µs: ${told(times, show)}; RandomAccess of ${RANKS.join(', ')} processes, ` +
        `million updates a second: ${toldRates(ways)}`,
      expected:
        'direct takes the least time, and is the fastest in RandomAccess' +
        ofMore(', by more with more processes', 'how it scales'),
      holds: times.direct < Math.min(times['get-modify-put'], times.accumulate) && leads[0] > 0 && rises(leads),
    };
  },
  'D7.5': async () => {
    const found = await across(['packed', 'direct']);
    return {
      measured: `${RANKS.join(', ')} processes, million updates a second: ${toldRates(found)}`,
      expected: `packed faster${ofMore(', by a smaller factor with more', 'whether the gap narrows')}`,
      holds:
        found.every(({ packed, direct }) => packed.rate > direct.rate) &&
        rises(found.map(({ packed, direct }) => direct.rate / packed.rate)),
      why:
        'here an update of the adapter is one instruction of the origin, ' +
        'and nothing is saved by sending many at once',
    };
  },
};

/** RandomAccess with an epoch for each update, or each pack of them, for each number of processes. */
function across<W extends WayName>(ways: readonly W[]): Promise<By<W, EpochsResult>[]> {
  return forEach(RANKS, (ranks) =>
    by(ways, async (way) => {
      const [result] = await onRanks(ranks, 'updates', { way, words: 2 ** 14, ahead: 1024, ...UPDATE_WAYS[way] });
      return result;
    }),
  );
}

/** Million updates a second, and where updates were lost. */
function toldRates<W extends WayName>(found: readonly By<W, EpochsResult>[]): string {
  const ways = Object.keys(found[0]) as W[];
  const losing = ways.filter((way) => found.some((one) => one[way].lost > 0));
  const lost = losing.map((way) => `${way} loses updates of ${found.map((one) => one[way].lost).join(', ')} words`);
  return `${toldEach(found, ({ rate }) => show(rate))}; ${lost.join(', ') || 'no update is lost'}`;
}

interface Computing {
  readonly compute?: number;
  readonly pieces?: number;
}

/** Microseconds of a lock of rank 0's part and its unlock, by so many others. */
async function pairedBy(info: WindowInfo, others: number, computing: Computing = {}): Promise<number> {
  const options = { info, target: 0, samples: SAMPLES, warm: WARM, ...computing };
  return mean(await onRanks(others + 1, 'pairs', options));
}

function paired(others: number, computing: Computing = {}): Promise<By<(typeof THREE)[number], number>> {
  return by(THREE, (lock) => pairedBy({ lock }, others, computing));
}

/** @returns `undefined` if the row has no such program */
export async function onRealRanks(id: string): Promise<RealRow | undefined> {
  return ROWS[id]?.();
}
