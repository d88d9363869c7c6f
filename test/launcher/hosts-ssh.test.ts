/** `onesided run --hosts` by a real ssh, to a daemon of the test's own, where there is one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { temporaryFolder } from '../support/folders.ts';
import { freePort } from '../support/ports.ts';
import { leftWith, marker, PROBE, parentOf, processesWith, start, verdicts } from './command.ts';

const DAEMON = '/usr/sbin/sshd';
const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/launcher-hosts.js', import.meta.url));
const folder = temporaryFolder('ssh');
const can = existsSync(DAEMON) && loadNative() !== undefined && spawnSync('ssh', ['-V']).status === 0;

/** The words of `--ssh`. */
const SSH = `ssh -F ${join(folder, 'config')} -o BatchMode=yes -o LogLevel=ERROR`;
let daemon: ChildProcess | undefined;

describe.skipIf(!can)('hosts by ssh', () => {
  beforeAll(async () => {
    for (const key of ['host', 'user']) {
      spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, key)]);
    }
    const port = await freePort();
    const hosts = ['a', 'b'].map((name) => `Host ${name}\n  HostName 127.0.0.1\n  Port ${port}\n`).join('');
    const client = [`IdentityFile ${join(folder, 'user')}`, 'StrictHostKeyChecking no', 'UserKnownHostsFile /dev/null'];
    writeFileSync(join(folder, 'config'), `${client.join('\n')}\nUser ${userInfo().username}\n${hosts}`);
    // It must be there for a daemon that root starts.
    if (process.getuid!() === 0) mkdirSync('/run/sshd', { recursive: true });
    const options = {
      Port: port,
      ListenAddress: '127.0.0.1',
      HostKey: join(folder, 'host'),
      AuthorizedKeysFile: join(folder, 'user.pub'),
      StrictModes: 'no',
      UsePAM: 'no',
      PidFile: 'none',
    };
    const args = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    daemon = spawn(DAEMON, ['-D', '-e', '-f', '/dev/null', ...args], { stdio: 'ignore' });
    await answers(port);
  });
  afterAll(() => {
    daemon?.kill('SIGKILL');
  });

  it('run in any directory, with any arguments', async () => {
    const cwd = join(realpathSync(folder), `it's "a" $HOME \`id\` ; &`);
    mkdirSync(cwd);
    const odd = `it's "$HOME" \`id\` \\ ; & *\nnext`;
    const args = ['run', '--hosts', 'a:1,b:1', '--ssh', SSH, PROBE, '--', '*:argv', '*:env=PWD', odd];
    const { code, stdout, stderr } = await start(args, { cwd }).finished;
    expect([code, stderr]).toEqual([0, '']);
    for (const rank of [0, 1]) {
      expect(stdout).toContain(`[${rank}] ${JSON.stringify(['*:argv', '*:env=PWD', odd])}\n`);
      expect(stdout).toContain(`[${rank}] PWD=${cwd}\n`);
    }
  });

  it('leave nothing when the launcher is killed, or an ssh', async () => {
    for (const victim of ['launcher', 'ssh']) {
      const mark = marker();
      const args = ['run', '--hosts', 'a:2,b:2', '--ssh', SSH, PROGRAM, '--', '--how=hang', mark];
      const job = start(args);
      for (const text of ['[0] waiting', '[1] working', '[3] waiting']) await job.printed(text);
      if (victim === 'launcher') job.child.kill('SIGKILL');
      else
        for (const pid of processesWith('\0b\0sh')) if (parentOf(pid) === job.child.pid) process.kill(pid, 'SIGKILL');
      const { code, stderr } = await job.finished;
      if (victim === 'ssh') {
        expect(code).toBe(1);
        expect(verdicts(stderr)).toEqual([
          expect.stringMatching(/^onesided: lost b: "ssh .* b sh" was ended by SIGKILL/),
        ]);
      }
      expect(await leftWith(mark)).toEqual([]);
    }
  });

  it('say why ssh has failed', async () => {
    const args = ['run', '--hosts', 'a:1,no-such-host.invalid:1', '--ssh', SSH, PROBE, '--', '*:print=x'];
    const { code, stdout, stderr } = await start(args).finished;
    expect([code, stdout]).toEqual([1, '']);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(/cannot reach no-such-host.invalid: "ssh .*" ended with code 255: ssh: Could not resolve/),
    ]);
  });
});

/** Resolves when something listens there. */
async function answers(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const there = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (there) return;
    await sleep(20);
  }
}
