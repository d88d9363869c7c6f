/**
 * What must not break a job on a real device: each is a clear error, or nothing at all, and leaves nothing on it. Run
 * by `npm run test:rdma`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { RdmaAddress } from '../../src/providers/rdma-core/addresses.ts';
import { openRdma, type RdmaCoreContext } from '../../src/providers/rdma-core/rdma-context.ts';
import { chooseEndpoint, rdmaDevices } from '../../src/providers/rdma-core/rdma-devices.ts';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { Access } from '../../src/verbs/memory.ts';
import { QpState, SendFlag } from '../../src/verbs/queue-pair.ts';
import { start } from '../launcher/command.ts';
import { expectFailures } from '../robustness/calls.ts';
import { endMembers, failuresOf, follow, PROGRAM as MEMBER } from '../robustness/members.ts';
import { casesIn } from '../support/cases.ts';
import { freePort } from '../support/ports.ts';

/** The guest's processor is emulated, and the machine may be busy. */
const LONG = { timeout: 600_000 };
const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-device.js', import.meta.url));
const CALLS = fileURLToPath(new URL('../../build/programs/test/ranks/robust-calls.js', import.meta.url));
const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const NOBODY = 65534;

/** As the script of the guest makes them. */
const ADDRESS = ['addr', 'add', '10.9.0.1/24', 'dev', 'eth0'];
const [{ name, file }] = rdmaDevices().devices;
const ip = (...args: string[]): string => execFileSync('ip', args, { encoding: 'utf8' });
const rdma = (...args: string[]): string => execFileSync('rdma', args, { encoding: 'utf8' });

/** Waits for what must come; the test's own deadline ends a wait in vain. */
async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 50));
}

const stateOfPort = (): string | undefined => rdmaDevices().devices[0]?.ports?.[0]?.state;

/** The device as it was: with its first GIDs. */
async function restore(): Promise<void> {
  if (rdmaDevices().devices.length > 0) rdma('link', 'delete', name);
  ip('link', 'set', 'eth0', 'down');
  ip('addr', 'flush', 'dev', 'eth0');
  ip('link', 'set', 'eth0', 'mtu', '1500');
  ip(...ADDRESS);
  ip('link', 'set', 'eth0', 'up');
  rdma('link', 'add', name, 'type', 'rxe', 'netdev', 'eth0');
  await until(() => stateOfPort() === 'ACTIVE');
}

/** Queue pairs, completion queues, … of all processes. */
const left = (): string =>
  rdma('resource', 'show')
    .replace(/^.*?: /, '')
    .trim();
const NOTHING = /\bpd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0\b/;

afterEach(endMembers);
afterAll(restore);

interface Opened {
  readonly opened?: string;
  readonly code?: string;
  readonly message?: string;
}

/** What a process can do with the device that may lock so many KiB, of root or of nobody. */
function tryToOpen({ uid = 0, memlock = 'unlimited' } = {}): Opened {
  const limited = ['-c', `ulimit -l ${memlock} && exec "$@"`, 'bash', process.execPath, PROGRAM, '--what=open'];
  return JSON.parse(execFileSync('bash', limited, { uid, gid: uid, encoding: 'utf8' }));
}

/** A job of two ranks that the launcher starts. */
function job(program: string, ...args: string[]) {
  return start(['run', '-n', '2', '--provider', 'rdma-core', '--timeout', '200', program, '--', ...args]);
}

/** Two ranks that find each other by an address, as on two hosts: neither sees whether the other one lives. */
async function distantRanks(program: string, argument: string) {
  const port = await freePort();
  return [0, 1].map((rank) => {
    const unshared = ['--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, program, argument];
    const environment = {
      ONESIDED_PROVIDER: 'rdma-core',
      ONESIDED_RANK: String(rank),
      ONESIDED_SIZE: '2',
      ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
      ONESIDED_SECRET: 'a secret of these tests',
      // Each is to be reached by the device.
      ONESIDED_NEIGHBOURS: 'device',
    };
    return follow(
      spawn('unshare', unshared, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...environment } }),
    );
  });
}

