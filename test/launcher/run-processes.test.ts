import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcesses } from '../../src/launcher/processes.ts';
import { loadNative, nativeStatus } from '../../src/native.ts';
import { COMMAND, controlWords, leftWith, marker, onesided, PROBE, processesWith, start, verdicts } from './command.ts';

if (loadNative() === undefined) console.warn(`process ranks are not tested: ${nativeStatus().reason}`);

describe.skipIf(loadNative() === undefined).concurrent('ranks that are processes', () => {
  it('load the library with few descriptors', async () => {
    const command = `ulimit -n 64; exec "$0" "$@"`;
    const child = spawn('/bin/sh', ['-c', command, process.execPath, COMMAND, 'run', '-n', '3', PROBE, '*:print=a']);
    const printed: string[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => printed.push(String(text)));
    await once(child, 'close');
    expect(printed.join('').split('\n').sort()).toEqual(['', '[0] a', '[1] a', '[2] a']);
  });

  describe('output', () => {
    it('has the rank before each line, stdout on stdout and stderr on stderr', async () => {
      const { code, stdout, stderr } = await onesided(
        'run',
        '-n',
        '3',
        PROBE,
        '*:print=a',
        '*:complain=b',
        '*:write=no end',
      );
      expect(code).toBe(0);
      expect(stdout.split('\n').sort()).toEqual([
        '',
        ...[0, 1, 2].flatMap((rank) => [`[${rank}] a`, `[${rank}] no end`]),
      ]);
      expect(stderr.split('\n').sort()).toEqual(['', '[0] b', '[1] b', '[2] b']);
    });

    it('in volume is complete, in each rank’s order, and never mixed within a line', async () => {
      const count = 20_000;
      const { code, stdout } = await onesided('run', '-n', '3', PROBE, `*:lines=${count}`);
      expect(code).toBe(0);
      const lines = stdout.trimEnd().split('\n');
      expect(lines.length).toBe(3 * count);
      const next = [0, 0, 0];
      for (const line of lines) {
        const rank = Number(line[1]);
        const i = next[rank]++;
        if (line !== `[${rank}] line ${i} of rank ${rank}: ${'x'.repeat(i % 200)}`)
          throw new Error(`line ${i} of rank ${rank}: ${line}`);
      }
    });

    it('goes directly to the launcher’s own with --no-prefix', async () => {
      const { code, stdout, stderr } = await onesided(
        'run',
        '-n',
        '2',
        '--no-prefix',
        PROBE,
        '*:print=a',
        '*:complain=b',
      );
      expect([code, stdout, stderr]).toEqual([0, 'a\na\n', 'b\nb\n']);
    });

    it('whose reader goes away ends the job quietly, as SIGPIPE would', async () => {
      const mark = marker();
      const { child, finished, printed } = start(['run', '-n', '2', PROBE, '*:stream', mark]);
      await printed('[1] more');
      child.stdout!.destroy();
      const { code, stderr } = await finished;
      expect([code, stderr]).toEqual([141, '']);
      expect(await leftWith(mark)).toEqual([]);
    });

    it('of a process that a rank left behind does not hold the job up', async () => {
      const mark = marker();
      const { code } = await onesided('run', '-n', '2', PROBE, '*:leave', mark);
      expect(code).toBe(0);
      expect(await leftWith(mark)).toEqual([]);
    });
  });

  describe('what a rank gets', () => {
    it('is its number, the size, its arguments and the timeout', async () => {
      const { stdout } = await onesided(
        ...[
          'run',
          '-np',
          '2',
          '--timeout',
          '60',
          PROBE,
          '--',
          '*:env=ONESIDED_SIZE',
          '*:env=ONESIDED_TIMEOUT',
          '1:argv',
          '-n',
          '--',
        ],
      );
      expect(stdout).toContain('[0] ONESIDED_SIZE=2\n');
      expect(stdout).toContain('[1] ONESIDED_TIMEOUT=65\n');
      expect(stdout).toContain('[1] ["*:env=ONESIDED_SIZE","*:env=ONESIDED_TIMEOUT","1:argv","-n","--"]\n');
    });

    it('is the environment as it was, whatever a shell thinks of its names and values', async () => {
      const env = {
        PATH: process.env['PATH'],
        'a.b': '1',
        'npm_config_//registry.example.org/:_authToken': 'x=y',
        'BASH_FUNC_f%%': '() { echo no; }',
        IFS: ' :',
        PPID: '7',
        OPTIND: 'abc',
        PWD: '/nowhere',
        OLDPWD: '/nowhere/else',
        SHLVL: '41',
        _: 'underscore',
        LINES: ' two\nlines ',
        empty: '',
      };
      const { code, stdout, stderr } = await start(['run', '-n', '2', PROBE, '*:environment'], { env }).finished;
      expect([code, stderr]).toEqual([0, '']);
      for (const rank of [0, 1]) {
        const [, json] = new RegExp(`^\\[${rank}\\] (.*)$`, 'm').exec(stdout)!;
        const all = Object.entries(JSON.parse(json)).filter(([name]) => !name.startsWith('ONESIDED_'));
        expect(Object.fromEntries(all)).toEqual(env);
      }
    });

    it('is standard input for rank 0 only', async () => {
      const { child, finished } = start(['run', '-n', '2', PROBE, '*:stdin', '*:print=done'], {
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      child.stdin!.end('typed\n');
      const { code, stdout } = await finished;
      expect(code).toBe(0);
      expect(stdout.trim().split('\n').sort()).toEqual(['[0] done', '[0] typed', '[1] done']);
    });

    it('is the control memory as its descriptor 3, which all share', async () => {
      const { state } = controlWords(2);
      const { code, stdout } = await onesided(
        'run',
        '-n',
        '2',
        PROBE,
        `0:until=${state(1)}`,
        '0:print=seen',
        `1:store=${state(1)}/2`,
      );
      expect([code, stdout]).toEqual([0, '[0] seen\n']);
    });
  });

  describe('the first failure', () => {
    it('by an exit code is the job’s, with one line that says so', async () => {
      const mark = marker();
      const { code, stderr } = await onesided(
        'run',
        '-n',
        '3',
        '--grace',
        '0.1',
        PROBE,
        '1:exit=4',
        '*:sleep=60000',
        mark,
      );
      expect(code).toBe(4);
      expect(stderr).toMatch(/^onesided: rank 1 exited with code 4 \(pid \d+\); the other 2 ranks were stopped\n$/);
      expect(processesWith(mark)).toEqual([]);
    });

    it('by a signal gives 128 + its number', async () => {
      const { code, stderr } = await onesided('run', '-n', '2', '--grace', '0.1', PROBE, '0:kill=SIGKILL', '*:spin');
      expect(code).toBe(137);
      expect(stderr).toMatch(/^onesided: rank 0 was killed by SIGKILL \(pid \d+\); the other rank was stopped\n$/);
    });

    it('by an exception shows the exception, then one line', async () => {
      const { code, stderr } = await onesided(
        'run',
        '-n',
        '2',
        '--grace',
        '0.1',
        PROBE,
        '1:throw=no way',
        '*:sleep=60000',
      );
      expect(code).toBe(1);
      expect(stderr).toContain('[1] Error: no way\n');
      expect(verdicts(stderr)).toEqual([expect.stringMatching(/^onesided: rank 1 exited with code 1 /)]);
      expect(stderr.trimEnd().split('\n').at(-1)).toBe(verdicts(stderr)[0]);
    });

    it('reaches a rank that waits through the control memory, which can end by itself', async () => {
      const { failed } = controlWords(2);
      const { code, stdout } = await onesided(
        'run',
        '-n',
        '2',
        '--grace',
        '60',
        PROBE,
        '0:exit=3',
        `1:until=${failed}`,
        '1:print=told',
      );
      expect([code, stdout]).toEqual([3, '[1] told\n']);
    });

    it('kills a rank that ignores SIGTERM', async () => {
      const mark = marker();
      const ready = controlWords(2).state(0);
      const steps = ['0:catch=SIGTERM', `0:store=${ready}/1`, `1:until=${ready}`, '1:exit=5', '*:sleep=60000', mark];
      const { code, stdout } = await onesided('run', '-n', '2', '--grace', '0.1', PROBE, ...steps);
      expect([code, stdout]).toEqual([5, '[0] caught SIGTERM\n']);
      expect(processesWith(mark)).toEqual([]);
    });

    it('after an exit without finalize names both ranks', async () => {
      const { failed, state } = controlWords(2);
      const steps = [`*:store=${state(0)}/1`, `1:store=${state(1)}/1`, '1:exit=0', `0:until=${failed}`, '0:exit=9'];
      const { code, stderr } = await onesided('run', '-n', '2', PROBE, ...steps);
      expect(code).toBe(9);
      expect(stderr).toMatch(
        /^onesided: rank 1 exited with code 0 without calling finalize\(\) \(pid \d+\); rank 0 then exited with code 9\n$/,
      );
    });
  });

  describe('a timeout', () => {
    it('ends the job with 124 and says who was still running', async () => {
      const mark = marker();
      const { state } = controlWords(3);
      const steps = [`1:store=${state(1)}/1`, '2:exit=0', '*:spin', mark];
      const { code, stderr } = await onesided('run', '-n', '3', '--timeout', '4', PROBE, ...steps);
      expect(code).toBe(124);
      expect(stderr).toMatch(
        /^onesided: the job did not end within 4 s \(--timeout\); still running:\n {2}rank 0 \(pid \d+\) has not called init\(\)\n {2}rank 1 \(pid \d+\) is not waiting in a call of this library\n$/,
      );
      expect(processesWith(mark)).toEqual([]);
    });
  });

  describe('a signal to the launcher', () => {
    it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s reaches every rank once', async (signal) => {
      const { child, finished, printed } = start([
        'run',
        '-n',
        '2',
        PROBE,
        `*:catch=${signal}`,
        '*:print=ready',
        '*:sleep=1000',
        '*:print=end',
      ]);
      for (const rank of [0, 1]) await printed(`[${rank}] ready`);
      child.kill(signal);
      const { code, stdout, stderr } = await finished;
      expect(code).toBe(128 + constants.signals[signal]);
      const said = [0, 1].flatMap((rank) => [`[${rank}] caught ${signal}`, `[${rank}] end`, `[${rank}] ready`]);
      expect(stdout.trim().split('\n').sort()).toEqual(said);
      expect(stderr).toBe(`onesided: interrupted by ${signal} while 2 ranks were running\n`);
    });

    it('kills the second time', async () => {
      const mark = marker();
      const { child, finished, printed } = start([
        'run',
        '-n',
        '2',
        PROBE,
        '*:catch=SIGINT',
        '*:print=ready',
        '*:sleep=60000',
        mark,
      ]);
      for (const rank of [0, 1]) await printed(`[${rank}] ready`);
      child.kill('SIGINT');
      for (const rank of [0, 1]) await printed(`[${rank}] caught SIGINT`);
      child.kill('SIGINT');
      expect((await finished).code).toBe(130);
      expect(processesWith(mark)).toEqual([]);
    });

    it('SIGKILL leaves nothing, not even a rank in an endless loop or what a rank has started', async () => {
      const mark = marker();
      const { child, finished, printed } = start([
        'run',
        '-n',
        '2',
        PROBE,
        '*:leave',
        '*:print=ready',
        '1:spin',
        '*:sleep=60000',
        mark,
      ]);
      await printed('[0] ready');
      while (processesWith(mark).length < 4) await sleep(10);
      child.kill('SIGKILL');
      await finished;
      expect(await leftWith(mark)).toEqual([]);
    });

    it('SIGKILL leaves nothing while ranks are still being started', async () => {
      for (const when of [1, 2, 3]) {
        const mark = marker();
        const { child, finished } = start(['run', '-n', '5', PROBE, '*:sleep=60000', mark]);
        while (processesWith(mark).length < when) await sleep(1);
        child.kill('SIGKILL');
        await finished;
        expect(await leftWith(mark)).toEqual([]);
      }
    });

    it('SIGTSTP stops the ranks until SIGCONT', async () => {
      const mark = marker();
      const { child, finished, printed } = start(['run', '-n', '2', PROBE, '*:print=ready', '*:sleep=3000', mark]);
      for (const rank of [0, 1]) await printed(`[${rank}] ready`);
      const stopped = (pid: number): boolean => /\) T/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
      child.kill('SIGTSTP');
      while (!stopped(child.pid!)) await sleep(5);
      const ranks = processesWith(mark);
      expect(ranks.length).toBe(2);
      while (!ranks.every(stopped)) await sleep(5);
      child.kill('SIGCONT');
      expect((await finished).code).toBe(0);
    });
  });

  describe('runProcesses', () => {
    it('gives the result and leaves printing to its caller', async () => {
      const { PassThrough } = await import('node:stream');
      const stdout = new PassThrough();
      const options = { size: 2, script: PROBE, args: ['1:print=out', '0:exit=6'], grace: 60 };
      const result = await runProcesses({ ...options, output: { stdout, stderr: new PassThrough() } });
      expect(result).toMatchObject({ exitCode: 6, failure: { kind: 'exit-code', rank: 0 } });
      expect(String(stdout.read())).toBe('[1] out\n');
      await runProcesses({ ...options, output: { stdout, prefix: false } });
      expect(String(stdout.read())).toBe('out\n');
    });

    it('rejects wrong options before it starts anything', async () => {
      await expect(runProcesses({ size: 1.5, script: PROBE })).rejects.toMatchObject({
        name: 'TypeError',
        code: 'ERR_ARG',
      });
      await expect(runProcesses({ size: 0, script: PROBE })).rejects.toMatchObject({
        name: 'RangeError',
        code: 'ERR_ARG',
      });
      await expect(runProcesses({ size: 5000, script: PROBE })).rejects.toMatchObject({ code: 'ERR_ARG' });
      await expect(runProcesses({ size: 1, script: PROBE, timeout: Number.NaN })).rejects.toMatchObject({
        code: 'ERR_ARG',
      });
      await expect(runProcesses({ size: 1, script: '' })).rejects.toMatchObject({ code: 'ERR_ARG' });
    });
  });
});

describe('TypeScript', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'onesided-test-'));
    writeFileSync(
      join(directory, 'rank.mts'),
      'const rank: string = process.env["ONESIDED_RANK"]!;\nconsole.log("typed", rank);\n',
    );
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const strips = Boolean((process.features as { typescript?: unknown }).typescript);

  it(`is ${strips ? 'run' : 'refused with a way out'} by this Node`, async () => {
    const { code, stdout, stderr } = await onesided(
      'run',
      '-n',
      '1',
      '--ranks',
      'threads',
      join(directory, 'rank.mts'),
    );
    if (strips) expect([code, stdout]).toEqual([0, '[0] typed 0\n']);
    else {
      expect(code).toBe(2);
      expect(stderr).toMatch(
        /^onesided run: Node .* does not run TypeScript .*: compile it first, use Node 22\.18 or newer, or .*--import tsx/,
      );
    }
  });
});
