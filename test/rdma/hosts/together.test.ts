/** Four ranks on two hosts. Run on both of them, by `npm run test:rdma`. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { endMembers, type Member, PROGRAM } from '../../robustness/members.ts';
import { argumentsOf } from '../../support/ranks.ts';
import { ON_TWO_HOSTS } from '../selections.ts';
import { expectLost, HOST, LONG, please, ranks, SIZE } from './members.ts';

const program = (name: string): string => fileURLToPath(new URL(`../../../build/programs/${name}.js`, import.meta.url));

afterEach(endMembers);

async function endsWell(members: readonly Member[]): Promise<void> {
  const endings = await Promise.all(members.map(({ ended }) => ended));
  expect(endings, JSON.stringify(members.map(({ lines }) => lines))).toEqual(
    members.map(() => ({ code: 0, signal: null })),
  );
}

describe('four ranks on two hosts', () => {
  test('are one world', LONG, async () => {
    const members = ranks(PROGRAM, '--how=work');
    await Promise.all(members.map(({ said }) => said('done')));
    const joined = members.map(({ lines }) => lines.find(({ rank }) => rank !== undefined)!);
    expect(joined.map(({ rank, size }) => ({ rank, size }))).toEqual(
      members.map((_, i) => ({ rank: 2 * HOST + i, size: SIZE })),
    );
    await endsWell(members);
  });

  test('do what windows do by requests', LONG, async () => {
    // All of it is tried on one host (windows.test.ts).
    await endsWell(ranks(program(`test/ranks/${ON_TWO_HOSTS.program}`), ...argumentsOf(ON_TWO_HOSTS)));
  });

  // All variants run on one host (windows.test.ts).
  test('run RandomAccess, accumulate', LONG, async () => {
    // It ends with 1 if the result is wrong.
    await endsWell(ranks(program('bench/hpcc/random-access'), '--variant', 'accumulate', '--words', '2^7'));
  });

  test('learn that the cable was pulled, in the middle of their epochs', LONG, async () => {
    const members = ranks(PROGRAM, '--how=loop');
    await Promise.all(members.map(({ said }) => said('working')));
    // Some rounds later.
    await sleep(500);
    if (HOST === 0) please('unplug');
    try {
      await expectLost(members);
    } finally {
      if (HOST === 0) please('plug');
    }
  });

  test('go on when it was plugged in again', LONG, async () => {
    // The other host may still wait for its ranks to learn of it.
    while (!readFileSync('/sys/class/infiniband/rxe0/ports/1/state', 'utf8').includes('ACTIVE')) await sleep(100);
    const members = ranks(PROGRAM, '--how=work');
    await Promise.all(members.map(({ said }) => said('done')));
    await endsWell(members);
  });
});
