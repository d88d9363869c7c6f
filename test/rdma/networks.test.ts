/**
 * Two hosts with several networks, of which one connects them: network and PID namespaces of this machine, over TCP.
 * Needs root, for the namespaces. Run by `npm run test:tcp`.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PROBE } from '../launcher/command.ts';
import { endMembers, follow, PROGRAM } from '../robustness/members.ts';
import { ON_DEVICE } from './device.ts';

const LARGE_PUT = fileURLToPath(new URL('../../build/programs/test/ranks/large-put.js', import.meta.url));
const LONG = { timeout: 180_000 };
const HOSTS = ['c', 'd'].map((name) => `onesided-${process.pid}${name}`);
const [FIRST, SECOND] = HOSTS;
const CABLE = ['10.77.1.1', '10.77.1.2'];
const WIDE = ['10.77.2.1', '10.77.2.2'];
const MIDDLE = `onesided-${process.pid}m`;
/** Of networks that lead nowhere, which have the default routes. */
const OFFICE = ['10.78.1.1', '10.78.2.1'];
/** As Docker gives it to every host that it is installed on. */
const BRIDGE = '172.17.0.1';
const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });

interface Ending {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Two ranks, one on each host. @param env of each host's own */
async function run(
  env: readonly Record<string, string>[],
  launcher: Record<string, string> = {},
  program = [PROGRAM, '--', '--how=work', '--timeout=60000'],
): Promise<Ending> {
  const own = HOSTS.map((host, i) => `${host}) set -- ${settings(env[i])} "$@";;`).join(' ');
  const shell = `sh -c 'host=$0; case $host in ${own} esac; exec ip netns exec $host env "$@"'`;
  const job = spawn(
    process.execPath,
    [...['dist/cli/main.js', 'run', '--hosts', HOSTS.join(','), '--ssh', shell], ...program],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...ON_DEVICE, ...launcher } },
  );
  let [out, err] = ['', ''];
  job.stdout.on('data', (text: Buffer) => (out += text));
  job.stderr.on('data', (text: Buffer) => (err += text));
  const code = await new Promise<number | null>((resolve) => job.on('close', resolve));
  return { code, out, err };
}

