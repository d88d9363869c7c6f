/**
 * All fence and lock schemes through what the others go through, and what is particular to them; on more ranks than
 * there are cores, too.
 */

import { describe } from 'vitest';
import { FENCE_SCHEMES, fenceNamed } from '../../src/sync/fence/fence-kinds.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/lock-kinds.ts';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, type RankKind, type RanksOptions, seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();
const REQUESTS = { ONESIDED_DEBUG: 'requests' };
const ALL = ['--fences=all'];
const FOUGHT_FOR = { about: ['readers', 'giving up'] };

const LOCKS: readonly Record<string, string | boolean>[] = [
  { lock: 'remote' },
  { lock: 'two-sided' },
  { lock: 'two-sided', lock_defer: true },
  { lock: 'direct' },
  { lock: 'hybrid' },
  { lock: 'hybrid', lock_migration: 'every-request' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'threshold:3' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'never' },
  { lock: 'hybrid', lock_migration: 'threshold:3', lock_defer: true },
  { lock: 'hybrid', lock_cpu: 'one-word' },
  { lock: 'hybrid', lock_cpu: 'one-word', lock_mode: 'network', lock_migration: 'threshold:3' },
];
/** Those that are not the default everywhere. */
const FENCES = FENCE_SCHEMES.filter((name) => fenceNamed(name).moves !== 'immediately');
const nameOf = (info: object): string => Object.values(info).join(' ');

/** Each on one kind of ranks, in turn. */
const kindOf = (i: number): RankKind => RANK_KINDS[i % RANK_KINDS.length];

function run(
  title: string,
  program: string,
  [kind, size]: readonly [kind: RankKind, size: number],
  args: readonly string[],
  cases?: RanksOptions['cases'],
  env: Readonly<Record<string, string>> = {},
): void {
  describeCases(title, program, { kind, size, env, cases, args: [`--seed=${seed}`, ...args] });
}

describe('fences that are chosen by a hint', () => {
  for (const [i, fence] of FENCES.entries())
    run(`epochs: ${fence}`, 'window-epochs', [kindOf(i), 3], ALL, { fence: [fence] });
  run('epochs, by requests', 'window-epochs', ['threads', 3], ALL, { about: ['fences'], fence: FENCES }, REQUESTS);
  const few = {
    about: ['put and get', 'accumulate'],
    fence: ['deferred', 'immediate-optimized', 'notify-all'],
  } as const;
  run('transfer, by requests', 'window-transfer', [kindOf(0), 2], ALL, few, REQUESTS);
  run('transfer', 'window-transfer', [kindOf(1), 3], ALL, { fence: ['deferred', 'immediate-naive'] });
});

describe('locks that are chosen by a hint', () => {
  for (const [i, info] of LOCKS.entries()) {
    const hints = `--info=${JSON.stringify(info)}`;
    const title = `${nameOf(info)}: fought for by 5 ranks as ${kindOf(i)}`;
    run(title, 'sync-contention', [kindOf(i), 5], [hints], FOUGHT_FOR);
    // A lock's messages and words are the same there; what is particular to requests is seen on these.
    if (info['lock'] !== 'direct' && info['lock_migration'] !== 'every-request') continue;
    const few = { about: ['exclusive', 'giving up'], but: { fence: ['immediate'] } } as const;
    const byRequests = `${nameOf(info)}: fought for by 4 ranks, by requests`;
    run(byRequests, 'sync-contention', [kindOf(i), 4], [hints], few, REQUESTS);
  }

  for (const [i, lock] of LOCK_SCHEMES.filter((name) => name !== 'queue').entries()) {
    const hints = JSON.stringify({ lock, lock_mode: 'network', lock_migration: 'threshold:3' });
    const passive = { about: ['passive'], but: { fence: ['remote-notify'] } } as const;
    const title = `${lock}: epochs, on 3 ranks as ${kindOf(i)}`;
    run(title, 'window-epochs', [kindOf(i), 3], [`--info=${hints}`], passive);
  }

  // Two ranks a node: processors' atomics and the network's on one lock.
  for (const [lock_migration, lock_cpu] of [
    ['every-request', 'queue'],
    ['threshold:3', 'queue'],
    ['history', 'queue'],
    ['threshold:3', 'one-word'],
  ]) {
    const hints = JSON.stringify({ lock: 'hybrid', lock_migration, lock_cpu });
    const title = `hybrid ${lock_migration} ${lock_cpu}: fought for by 5 ranks on 3 nodes`;
    run(title, 'sync-contention', [kindOf(0), 5], [`--info=${hints}`], FOUGHT_FOR, { ONESIDED_DEBUG: 'nodes:2' });
  }

  for (const [size, env] of [
    [1, {}],
    [3, {}],
    [4, REQUESTS],
  ] as const) {
    const title = `on ${size} ranks${env === REQUESTS ? ', by requests' : ''}`;
    const locks = `--locks=${JSON.stringify([{ lock: 'queue' }, ...LOCKS])}`;
    run(title, 'window-schemes', [kindOf(size), size], [locks], undefined, env);
  }
});
