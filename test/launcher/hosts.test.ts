/**
 * `onesided run --hosts`, where the command that leads to a host runs a shell of this machine: agents, what goes
 * through them, and that nothing is left, whichever process is killed.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { VERSION } from '../../src/version.ts';
import { temporaryFolder } from '../support/folders.ts';
import { checkTrace } from '../trace/events.ts';
import {
  type Finished,
  leftWith,
  marker,
  PROBE,
  parentOf,
  processesWith,
  type Running,
  start,
  verdicts,
} from './command.ts';

const RANKS = fileURLToPath(new URL('../../build/programs/test/ranks/', import.meta.url));
const PROGRAM = join(RANKS, 'launcher-hosts.js');
const folder = temporaryFolder('hosts');

/** A command that leads to hosts: `$1` is the host, the rest what is to run there. */
function shell(name: string, script: string): string {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

const HERE = shell('here', 'host=$1; shift; REACHED=$host exec "$@"');
/** As ssh: a process between the launcher and the host, which passes everything on. */
const BETWEEN = shell('between', 'shift; exec 3<&0; "$@" <&3 & exec <&- 3<&-; wait $!');

interface Options {
  readonly hosts?: string;
  readonly ssh?: string;
  readonly options?: readonly string[];
  readonly program?: string;
}

function launch(
  args: readonly string[],
  { hosts = 'a:2,b:2', ssh = HERE, options = [], program = PROGRAM }: Options = {},
  how: Parameters<typeof start>[1] = {},
): Running {
  return start(['run', '--hosts', hosts, '--ssh', ssh, ...options, program, '--', ...args], how);
}

const probe = (args: readonly string[], options: Options = {}): Promise<Finished> =>
  launch(args, { program: PROBE, ...options }).finished;

/** What each rank has said as JSON. */
function said({ stdout }: Finished): Record<number, unknown> {
  return Object.fromEntries(
    [...stdout.matchAll(/^\[(\d+)\] ([[{].*)$/gm)].map(([, rank, json]) => [rank, JSON.parse(json)]),
  ) as Record<number, unknown>;
}

describe.skipIf(loadNative() === undefined)('ranks of several hosts', () => {
  it('are one world, in blocks of hosts, with their launcher’s arguments and directory', async () => {
    const cwd = realpathSync(folder);
    const { finished } = launch(['--how=work'], { hosts: 'a:1,b:2,a:1' }, { cwd });
    const result = await finished;
    expect(result).toMatchObject({ code: 0, stderr: '' });
    const all = Object.values(said(result)) as { rank: number; parent: number }[];
    expect(all).toEqual(
      [0, 1, 2, 3].map((rank) => ({
        rank,
        size: 4,
        got: rank === 0 ? 4 : rank,
        cwd,
        left: [],
        parent: expect.any(Number) as number,
      })),
    );
    const [first, second, third, last] = all.map(({ parent }) => parent);
    expect([second === third, first === last, first === second]).toEqual([true, true, false]);
  });

  it('are those of a file of hosts, or the first of them', async () => {
    const file = join(folder, 'hosts');
    writeFileSync(file, 'a slots=1\nb:4\n');
    const { finished } = start(['run', '--hostfile', file, '--ssh', HERE, '-n', '3', PROBE, '--', '*:env=REACHED']);
    const { code, stdout } = await finished;
    expect(code).toBe(0);
    expect(stdout.split('\n').sort()).toEqual(['', '[0] REACHED=a', '[1] REACHED=b', '[2] REACHED=b']);
  });

  it('get arguments, Node’s options and variables as they are, which stand on no command line before', async () => {
    const mark = marker();
    const odd = `it's "$HOME" \`x\` \\ *\n${mark}`;
    const job = launch(
      ['*:argv', '*:env=ODD', '0:sleep=1000', odd],
      { program: PROBE },
      { env: { ...process.env, ODD: odd, NODE_OPTIONS: '--max-old-space-size=99' } },
    );
    await job.printed('ODD=');
    // The ranks alone; neither agents nor what led to them.
    expect(processesWith(mark).length).toBeLessThanOrEqual(4);
    const result = await job.finished;
    expect(result.code).toBe(0);
    expect(said(result)[3]).toEqual(['*:argv', '*:env=ODD', '0:sleep=1000', odd]);
    expect(result.stdout).toContain(`[3] ODD=it's "$HOME"`);
  });

  it('write as fast as they like, each line whole and in order', async () => {
    const { code, stdout } = await probe(['*:lines=5000', '*:complain=done']);
    expect(code).toBe(0);
    for (let rank = 0; rank < 4; rank++) {
      const own = stdout.split('\n').filter((line) => line.startsWith(`[${rank}] `));
      expect(own).toEqual(
        Array.from({ length: 5000 }, (_, i) => `[${rank}] line ${i} of rank ${rank}: ${'x'.repeat(i % 200)}`),
      );
    }
  });

  it('write bytes, with no prefix if none is wanted', async () => {
    const { stdout } = await probe(['1:write=Ä\u0001€'], { options: ['--no-prefix'] });
    expect(stdout).toBe('Ä\u0001€\n');
  });

  it('have standard input at rank 0, whatever its length', async () => {
    const text = 'öder Text, 27 Bytes lang.\n'.repeat(50_000);
    const { child, finished } = launch(['0:stdin'], { program: PROBE }, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin!.end(text);
    const { code, stdout } = await finished;
    expect(code).toBe(0);
    expect(stdout.replaceAll(/^\[0\] /gm, '')).toBe(text);
  });

  it('end although rank 0 reads no input, and more comes', async () => {
    const { child, finished } = launch(['*:print=x'], { program: PROBE }, { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin!.on('error', () => {}).write('x'.repeat(1_000_000));
    expect((await finished).code).toBe(0);
    child.stdin!.destroy();
  });
});

describe.skipIf(loadNative() === undefined)('what ranks of several hosts record', () => {
  const recorded = (...args: string[]): Promise<Finished> =>
    start(['run', '--hosts', 'a:2,b:1', '--ssh', HERE, '--timeout', '100', ...args]).finished;

  it('is one trace', async () => {
    const file = join(folder, 'trace.json');
    const { code, stderr } = await recorded('--trace', file, join(RANKS, 'trace.js'));
    expect(code).toBe(0);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(/^onesided: trace of 3 ranks, [\d,]+ events, in .*json: open/),
    ]);
    expect(checkTrace(file).other).toMatchObject({ ranks: 3, dropped: [0, 0, 0], disordered: 0 });
  });

  it('is one report of supersteps', async () => {
    const { code, stderr } = await recorded('--bsp-report', '--bsp-machine=none', join(RANKS, 'bsp-steps.js'));
    expect(code).toBe(0);
    expect(stderr).toMatch(/BSP computation of 3 processes, shared delivery: 5 supersteps/);
  });
});

describe.skipIf(loadNative() === undefined)('a job on several hosts that fails', () => {
  const ENDS: [string, string, number, RegExp][] = [
    [
      'a rank is killed',
      'kill',
      137,
      /^onesided: rank 3 was killed by SIGKILL \(pid \d+ on b\); the other 3 ranks were/,
    ],
    ['a rank exits before it has joined', 'early', 7, /^onesided: rank 1 exited with code 7 \(pid \d+ on a\); the/],
    [
      'a rank never joins',
      'never',
      1,
      /^onesided: rank 1 exited with code 0 without calling init\(\) \(pid \d+ on a\)/,
    ],
    ['a rank calls abort', 'abort', 9, /^onesided: rank 2 exited with code 9 \(pid \d+ on b\)/],
  ];
  it.each(ENDS)('names the rank and its host: %s', async (_, how, code, message) => {
    const mark = marker();
    const result = await launch([`--how=${how}`, mark]).finished;
    expect(result.code).toBe(code);
    expect(verdicts(result.stderr)).toEqual([expect.stringMatching(message)]);
    expect(await leftWith(mark)).toEqual([]);
  });

  // The others have ended because of it before, or before the launcher waits for its end no more.
  it.each([0, 200, 900])('keeps a code of more than eight bits of a rank that exits for %d ms', async (ms) => {
    const whole = await launch(['--how=whole', `--for=${ms}`]).finished;
    expect(whole.code).toBe(1);
    expect(verdicts(whole.stderr)).toEqual([
      expect.stringMatching(/^onesided: rank 2 exited with code 256 \(pid \d+ on b\)/),
    ]);
  });

  it('shows an error last and whole', async () => {
    const { stderr } = await probe(['2:throw=oops', '*:sleep=60000'], { options: ['--grace', '0'] });
    expect(stderr).toMatch(/\[2\] Error: oops\n(\[2\] .*\n)*onesided: rank 2 exited with code 1 \(pid \d+ on b\)/);
  });

  it('says what each rank waited for when time is up', async () => {
    const mark = marker();
    const { code, stderr } = await launch(['--how=hang', mark], { options: ['--timeout', '4'] }).finished;
    expect(code).toBe(124);
    expect(stderr).toMatch(/rank 0 \(pid \d+ on a\) waits in /);
    expect(stderr).toMatch(/rank 1 \(pid \d+ on a\) is not waiting in a call of this library/);
    expect(stderr).toMatch(/rank 3 \(pid \d+ on b\) waits in .*rank 1/);
    expect(await leftWith(mark)).toEqual([]);
  });

  it('says which host’s command has not answered when time is up', async () => {
    const ssh = shell('silent', 'host=$1; shift; [ "$host" = a ] || exec sleep 100; exec "$@"');
    const { code, stderr } = await launch(['--how=work'], { ssh, options: ['--timeout', '4'] }).finished;
    expect(code).toBe(124);
    const words = 'has not been started: the command for b has not answered';
    for (const [rank, host] of ['a', 'a', 'b', 'b'].entries())
      expect(stderr).toContain(`rank ${rank} (on ${host}) ${words}`);
  });

  it('refuses an ONESIDED_ADDRESS that is none, and names the host', async () => {
    const ssh = shell('named', 'host=$1; shift; [ "$host" = a ] || export ONESIDED_ADDRESS=nowhere; exec "$@"');
    const { code, stderr } = await launch(['--how=work'], { ssh }).finished;
    expect(code).toBe(1);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(
        /^onesided: b: ONESIDED_ADDRESS must be an address of IP .* such as 10\.0\.0\.1, not "nowhere"/,
      ),
    ]);
  });

  it('passes signals on, and says what ranks waited for after Ctrl-C', async () => {
    const job = launch(['--how=hang']);
    for (const text of ['[0] waiting', '[1] working', '[2] waiting', '[3] waiting']) await job.printed(text);
    job.child.kill('SIGINT');
    const { code, stderr } = await job.finished;
    expect(code).toBe(130);
    expect(stderr).toMatch(/interrupted by SIGINT while 4 ranks were running:\n {2}rank 0 \(pid \d+ on a\) waits/);
  });

  it('lets ranks handle a signal', async () => {
    const steps = ['*:exit-on=SIGTERM', '*:print=ready', '*:sleep=60000'];
    const job = launch(steps, { program: PROBE });
    for (let rank = 0; rank < 4; rank++) await job.printed(`[${rank}] ready`);
    job.child.kill('SIGTERM');
    expect((await job.finished).code).toBe(143);
  });
});

describe.skipIf(loadNative() === undefined)('nothing stays on any host', () => {
  /** A job whose ranks have left a process of another session each, and go on for ever. */
  async function lasting(ssh: string): Promise<{ job: Running; mark: string }> {
    const mark = marker();
    const job = launch(['*:leave-detached=X', '*:print=ready', '0:spin', '*:sleep=600000', mark], {
      program: PROBE,
      ssh: `${ssh}`,
    });
    for (let rank = 0; rank < 4; rank++) await job.printed(`[${rank}] ready`);
    expect(processesWith(mark).length).toBe(8);
    return { job, mark };
  }

  const agents = (ssh: string): number[] => processesWith('onesided.mjs').concat(processesWith(ssh));

  it.each([
    ['a shell', HERE],
    ['a process between', BETWEEN],
  ])('when the launcher is killed, by %s', async (_, ssh) => {
    const { job, mark } = await lasting(ssh);
    job.child.kill('SIGKILL');
    await job.finished;
    expect(await leftWith(mark)).toEqual([]);
  });

  it('when an agent is killed: the launcher says which host is lost', async () => {
    const { job, mark } = await lasting(HERE);
    const own = agents(HERE).filter((pid) => parentOf(pid) === job.child.pid);
    expect(own.length).toBe(2);
    process.kill(own[0], 'SIGKILL');
    const { code, stderr } = await job.finished;
    expect(code).toBe(1);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(/^onesided: lost [ab]: ".*here [ab] sh" was ended by SIGK/),
    ]);
    expect(await leftWith(mark)).toEqual([]);
  });

  it('when an agent does not answer any more', async () => {
    const { job, mark } = await lasting(HERE);
    const [agent] = agents(HERE).filter((pid) => parentOf(pid) === job.child.pid);
    process.kill(agent, 'SIGSTOP');
    const { code, stderr } = await job.finished;
    expect(code).toBe(1);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(/^onesided: lost [ab]: nothing was heard from it for 9 s/),
    ]);
    expect(await leftWith(mark)).toEqual([]);
  });
});

