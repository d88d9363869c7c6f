/**
 * All fence and lock schemes through what the others go through, and what is particular to them; on more ranks than
 * there are cores, too.
 */

import { describe, expect, test } from 'vitest';
import { FENCE_SCHEMES, fenceNamed } from '../../src/sync/fence/kinds.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/kinds.ts';
import { RANK_KINDS, type RankKind, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();
const REQUESTS = { ONESIDED_DEBUG: 'requests' };

const LOCKS: readonly Record<string, string | boolean>[] = [
  { lock: 'remote' },
  { lock: 'two-sided' },
  { lock: 'two-sided', lock_defer: true },
  { lock: 'direct' },
  { lock: 'hybrid' },
  { lock: 'hybrid', lock_migration: 'every-request' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'threshold:3' },
  { lock: 'hybrid', lock_mode: 'network', lock_migration: 'never' },
];
/** Those that are not the default everywhere. */
const FENCES = FENCE_SCHEMES.filter((name) => fenceNamed(name).moves !== 'immediately');
const nameOf = (info: object): string => Object.values(info).join(' ');

/** Each on one kind of ranks, in turn. */
const kindOf = (i: number): RankKind => RANK_KINDS[i % RANK_KINDS.length];

async function run(program: string, kind: RankKind, size: number, args: string[], env: Record<string, string> = {}) {
  const ranks = await runRanks<Done>(program, { kind, size, env, timeout: 150, args: [`--seed=${seed}`, ...args] });
  for (const { cases } of ranks) expect(cases.length).toBeGreaterThan(0);
}

describe('fences that are chosen by a hint', () => {
  for (const [i, fence] of FENCES.entries()) {
    test(`epochs: ${fence}`, () => run('window-epochs', kindOf(i), 3, ['--fences=all', `--matching=: ${fence}`]));
  }
  const byRequests =
    '--matching=^(fence assertions|contributions of all|fences that end early): (deferred|immediate-|remote-|notify-)';
  test('epochs, by requests', () => run('window-epochs', 'threads', 3, ['--fences=all', byRequests], REQUESTS));
  test('transfer, by requests', () =>
    run(
      'window-transfer',
      kindOf(0),
      2,
      ['--fences=all', '--matching=^(put|accum).*(deferred|optimized|notify-all)'],
      REQUESTS,
    ));
  test('transfer', () => run('window-transfer', kindOf(1), 3, ['--fences=all', '--matching=(deferred|naive)']));
});

describe('locks that are chosen by a hint', () => {
  for (const [i, info] of LOCKS.entries()) {
    const hints = `--info=${JSON.stringify(info)}`;
    test(`${nameOf(info)}: fought for by 5 ranks as ${kindOf(i)}`, () =>
      run('sync-contention', kindOf(i), 5, [hints, '--matching=^(readers|giving)']));
    // A lock's messages and words are the same there; what is particular to requests is seen on these.
    if (info['lock'] !== 'direct' && info['lock_migration'] !== 'every-request') continue;
    test(`${nameOf(info)}: fought for by 4 ranks, by requests`, () =>
      run('sync-contention', kindOf(i), 4, [hints, '--matching=^(exclusive: remote|giving)'], REQUESTS));
  }

  for (const [i, lock] of LOCK_SCHEMES.filter((name) => name !== 'queue').entries()) {
    const hints = JSON.stringify({ lock, lock_mode: 'network', lock_migration: 'threshold:3' });
    const passive = '--matching=^(locks|lockAll|flush|unlock once|mixed|empty|own)(?!.*notify)';
    test(`${lock}: epochs, on 3 ranks as ${kindOf(i)}`, () =>
      run('window-epochs', kindOf(i), 3, [`--info=${hints}`, passive]));
  }

  // Two ranks a node: processors' atomics and the network's on one lock.
  for (const lock_migration of ['every-request', 'threshold:3', 'history']) {
    const args = [`--info=${JSON.stringify({ lock: 'hybrid', lock_migration })}`, '--matching=^(readers|giving)'];
    test(`hybrid ${lock_migration}: fought for by 5 ranks on 3 nodes`, () =>
      run('sync-contention', kindOf(0), 5, args, { ONESIDED_DEBUG: 'nodes:2' }));
  }

  for (const [size, env] of [
    [1, {}],
    [3, {}],
    [4, REQUESTS],
  ] as const) {
    const where = env === REQUESTS ? ', by requests' : '';
    test(`every call, nobody starves, idle targets, counts and refusals, on ${size} ranks${where}`, () =>
      run('window-schemes', kindOf(size), size, [`--locks=${JSON.stringify([{ lock: 'queue' }, ...LOCKS])}`], env));
  }
});
