/**
 * What is special about libfabric: strangers that find its port, keys that are withdrawn, its sockets, its threads, and
 * ranks that are stopped. On the loopback interface; run by `npm run test:tcp`.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { QpState } from '../../src/verbs/queue-pair.ts';
import { endMembers, failuresOf, follow, PROGRAM } from '../robustness/members.ts';
import { freePort } from '../support/ports.ts';
import { runRanks, seedOfRun } from '../support/ranks.ts';
import {
  bringUp,
  connect,
  type End,
  expectNothing,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  send,
  write,
} from '../verbs/conformance/harness.ts';
import { ON_DEVICE, openEnds, segments } from './device.ts';

const LONG = { timeout: 120_000 };

afterEach(endMembers);

/** The TCP ports at which this process listens. */
function listening(): number[] {
  const lines = readFileSync('/proc/self/net/tcp', 'utf8').split('\n').slice(1);
  const rows = lines.map((line) => line.trim().split(/\s+/)).filter(([, , , state]) => state === '0A');
  return rows
    .filter(([, local]) => local.startsWith('0100007F'))
    .map(([, local]) => Number.parseInt(local.split(':')[1], 16));
}

describe('a stranger', () => {
  test('that does not know the tag of an endpoint is not heard', LONG, async () => {
    const { ends } = openEnds(3, { tell: (own, from) => (from === 2 ? { ...own, tag: [1, 2] } : own) });
    const [a, b, stranger] = ends;
    connect(a, b);
    stranger.make();
    // It knows where b is, the number of its queue pair, and a key.
    bringUp(stranger.qp, b.qp);
    const before = b.bytes.slice();
    b.receive(1, 0, 64);
    send(stranger, 1, 0, 64);
    write(stranger, b, 2, 0, 128, 64);
    await sleep(2000);
    await expectNothing(stranger.sendCq, b.recvCq);
    expect(b.bytes).toEqual(before);
    write(a, b, 3, 64, 0, 8);
    await pollSuccess(a.sendCq);
  });

  test('that knows the tag, but not a connected queue pair, is not heard either', LONG, async () => {
    const [a, b, stranger] = openEnds(3).ends;
    connect(a, b);
    stranger.make();
    bringUp(stranger.qp, b.qp);
    b.receive(1, 0, 64);
    const before = b.bytes.slice();
    write(stranger, b, 1, 0, 128, 64);
    send(stranger, 2, 0, 64);
    expect((await pollStatuses(stranger.sendCq, 2))[0]).toEqual([1, name(WcStatus.RETRY_EXC_ERR)]);
    await expectNothing(b.recvCq);
    expect(b.bytes).toEqual(before);
  });

  test('that writes noise to its port disturbs nobody', LONG, async () => {
    const ports = new Set(listening());
    const [a, b] = openEnds(2).ends;
    connect(a, b);
    write(a, b, 1, 0, 64, 8);
    await pollSuccess(a.sendCq);
    for (const port of listening().filter((port) => !ports.has(port))) {
      const socket = dial(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(randomBytes(4096));
      await sleep(100);
      socket.destroy();
    }
    for (let i = 0; i < 100; i++) {
      write(a, b, i, 0, 64, 8);
      await pollSuccess(a.sendCq);
    }
  });
});

test('a key that was used and is withdrawn is refused, and the connection goes on', LONG, async () => {
  const [a, b] = openEnds(2).ends;
  connect(a, b);
  for (let i = 0; i < 20; i++) {
    const region = b.pd.registerMemory(b.memory, 0, 4096, 15);
    const other = { ...b, region, at: (offset: number) => b.at(offset) } as unknown as End;
    write(a, other, 1, 0, 64, 8);
    await pollSuccess(a.sendCq);
    region.deregister();
    if (i < 19) continue;
    write(a, other, 2, 0, 64, 8);
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[2, name(WcStatus.REM_ACCESS_ERR)]]);
  }
});

test('a region is given back quickly, however many queue pairs have used it and are gone', LONG, async () => {
  const COUNT = 300;
  const [a, b] = openEnds(2).ends;
  connect(a, b);
  const region = b.pd.registerMemory(b.memory, 0, 4096, 15);
  const other = { ...b, region, at: (offset: number) => b.at(offset) } as unknown as End;
  for (let i = 0; i < COUNT; i++) {
    write(a, other, 1, 0, 64, 8);
    await pollSuccess(a.sendCq);
    if (i % 2 === 0) {
      for (const { qp } of [a, b]) qp.modify({ state: QpState.RESET });
    } else {
      for (const end of [a, b]) {
        end.qp.destroy();
        end.qp = end.pd.createQueuePair({ sendCq: end.sendCq, recvCq: end.recvCq });
      }
    }
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
  }
  await sleep(100);
  const before = segments();
  region.deregister();
  // Each of them would be told, and would answer. Others may use TCP here, too.
  expect(segments() - before).toBeLessThan(COUNT);
});