describe('a device that cannot be used', () => {
  test('because of its rights is named with its file', LONG, () => {
    chmodSync(file, 0o600);
    const { code, message } = tryToOpen({ uid: NOBODY });
    chmodSync(file, 0o666);
    expect(code).toBe('ERR_PROVIDER_UNAVAILABLE');
    expect(message).toContain(`cannot open ${name}: this user needs permission to read and write ${file}`);
    expect(tryToOpen({ uid: NOBODY })).toEqual({ opened: name });
  });

  test('because too little memory may be locked is told the limit', LONG, () => {
    const { code, message } = tryToOpen({ uid: NOBODY, memlock: '64' });
    expect(code).toBe('ERR_VERBS');
    expect(message).toMatch(
      /register 1048576 bytes \(.*has locked 0 KiB of the 64 KiB that it may lock; .*ulimit -l\).*ENOMEM/,
    );
  });

  test('because its port is down is told what to do', LONG, async () => {
    ip('link', 'set', 'eth0', 'down');
    await until(() => stateOfPort() === 'DOWN');
    const { code, message } = tryToOpen();
    await restore();
    expect(code).toBe('ERR_PROVIDER_UNAVAILABLE');
    expect(message).toMatch(/port 1 of rxe0 is DOWN \(check its cable, and set its interface up: ip link set … up\)/);
  });

  test('because its interface has no address is told so', LONG, async () => {
    ip('addr', 'flush', 'dev', 'eth0');
    await until(() => !rdmaDevices().devices[0].ports![0].gids.some(({ gid }) => gid.includes(':ffff:')));
    const { code, message } = tryToOpen();
    await restore();
    expect(code).toBe('ERR_PROVIDER_UNAVAILABLE');
    expect(message).toMatch(/port 1 of rxe0 has no usable GID: .*ip addr add/);
  });
});

describe('a job on a device', () => {
  test('whose locked memory is limited says so in init', LONG, async () => {
    const run = [
      COMMAND,
      'run',
      '-n',
      '2',
      '--provider',
      'rdma-core',
      '--timeout',
      '60',
      PROGRAM,
      '--',
      `--cases=${JSON.stringify({ about: ['flood'] })}`,
    ];
    const limited = ['-c', 'ulimit -l 64 && exec "$@"', 'bash', process.execPath, ...run];
    const child = spawn('bash', limited, { uid: NOBODY, gid: NOBODY, stdio: ['ignore', 'ignore', 'pipe'] });
    let complaints = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
    expect(await new Promise((resolve) => child.on('close', resolve))).not.toBe(0);
    expect(complaints).toMatch(/ERR_VERBS/);
    expect(complaints).toMatch(/of the 64 KiB that it may lock/);
  });

  test('does not mind another job on it at the same time', LONG, async () => {
    const jobs = [job(MEMBER, '--how=work'), job(MEMBER, '--how=work')];
    for (const { finished } of jobs) {
      const { code, stdout, stderr } = await finished;
      expect(code, stdout + stderr).toBe(0);
    }
    await until(() => NOTHING.test(left()));
  });

  test(
    'keeps notifications for which there is no receive, gives up origins for others, and leaves nothing of windows',
    LONG,
    async () => {
      const { code, stdout, stderr } = await job(PROGRAM, '--count=40').finished;
      expect(code, stdout + stderr).toBe(0);
      for (const { title } of casesIn('robust-device')) expect(stdout).toContain(`"${title}"`);
      await until(() => NOTHING.test(left()));
    },
  );

  test('leaves nothing of a rank that is killed while others write to it, and tells them', LONG, async () => {
    const { code, stdout, stderr } = await job(PROGRAM, '--what=killed').finished;
    expect(code, stdout + stderr).toBe(137);
    expect(stdout).toContain('{"code":"ERR_RMA_RANK_FAILED","rank":1}');
    await until(() => NOTHING.test(left()));
  });

  test('whose port goes down ends with an error that says so', LONG, async () => {
    const { finished, printed } = job(MEMBER, '--how=loop');
    await printed('working');
    ip('link', 'set', 'eth0', 'down');
    const { stdout, stderr } = await finished;
    await restore();
    // Both ranks live: it is the device that has failed. The one that is slower may learn of the other's end instead.
    expect(stdout + stderr).toMatch(/"code":"ERR_VERBS","message":"[^"]*port 1 of rxe0 is DOWN/);
  });

  test('whose network is gone is told that ranks of other hosts have failed, and why', LONG, async () => {
    const members = await distantRanks(MEMBER, '--how=loop');
    await Promise.all(members.map(({ said }) => said('working')));
    ip('link', 'set', 'eth0', 'down');
    const failures = await failuresOf(members);
    await restore();
    for (const { code, message } of failures) expect(code, message).toBe('ERR_RMA_RANK_FAILED');
    const found = failures.map(({ message }) => message).join('\n');
    expect(found).toMatch(/can no longer be reached from rank \d: .*port 1 of rxe0 is DOWN/);
  });

  test('is told so by each call that needs one of them', LONG, async () => {
    const down = join(mkdtempSync(join(tmpdir(), 'onesided-')), 'down');
    const members = await distantRanks(CALLS, `--until=${down}`);
    await Promise.all(members.map(({ said }) => said('working')));
    ip('link', 'set', 'eth0', 'down');
    writeFileSync(down, '');
    const told = await Promise.all(members.map(({ said }) => said('outcomes')));
    rmSync(down);
    await Promise.all(members.map(({ ended }) => ended));
    await restore();
    for (const { outcomes } of told) expectFailures(outcomes!, /can no longer be reached from rank \d/);
  });

  test('does not mind that its device is taken away: that waits for it', LONG, async () => {
    const { child, finished, printed } = job(MEMBER, '--how=loop');
    await printed('working');
    const deleted = new Promise((resolve) => spawn('rdma', ['link', 'delete', name]).on('close', resolve));
    await until(() => rdmaDevices().devices.length === 0);
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    await Promise.all([finished, deleted]);
    await restore();
  });
});