describe.skipIf(loadNative() === undefined)('a host that cannot be reached', () => {
  const failing = async (ssh: string, options: Options = {}, exitCode = 1): Promise<string> => {
    const { code, stdout, stderr } = await probe(['*:print=started'], { ssh, ...options });
    expect([code, stdout]).toEqual([exitCode, '']);
    return verdicts(stderr).join('\n');
  };

  it('is named, with what its command has said', async () => {
    const refuses = shell(
      'refuses',
      'if [ $1 = b ]; then echo "ssh: connect: No route" >&2; exit 255; fi; shift; exec "$@"',
    );
    expect(await failing(refuses)).toMatch(
      /^onesided: cannot reach b: ".*refuses b sh" ended with code 255: ssh: connect: No/,
    );
    expect(await failing('onesided-no-such-command -x')).toBe(
      'onesided: cannot reach a: there is no command "onesided-no-such-command"',
    );
    expect(await failing(shell('talks', 'echo Welcome; exit 3'))).toMatch(/ended with code 3: Welcome$/);
  });

  it('may lack the directory, the script, or the version', async () => {
    const other = join(folder, 'other');
    mkdirSync(other);
    expect(await failing(HERE, { options: ['--wdir', '/no/where'] })).toMatch(
      /^onesided: cannot start ranks on a: there is no directory "\/no\/where" that can be entered; --wdir names another one$/,
    );
    expect(await failing(HERE, { options: ['--wdir', other], program: 'app.mjs' }, 2)).toBe(
      `onesided: a: the script "app.mjs" does not exist; looked for ${other}/app.mjs`,
    );
    const older = shell('older', `shift; "$@" | sed -u 's/"version":"${VERSION}"/"version":"9.9.9"/'`);
    expect(await failing(older)).toBe(
      `onesided: a has onesided 9.9.9, and this host ${VERSION}; all ranks of a job must run the same version`,
    );
    const liar = shell('liar', `shift; "$@" | sed -u 's/{"started":[23]/{"started":0/'`);
    expect(await failing(HERE.replace(/.*/, liar))).toMatch(
      /^onesided: lost [ab]: it speaks for rank [02], which is not there$/,
    );
    const bare = shell('bare', 'shift; ONESIDED_NO_ADDON=1 exec "$@"');
    expect(await failing(bare)).toMatch(/^onesided: a: ranks need the native addon, which is not available/);
  });

  it('may greet whoever logs in', async () => {
    const greets = shell('greets', 'echo "Welcome to $1"; echo "{}"; echo "no key" >&2; shift; exec "$@"');
    const { code, stdout, stderr } = await probe(['*:env=ONESIDED_SIZE'], { ssh: greets, hosts: 'a' });
    expect([code, stdout, stderr]).toEqual([0, '[0] ONESIDED_SIZE=1\n', 'onesided: a: no key\n']);
  });

  it('is not waited for after Ctrl-C', async () => {
    const silent = shell('silent', 'cat >/dev/null');
    const job = launch([], { ssh: silent });
    while (processesWith(silent).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    job.child.kill('SIGINT');
    const { code } = await job.finished;
    expect(code).toBe(130);
    expect(await leftWith(silent)).toEqual([]);
  });
});

const canUnshare = spawnSync('unshare', ['--net', 'true']).status === 0;
describe.skipIf(loadNative() === undefined || !canUnshare)('hosts that do not share memory', () => {
  /** Hosts with a network of their own each, and nothing in it. */
  const ssh = shell('island', 'shift; exec unshare --net "$@"');

  it('run a program that does not join', async () => {
    const { code, stdout } = await probe(['*:env=ONESIDED_HOST'], { ssh });
    expect(code).toBe(0);
    expect(stdout.split('\n').sort().join()).toBe(
      ',[0] ONESIDED_HOST=a,[1] ONESIDED_HOST=a,[2] ONESIDED_HOST=b,[3] ONESIDED_HOST=b',
    );
  });

  it('need a provider between them', async () => {
    const { code, stderr } = await launch(['--how=work'], { ssh, options: ['--provider', 'emulator'] }).finished;
    expect(code).toBe(1);
    expect(stderr).toBe(
      'onesided: the provider emulator does not connect ranks of several hosts; ' +
        'set ONESIDED_PROVIDER=rdma-core or libfabric\n',
    );
  });

  it('need to reach each other', async () => {
    const { code, stderr } = await launch(['--how=late'], { ssh }).finished;
    expect(code).toBe(1);
    expect(verdicts(stderr)).toEqual([
      expect.stringMatching(
        /^onesided: b cannot connect to a at 127\.0\.0\.1:\d+ \(.*\); firewalls .* and ONESIDED_ADDRESS on a says at/,
      ),
    ]);
  });
});
