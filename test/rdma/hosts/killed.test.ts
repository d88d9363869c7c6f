/**
 * Four ranks on two hosts, of which the second is switched off. Run on both of them, by `npm run test:rdma`; on the
 * second one it does not end.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, test } from 'vitest';
import { endMembers, PROGRAM } from '../../robustness/members.ts';
import { expectLost, HOST, LONG, please, ranks } from './members.ts';

afterEach(endMembers);

test('a host that is switched off is an error of the ranks of the other one, within their deadline', LONG, async () => {
  const DEADLINE_MS = 60_000;
  const members = ranks(PROGRAM, '--how=loop', `--timeout=${DEADLINE_MS}`);
  await Promise.all(members.map(({ said }) => said('working')));
  await sleep(500);
  if (HOST === 0) please('kill');
  await expectLost(members);
});