describe('two queue pairs of ports with different MTUs', () => {
  test('agree on the smaller one', LONG, async () => {
    const addresses: RdmaAddress[] = [];
    const openNext = (): RdmaCoreContext => {
      const context = openRdma(chooseEndpoint(), addresses.length, addresses);
      addresses.push(context.own);
      return context;
    };
    const contexts = [openNext()];
    ip('link', 'set', 'eth0', 'mtu', '700');
    await until(() => rdmaDevices().devices[0].ports![0].activeMtu === 512);
    contexts.push(openNext());
    expect(addresses.map(({ mtu }) => mtu)).toEqual([3, 2]);
    const bytes = 2 ** 16;
    const ends = contexts.map((context) => {
      const pd = context.allocPd();
      const memory = context.allocateMemory(bytes);
      const region = pd.registerMemory(memory, 0, bytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
      const cq = context.createCq(16);
      return { memory, region, cq, qp: pd.createQueuePair({ sendCq: cq, recvCq: cq }) };
    });
    for (const [i, { qp }] of ends.entries()) {
      qp.modify({ state: QpState.INIT, access: Access.REMOTE_WRITE });
      qp.modify({ state: QpState.RTR, dest: ends[1 - i].qp.address });
      qp.modify({ state: QpState.RTS });
    }
    for (const [i, { qp, cq, memory, region }] of ends.entries()) {
      const other = ends[1 - i];
      new Uint8Array(memory.buffer).fill(i + 1);
      qp.wrStart();
      qp.wrRdmaWrite(1, SendFlag.SIGNALED, other.region.rkey, other.region.address);
      qp.wrSetSge(region.lkey, region.address, bytes);
      qp.wrComplete();
      await until(() => cq.poll(1) === 1);
      expect(cq.wc.status[0]).toBe(WcStatus.SUCCESS);
      expect(new Uint8Array(other.memory.buffer).every((byte) => byte === i + 1)).toBe(true);
    }
    for (const context of contexts) context.close();
    await restore();
  });
});
