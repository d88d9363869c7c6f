/**
 * One rank runs out of memory, or of what else the library needs for itself: all ranks hear of it, from which rank and
 * why, and go on.
 */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

interface Outcome {
  readonly made: readonly number[];
  readonly code: string;
  readonly message: string;
}

const SIZE = 4;
const PRLIMIT = spawnSync('prlimit', ['--version']).status === 0;
const WINDOWS = ['createDynamic', 'create-null', 'create', 'allocate', 'allocate-nothing', 'allocateShared', 'mutex'];
const COMMUNICATORS = ['split', 'split-in-two', 'dup'];

async function expectRefusal(
  kind: (typeof RANK_KINDS)[number],
  make: string,
  limit: string,
  why: RegExp,
  env: Record<string, string> = {},
  limited = 1,
): Promise<void> {
  const args = [`--make=${make}`, `--limit=${limit}`, `--rank=${limited}`];
  const outcomes = await runRanks<Outcome>('robust-limits', { kind, size: SIZE, args, env, timeout: 60 });
  const communicator = COMMUNICATORS.includes(make);
  for (const [rank, { made, code, message }] of outcomes.entries()) {
    // All fail at the same thing.
    expect(new Set(made).size).toBe(1);
    expect(message).toMatch(why);
    const ofOthers = limit === 'queues' || limit === 'mappings';
    if (rank === limited && !communicator) expect(code).toBe(ofOthers ? undefined : 'ERR_SIZE');
    else expect(code).toBe(communicator ? 'ERR_SIZE' : 'ERR_WIN');
    if (rank !== limited || communicator)
      expect(message).toMatch(new RegExp(`because (the call failed on )?rank ${limited}\\b`));
  }
}

describe.runIf(RANK_KINDS.includes('processes') && PRLIMIT)('a rank whose memory file may not grow', () => {
  it.each([...WINDOWS, 'counter', 'queue', ...COMMUNICATORS])(
    'tells all ranks: %s',
    async (make) => {
      await expectRefusal('processes', make, 'file-size', /limit on file sizes \(ulimit -f\)/);
    },
    120_000,
  );
});

describe.each(RANK_KINDS)('%s: a rank without memory', (kind) => {
  it.runIf(kind === 'threads').each(['createDynamic', 'create-null', 'allocate', 'mutex', 'split'])(
    'tells all ranks: %s',
    async (make) => {
      await expectRefusal(kind, make, 'memory', /nothing is left/);
    },
    120_000,
  );

  it.each(['createDynamic', 'create-null'])(
    'tells all ranks: %s by requests',
    async (make) => {
      await expectRefusal(kind, make, 'memory', /nothing is left/, { ONESIDED_DEBUG: 'requests' });
    },
    120_000,
  );

  it('tells all ranks, also if it is the first, which allocates for all', async () => {
    await expectRefusal(kind, 'allocateShared', 'memory', /nothing is left/, {}, 0);
  }, 120_000);

  it.each(['allocate', 'allocateShared', 'createDynamic', 'split'])(
    'or that can map no more of other ranks tells all: %s',
    async (make) => {
      await expectRefusal(kind, make, 'mappings', /nothing is left/);
    },
    120_000,
  );

  it.each([
    ['remote-notify', {}],
    ['allocate', { ONESIDED_DEBUG: 'requests' }],
  ])(
    'or without queue pairs tells all ranks: %s',
    async (make, env) => {
      await expectRefusal(kind, make, 'queues', /nothing is left/, env as Record<string, string>);
    },
    120_000,
  );
});
