import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { COMMAND, controlWords, onesided, PROBE, start, verdicts } from './command.ts';

function threads(size: number, ...steps: string[]) {
  return onesided('run', '-n', String(size), '--ranks', 'threads', '--grace', '0.1', PROBE, ...steps);
}

describe.concurrent('ranks that are threads', () => {
  it('print with their number, and get arguments and environment', async () => {
    const { code, stdout, stderr } = await threads(2, '*:print=a', '*:complain=b', '*:env=ONESIDED_SIZE', '1:argv');
    expect(code).toBe(0);
    const ofRank = (rank: number): string[] => stdout.split('\n').filter((line) => line.startsWith(`[${rank}]`));
    expect(ofRank(0)).toEqual(['[0] a', '[0] ONESIDED_SIZE=2']);
    expect(ofRank(1)).toEqual([
      '[1] a',
      '[1] ONESIDED_SIZE=2',
      '[1] ["*:print=a","*:complain=b","*:env=ONESIDED_SIZE","1:argv"]',
    ]);
    expect(stderr.split('\n').sort()).toEqual(['', '[0] b', '[1] b']);
  });

  it('have the flags that Node was given, also those of V8, which it refuses for threads', async () => {
    const flags = ['--expose-gc', '--max-semi-space-size=1', '--no-warnings'];
    for (const option of [[], ['--races']]) {
      const run = ['run', '-n', '2', '--ranks', 'threads', ...option, PROBE, '*:print=here'];
      const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, COMMAND, ...run], { encoding: 'utf8' });
      expect([status, stdout.split('\n').sort().join(' ').trim()], stderr).toEqual([0, '[0] here [1] here']);
    }
  });

  it('need no addon, also when nobody has asked for threads', async () => {
    const env = { ...process.env, ONESIDED_NO_ADDON: '1' };
    const asked = await start(['run', '-n', '2', '--ranks', 'threads', PROBE, '0:print=x'], { env }).finished;
    expect(asked).toMatchObject({ code: 0, stdout: '[0] x\n', stderr: '' });
    const unasked = await start(['run', '-n', '2', PROBE, '0:print=x'], { env }).finished;
    expect(unasked).toMatchObject({ code: 0, stdout: '[0] x\n' });
    expect(unasked.stderr).toMatch(
      /^onesided: the native addon is not available \(.*\); running the ranks as threads; build it with "npx onesided build"\n$/,
    );
    const processes = await start(['run', '-n', '2', '--ranks', 'processes', PROBE], { env }).finished;
    expect(processes).toMatchObject({ code: 1, stdout: '' });
    expect(processes.stderr).toMatch(
      /^onesided run: ranks that are processes need the native addon.*use --ranks threads\n$/,
    );
  });

  it('share the control memory', async () => {
    const { state } = controlWords(2);
    expect(await threads(2, `0:until=${state(1)}`, '0:print=seen', `1:store=${state(1)}/2`)).toMatchObject({
      code: 0,
      stdout: '[0] seen\n',
    });
  });

  it('end alone by process.exit; its code is the job’s, and endless loops are stopped', async () => {
    const { code, stderr } = await threads(3, '1:exit=4', '*:spin');
    expect(code).toBe(4);
    expect(stderr).toMatch(/^onesided: rank 1 exited with code 4 \(thread \d+\); the other 2 ranks were stopped\n$/);
  });

  it('show their exceptions, then one line', async () => {
    const { code, stderr } = await threads(2, '0:throw=no way', '*:sleep=60000');
    expect(code).toBe(1);
    expect(stderr).toContain('[0] Uncaught Error: no way\n');
    expect(verdicts(stderr).length).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(verdicts(stderr)[0]);
  });

  it('are told of a failure through the control memory', async () => {
    const { failed } = controlWords(2);
    const steps = ['0:exit=3', `1:until=${failed}`, '1:print=told'];
    const { code, stdout } = await onesided('run', '-n', '2', '--ranks', 'threads', '--grace', '60', PROBE, ...steps);
    expect([code, stdout]).toEqual([3, '[1] told\n']);
  });

  it('end at the timeout', async () => {
    const { code, stderr } = await onesided(
      'run',
      '-n',
      '2',
      '--ranks',
      'threads',
      '--timeout',
      '0.7',
      PROBE,
      '0:exit=0',
      '*:spin',
    );
    expect(code).toBe(124);
    // On a busy machine rank 0 may not have come to its end.
    expect(stderr).toMatch(/still running:\n( {2}rank 0 .*\n)? {2}rank 1 \(thread \d+\) has not called init\(\)\n$/);
  });

  it('end when the launcher is interrupted', async () => {
    const { child, finished, printed } = start([
      'run',
      '-n',
      '2',
      '--ranks',
      'threads',
      PROBE,
      '*:print=ready',
      '*:sleep=60000',
    ]);
    for (const rank of [0, 1]) await printed(`[${rank}] ready`);
    child.kill('SIGINT');
    expect(await finished).toMatchObject({
      code: 130,
      stderr: 'onesided: interrupted by SIGINT while 2 ranks were running\n',
    });
  });

  it('print in volume what a process would', async () => {
    const { code, stdout } = await threads(2, '*:lines=5000');
    expect(code).toBe(0);
    for (const rank of [0, 1]) {
      const lines = stdout.split('\n').filter((line) => line.startsWith(`[${rank}]`));
      expect(lines.length).toBe(5000);
      expect(lines.every((line, i) => line === `[${rank}] line ${i} of rank ${rank}: ${'x'.repeat(i % 200)}`)).toBe(
        true,
      );
    }
  });
});
