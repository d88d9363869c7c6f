/**
 * Four ranks on two hosts that a cable connects: network and PID namespaces of this machine, over TCP. Needs root, for
 * the namespaces. Run by `npm run test:tcp`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { endMembers, failuresOf, follow, type Member, PROGRAM } from '../robustness/members.ts';
import { ON_DEVICE } from './device.ts';

const LONG = { timeout: 180_000 };
const HOSTS = ['a', 'b'].map((name) => `onesided-${process.pid}${name}`);
const ADDRESSES = ['10.77.0.1', '10.77.0.2'];
const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });

let port = 7100;

/** The kernel takes a moment to see that both ends are up. */
async function plugged(): Promise<void> {
  while (HOSTS.some((host) => !ip('-n', host, 'link', 'show', 'cable0').includes('LOWER_UP'))) await sleep(20);
}

/** @param program and its arguments */
function ranks(...program: string[]): Member[] {
  port++;
  return [0, 1, 2, 3].map((rank) =>
    follow(
      spawn(
        'ip',
        [
          ...['netns', 'exec', HOSTS[rank >> 1]],
          ...['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, ...program],
        ],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
          env: {
            ...process.env,
            ...ON_DEVICE,
            ONESIDED_RANK: String(rank),
            ONESIDED_SIZE: '4',
            ONESIDED_ROOT_ADDRESS: `${ADDRESSES[0]}:${port}`,
            ONESIDED_SECRET: 'a secret of these tests',
          },
        },
      ),
    ),
  );
}

describe.skipIf(process.getuid!() !== 0)('two hosts and a cable (needs root)', () => {
  beforeAll(async () => {
    for (const host of HOSTS) ip('netns', 'add', host);
    ip('link', 'add', 'cable0', 'netns', HOSTS[0], 'type', 'veth', 'peer', 'name', 'cable0', 'netns', HOSTS[1]);
    HOSTS.forEach((host, i) => {
      ip('-n', host, 'addr', 'add', `${ADDRESSES[i]}/24`, 'dev', 'cable0');
      for (const link of ['lo', 'cable0']) ip('-n', host, 'link', 'set', link, 'up');
    });
    await plugged();
  });

  afterEach(endMembers);
  afterAll(() => {
    for (const host of HOSTS) ip('netns', 'del', host);
  });

  test('four ranks on them are one world, without a word about addresses', LONG, async () => {
    const members = ranks(PROGRAM, '--how=work');
    await Promise.all(members.map(({ said }) => said('done')));
    expect(await Promise.all(members.map(({ ended }) => ended))).toEqual(
      members.map(() => ({ code: 0, signal: null })),
    );
  });

  test('ranks of a host that are killed are an error of the others', LONG, async () => {
    const members = ranks(PROGRAM, '--how=loop');
    await Promise.all(members.map(({ said }) => said('working')));
    await sleep(300);
    for (const { child } of members.slice(2)) child.kill('SIGKILL');
    for (const { code, message } of await failuresOf(members.slice(0, 2))) {
      expect(code).toBe('ERR_RMA_RANK_FAILED');
      expect(message).toMatch(/rank [23] /);
    }
  });

  test('a cable that is pulled is an error of all', LONG, async () => {
    const members = ranks(PROGRAM, '--how=loop', '--timeout=60000');
    await Promise.all(members.map(({ said }) => said('working')));
    await sleep(300);
    ip('-n', HOSTS[1], 'link', 'set', 'cable0', 'down');
    for (const { code } of await failuresOf(members)) expect(code).toBe('ERR_RMA_RANK_FAILED');
    ip('-n', HOSTS[1], 'link', 'set', 'cable0', 'up');
  });

  test('the launcher, which still reaches both hosts, blames neither', LONG, async () => {
    const command = ['dist/cli/main.js', 'run', '--hosts', HOSTS.map((host) => `${host}:2`).join(','), '--ssh'];
    const job = spawn(process.execPath, [...command, 'ip netns exec', PROGRAM, '--', '--how=loop', '--timeout=60000'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...ON_DEVICE },
    });
    const said = ['', ''];
    job.stdout.on('data', (text: Buffer) => (said[0] += text));
    job.stderr.on('data', (text: Buffer) => (said[1] += text));
    const ended = new Promise<number | null>((resolve) => job.on('close', resolve));
    while (said[0].split('working').length < 5 && job.exitCode === null) await sleep(50);
    ip('-n', HOSTS[1], 'link', 'set', 'cable0', 'down');
    expect(await ended).toBe(1);
    ip('-n', HOSTS[1], 'link', 'set', 'cable0', 'up');
    const [one, other] = HOSTS;
    expect(said[1]).toMatch(
      new RegExp(`onesided: (${one} and ${other}|${other} and ${one}) do not reach each other any more: nothing came`),
    );
    expect(said[1]).not.toContain('exited with');
  });
});