test(
  'an endpoint that is closed with requests under way is a RETRY_EXC_ERR of its peer, atomics too',
  LONG,
  async () => {
    for (const atomic of [false, true]) {
      const [a, b] = openEnds(2).ends;
      connect(a, b);
      write(a, b, 1, 0, 64, 8);
      await pollSuccess(a.sendCq);
      b.context.close();
      a.qp.wrStart();
      if (atomic) a.qp.wrAtomicFetchAdd(2, 2, b.region.rkey, b.at(0), 1, 0);
      else a.qp.wrRdmaRead(2, 2, b.region.rkey, b.at(0));
      a.qp.wrSetSge(a.region.lkey, a.at(0), 8);
      a.qp.wrComplete();
      expect(await pollStatuses(a.sendCq, 1), String(atomic)).toEqual([[2, name(WcStatus.RETRY_EXC_ERR)]]);
    }
  },
);

test('programs that a rank starts get none of its sockets', LONG, async () => {
  const told = await runRanks<{ sockets: number }>('robust-sockets', { kind: 'processes', size: 2, env: ON_DEVICE });
  const alone = await runRanks<{ sockets: number }>('robust-sockets', { kind: 'processes', size: 2 });
  expect(told).toEqual(alone);
});

// It takes messages of 4 KiB without memory of its own, where ofi_rxm takes 64 bytes.
test('random programs by another provider, for ranks of one host', LONG, async () => {
  const env = { ...ON_DEVICE, ONESIDED_DEVICE: 'libfabric:shm' };
  const args = [`--seed=${seedOfRun()}`, '--programs=4', '--by-requests'];
  await runRanks('window-random', { kind: 'processes', size: 2, env, args, timeout: 100 });
});

// Endpoints that open while others want the processor take long for their first operations.
test('twenty ranks that begin at once come together, and end', LONG, async () => {
  const told = await runRanks<object>('robust-sockets', { kind: 'processes', size: 20, env: ON_DEVICE });
  expect(told).toHaveLength(20);
});

test('a connection takes little memory', LONG, async () => {
  const least = async (size: number): Promise<number> => {
    const told = await runRanks<{ kibibytes: number }>('robust-memory', { kind: 'processes', size, env: ON_DEVICE });
    return Math.min(...told.map(({ kibibytes }) => kibibytes));
  };
  // Receive buffers of its own would be 4 MiB.
  expect(((await least(9)) - (await least(2))) / 7).toBeLessThan(2048);
});

test('a rank that is stopped is not taken for dead, and goes on', LONG, async () => {
  const port = await freePort();
  const members = Array.from({ length: 2 }, (_, rank) =>
    follow(
      spawn('unshare', ['--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, PROGRAM, '--how=loop'], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          ...process.env,
          ...ON_DEVICE,
          ONESIDED_RANK: String(rank),
          ONESIDED_SIZE: '2',
          ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
          ONESIDED_SECRET: 'a secret of these tests',
        },
      }),
    ),
  );
  await Promise.all(members.map(({ said }) => said('working')));
  const [, stopped] = members;
  const inside = Number(readFileSync(`/proc/${stopped.child.pid}/task/${stopped.child.pid}/children`, 'utf8'));
  process.kill(inside, 'SIGSTOP');
  await sleep(6000);
  process.kill(inside, 'SIGCONT');
  await sleep(1000);
  expect(members.flatMap(({ lines }) => lines.filter(({ code }) => code !== undefined))).toEqual([]);
  process.kill(inside, 'SIGKILL');
  const [failure] = await failuresOf([members[0]]);
  expect(failure.code).toBe('ERR_RMA_RANK_FAILED');
});

test('an idle endpoint takes no processor', LONG, async () => {
  const [a, b] = openEnds(2).ends;
  connect(a, b);
  write(a, b, 1, 0, 64, 8);
  await poll(a.sendCq, 1);
  const begin = process.cpuUsage();
  await sleep(2000);
  const { user, system } = process.cpuUsage(begin);
  // Microseconds; four looks a second and endpoint, and what the test's own process does.
  expect(user + system).toBeLessThan(400_000);
});