function settings(env: Record<string, string> = {}): string {
  return Object.entries({ ONESIDED_TEST: '1', ...env })
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

describe.skipIf(process.getuid!() !== 0)('two hosts with several networks (needs root)', () => {
  beforeAll(() => {
    for (const [i, host] of HOSTS.entries()) {
      ip('netns', 'add', host);
      for (const [name, address] of Object.entries({ bridge: `${BRIDGE}/16`, office: `${OFFICE[i]}/24` })) {
        ip('-n', host, 'link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}-end`);
        ip('-n', host, 'addr', 'add', address, 'dev', name);
        for (const end of [name, `${name}-end`]) ip('-n', host, 'link', 'set', end, 'up');
      }
      ip('-n', host, 'link', 'set', 'lo', 'up');
      ip('-n', host, 'route', 'add', 'default', 'dev', 'office');
    }
    ip('link', 'add', 'cable', 'netns', FIRST, 'type', 'veth', 'peer', 'name', 'cable', 'netns', SECOND);
    for (const [i, host] of HOSTS.entries()) {
      ip('-n', host, 'addr', 'add', `${CABLE[i]}/24`, 'dev', 'cable');
      ip('-n', host, 'link', 'set', 'cable', 'up');
    }
  });
  afterEach(endMembers);
  afterAll(() => {
    for (const host of HOSTS) ip('netns', 'del', host);
  });

  test('onesided run --hosts finds the one that connects them', LONG, async () => {
    const { code, err } = await run([]);
    expect(err).toBe('');
    expect(code).toBe(0);
  });

  test('rank 0 has standard input from its beginning to its end, though the hosts meet before it starts', LONG, () => {
    const hosts = ['--hosts', HOSTS.toReversed().join(','), '--ssh', 'ip netns exec'];
    for (const input of ['', 'typed\n', 'some more\n'.repeat(20_000)]) {
      const how = { input, encoding: 'utf8', env: { ...process.env, ...ON_DEVICE }, maxBuffer: 1 << 20 } as const;
      const run = ['dist/cli/main.js', 'run', ...hosts, '--timeout', '100', PROBE, '--', '0:stdin'];
      const { stdout, status } = spawnSync(process.execPath, run, how);
      expect(stdout.replaceAll(/^\[0\] /gm, '')).toBe(input);
      expect(status).toBe(0);
    }
  });

  test('so it does without default routes', LONG, async () => {
    for (const host of HOSTS) ip('-n', host, 'route', 'del', 'default');
    const { code, err } = await run([]);
    for (const host of HOSTS) ip('-n', host, 'route', 'add', 'default', 'dev', 'office');
    expect(err).toBe('');
    expect(code).toBe(0);
  });

  test(
    'ONESIDED_ADDRESS of each host says which; the address of the launcher’s device is not for the other',
    LONG,
    async () => {
      const { code, err } = await run(
        CABLE.map((address) => ({ ONESIDED_ADDRESS: address })),
        { ONESIDED_DEVICE: CABLE[0] },
      );
      expect(err).toBe('');
      expect(code).toBe(0);
    },
  );

  test('ranks that a shell starts use the one by which they reach rank 0', LONG, async () => {
    const members = HOSTS.map((host, rank) =>
      follow(
        spawn(
          'ip',
          ['netns', 'exec', host, 'unshare', '-p', '-f', '--kill-child', process.execPath, PROGRAM, '--how=work'],
          {
            stdio: ['ignore', 'pipe', 'inherit'],
            env: {
              ...process.env,
              ...ON_DEVICE,
              ONESIDED_RANK: String(rank),
              ONESIDED_SIZE: '2',
              ONESIDED_ROOT_ADDRESS: `${CABLE[0]}:7200`,
              ONESIDED_SECRET: 'a secret of these tests',
            },
          },
        ),
      ),
    );
    const ends = await Promise.all(members.map(({ ended }) => ended));
    expect(ends).toEqual(members.map(() => ({ code: 0, signal: null })));
  });

  test('an address that nobody reaches is named within ten seconds', LONG, async () => {
    const began = performance.now();
    // The program says what init throws, and ends well.
    const { out } = await run([{}, { ONESIDED_ADDRESS: OFFICE[1] }]);
    expect(out).toContain(`init: rank 0 on ${FIRST} cannot connect to rank 1 on ${SECOND} at ${OFFICE[1]}:`);
    expect(out).toContain(`and ONESIDED_ADDRESS on ${SECOND} says at which of its addresses the others reach it`);
    // Thirty without a look at the network before.
    expect(performance.now() - began).toBeLessThan(25_000);
  });

  test('what is missing on one of them is named', LONG, async () => {
    const { code, err } = await run([{}, { ONESIDED_LIBFABRIC: '/nonexistent' }], { ONESIDED_PROVIDER: '' });
    expect(code).toBe(1);
    expect(err).toMatch(
      new RegExp(
        '^onesided: nothing connects the ranks of these hosts, since libfabric cannot be used everywhere: ' +
          `${SECOND}: /nonexistent: .*ONESIDED_LIBFABRIC names it`,
      ),
    );
  });

  test('a network that takes no large packets is named', LONG, async () => {
    // Both hosts take 1500 bytes; what is between them does not, and says nothing.
    ip('netns', 'add', MIDDLE);
    ip('-n', MIDDLE, 'link', 'add', 'switch', 'type', 'bridge');
    ip('-n', MIDDLE, 'link', 'set', 'switch', 'up');
    for (const [i, host] of HOSTS.entries()) {
      ip('link', 'add', 'wide', 'netns', host, 'type', 'veth', 'peer', 'name', `port${i}`, 'netns', MIDDLE);
      ip('-n', MIDDLE, 'link', 'set', `port${i}`, 'mtu', '1280', 'master', 'switch', 'up');
      ip('-n', host, 'addr', 'add', `${WIDE[i]}/24`, 'dev', 'wide');
      ip('-n', host, 'link', 'set', 'wide', 'gso_max_segs', '1', 'up');
    }
    const env = WIDE.map((address) => ({ ONESIDED_ADDRESS: address }));
    const { out } = await run(env, {}, [LARGE_PUT]);
    ip('netns', 'del', MIDDLE);
    // Also where libfabric gives the connection up before that, as it does on a busy machine.
    expect(out).toMatch(/^\[0\] ERR_RMA_RANK_FAILED: .*packets of \d{4} bytes to 10\.77\.2\.2 were not acknowledged/m);
  });
});
