import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Control,
  controlBytes,
  declareFailed,
  FailKind,
  formatControl,
  Header,
  RankState,
  Slot,
  viewControl,
} from '../../src/job/control-region.ts';
import { isAsked, report } from '../../src/job/reports.ts';
import { Supervisor } from '../../src/launcher/supervisor.ts';

/** Ranks that exist in the test's imagination only; what they are sent is kept. */
function job(size: number, options: { grace?: number; timeout?: number } = {}) {
  const control = viewControl(new ArrayBuffer(controlBytes(size)), size);
  formatControl(control);
  const sent: string[] = [];
  const wake = vi.fn();
  const supervisor = new Supervisor(
    control,
    { signal: (rank, signal) => sent.push(`${signal} to ${rank}`), describe: (rank) => `pid ${100 + rank}` },
    wake,
    options,
  );
  return { control, supervisor, sent, wake };
}

function setState(control: Control, rank: number, state: number): void {
  control.slots[rank * control.slotWords + Slot.STATE] = state;
}

function failure(control: Control, rank: number) {
  const slot = rank * control.slotWords;
  return { kind: control.slots[slot + Slot.FAIL_KIND], value: control.slots[slot + Slot.FAIL_VALUE] };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a job that ends well', () => {
  it('has the code 0 when no rank ever joined', async () => {
    const { supervisor } = job(2);
    supervisor.ended(0, { code: 0 });
    supervisor.ended(1, { code: 0 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({ exitCode: 0 });
  });

  it('has the code 0 when ranks forgot to finalize and nobody failed of it', async () => {
    const { control, supervisor } = job(2);
    for (const rank of [0, 1]) setState(control, rank, RankState.JOINED);
    supervisor.ended(1, { code: 0 });
    expect(control.header[Header.FAILED]).toBe(2);
    supervisor.ended(0, { code: 0 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({ exitCode: 0 });
  });

  it('declares nobody failed who has finalized', async () => {
    const { control, supervisor, wake } = job(2);
    setState(control, 0, RankState.FINALIZED);
    supervisor.ended(0, { code: 0 });
    expect(control.header[Header.FAILED]).toBe(0);
    expect(wake).not.toHaveBeenCalled();
  });
});

describe('the first failure', () => {
  it('is declared and everybody is woken; the others are asked after the grace and killed a second later', async () => {
    const { control, supervisor, sent, wake } = job(3, { grace: 2 });
    supervisor.ended(1, { code: 4 });
    expect(control.header[Header.FAILED]).toBe(2);
    expect(failure(control, 1)).toEqual({ kind: FailKind.EXIT_CODE, value: 4 });
    expect(wake).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1900);
    expect(sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(sent.splice(0)).toEqual(['SIGTERM to 0', 'SIGTERM to 2']);
    supervisor.ended(0, { code: 0, signal: 'SIGTERM' });
    await vi.advanceTimersByTimeAsync(1000);
    expect(sent.splice(0)).toEqual(['SIGKILL to 2']);
    supervisor.ended(2, { code: 0, signal: 'SIGKILL' });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({
      exitCode: 4,
      failure: {
        kind: 'exit-code',
        rank: 1,
        message: 'rank 1 exited with code 4 (pid 101); the other 2 ranks were stopped',
      },
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('by a signal gives 128 + its number', async () => {
    const { control, supervisor } = job(2);
    supervisor.ended(0, { code: 0, signal: 'SIGSEGV' });
    expect(failure(control, 0)).toEqual({ kind: FailKind.SIGNAL, value: 11 });
    await vi.advanceTimersByTimeAsync(10);
    supervisor.ended(1, { code: 1 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({
      exitCode: 139,
      failure: {
        kind: 'signal',
        rank: 0,
        message: 'rank 0 was killed by SIGSEGV (pid 100); the other rank was stopped',
      },
    });
  });

  it.each([
    [256, 1],
    [-256, 1],
    [257, 1],
    [-1, 255],
    [600, 88],
  ])('with code %d gives the job code %d: a failure is never taken for 0', async (code, exitCode) => {
    const { supervisor } = job(1);
    supervisor.ended(0, { code });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({
      exitCode,
      failure: { kind: 'exit-code', rank: 0, message: `rank 0 exited with code ${code} (pid 100)` },
    });
  });

  it('is told by its own code where the system keeps only a part of it', async () => {
    const { control, supervisor } = job(1);
    setState(control, 0, RankState.JOINED);
    declareFailed(control, 0, FailKind.EXIT_CODE, 512);
    supervisor.ended(0, { code: 1 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toMatchObject({
      exitCode: 1,
      failure: { message: 'rank 0 exited with code 512 (pid 100)' },
    });
  });

  it('does not count ranks as stopped that ended well', async () => {
    const { supervisor } = job(4);
    supervisor.ended(0, { code: 0 });
    supervisor.ended(3, { code: 9 });
    supervisor.ended(2, { code: 1 });
    supervisor.ended(1, { code: 0 });
    await vi.runAllTimersAsync();
    expect((await supervisor.done).failure?.message).toBe(
      'rank 3 exited with code 9 (pid 103); 1 other rank was stopped',
    );
  });

  it('is the rank that peers found gone, even if a peer that failed of it is collected first', async () => {
    const { control, supervisor } = job(3);
    for (const rank of [0, 1, 2]) setState(control, rank, RankState.JOINED);
    declareFailed(control, 2, FailKind.VANISHED, 0);
    supervisor.ended(0, { code: 1 });
    await vi.advanceTimersByTimeAsync(20);
    supervisor.ended(2, { code: 0, signal: 'SIGKILL' });
    supervisor.ended(1, { code: 1 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toMatchObject({ exitCode: 137, failure: { kind: 'signal', rank: 2 } });
  });

  it.each([
    [FailKind.EXIT_CODE, 256, 1],
    [FailKind.ABORTED, 9, 9],
  ])('is the rank that has noted so (%d, %d), however long it takes to end', async (kind, value, exitCode) => {
    const { control, supervisor } = job(3);
    for (const rank of [0, 1, 2]) setState(control, rank, RankState.JOINED);
    declareFailed(control, 2, kind, value);
    for (const rank of [0, 1]) supervisor.ended(rank, { code: 1 });
    await vi.advanceTimersByTimeAsync(1900);
    supervisor.ended(2, { code: exitCode });
    await vi.runAllTimersAsync();
    const message = `rank 2 exited with code ${value} (pid 102); the other 2 ranks were stopped`;
    expect(await supervisor.done).toEqual({ exitCode, failure: { kind: 'exit-code', rank: 2, message } });
  });

  it('is told by its own code where its end was declared otherwise before', async () => {
    const { control, supervisor } = job(2);
    for (const rank of [0, 1]) setState(control, rank, RankState.JOINED);
    declareFailed(control, 1, FailKind.VANISHED, 0);
    supervisor.ended(0, { code: 1 });
    supervisor.ended(1, { code: 256 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toMatchObject({
      exitCode: 1,
      failure: { message: 'rank 1 exited with code 256 (pid 101); the other rank was stopped' },
    });
  });

  it('is not awaited for ever if the rank that peers found gone still runs', async () => {
    const { control, supervisor } = job(3, { grace: 0 });
    declareFailed(control, 2, FailKind.VANISHED, 0);
    supervisor.ended(0, { code: 7 });
    await vi.advanceTimersByTimeAsync(5000);
    for (const rank of [1, 2]) supervisor.ended(rank, { code: 0, signal: 'SIGKILL' });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toMatchObject({ exitCode: 7, failure: { kind: 'exit-code', rank: 0 } });
  });
});

describe('an exit with code 0 before finalize', () => {
  it('does not end the job, and is the cause if a rank that had joined then fails', async () => {
    const { control, supervisor, sent, wake } = job(3);
    for (const rank of [0, 1, 2]) setState(control, rank, RankState.JOINED);
    supervisor.ended(2, { code: 0 });
    expect(failure(control, 2).kind).toBe(FailKind.NO_FINALIZE);
    expect(wake).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toEqual([]);
    supervisor.ended(0, { code: 1 });
    supervisor.ended(1, { code: 1 });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({
      exitCode: 1,
      failure: {
        kind: 'no-finalize',
        rank: 2,
        message:
          'rank 2 exited with code 0 without calling finalize() (pid 102); rank 0 then exited with code 1; ' +
          'the other rank was stopped',
      },
    });
  });

  it('and before init is told to those who wait in init', async () => {
    const { control, supervisor, wake } = job(2);
    setState(control, 0, RankState.JOINED);
    supervisor.ended(1, { code: 0 });
    expect(control.header[Header.FAILED]).toBe(2);
    expect(wake).toHaveBeenCalledTimes(1);
    supervisor.ended(0, { code: 1 });
    await vi.runAllTimersAsync();
    expect((await supervisor.done).failure?.message).toBe(
      'rank 1 exited with code 0 without calling init() (pid 101); rank 0 then exited with code 1',
    );
  });

  it('is the cause also where the rank that then fails has a code of more than eight bits', async () => {
    const { control, supervisor } = job(2);
    for (const rank of [0, 1]) setState(control, rank, RankState.JOINED);
    supervisor.ended(1, { code: 0 });
    supervisor.ended(0, { code: 256 });
    await vi.runAllTimersAsync();
    const { exitCode, failure } = await supervisor.done;
    expect(exitCode).toBe(1);
    expect(failure?.message).toMatch(/^rank 1 exited with code 0 .*; rank 0 then exited with code 256$/);
  });

  it('is not blamed for a rank that never joined, nor for one that was killed', async () => {
    for (const [state, ending, exitCode] of [
      [RankState.ABSENT, { code: 5 }, 5],
      [RankState.JOINED, { code: 0, signal: 'SIGKILL' }, 137],
    ] as const) {
      const { control, supervisor } = job(2);
      setState(control, 0, state);
      supervisor.ended(1, { code: 0 });
      supervisor.ended(0, ending);
      await vi.runAllTimersAsync();
      expect(await supervisor.done).toMatchObject({ exitCode, failure: { rank: 0 } });
    }
  });
});

describe('an interruption', () => {
  it('is passed on once and kills the second time', async () => {
    const { supervisor, sent } = job(2);
    supervisor.interrupt('SIGINT');
    expect(sent.splice(0)).toEqual(['SIGINT to 0', 'SIGINT to 1']);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(sent).toEqual([]);
    supervisor.interrupt('SIGINT');
    expect(sent).toEqual(['SIGKILL to 0', 'SIGKILL to 1']);
    for (const rank of [0, 1]) supervisor.ended(rank, { code: 0, signal: 'SIGKILL' });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({
      exitCode: 130,
      failure: { kind: 'interrupted', message: 'interrupted by SIGINT while 2 ranks were running' },
    });
  });

  it('by Ctrl-C asks ranks that wait first, and kills at once the second time', async () => {
    for (const second of [false, true]) {
      const { control, supervisor, sent, wake } = job(3);
      for (const rank of [0, 1]) setState(control, rank, RankState.JOINED);
      supervisor.interrupt('SIGINT');
      expect(sent).toEqual([]);
      expect(wake).toHaveBeenCalledTimes(1);
      report(control, 1, 'barrier');
      if (second) supervisor.interrupt('SIGINT');
      expect(sent).toEqual(second ? ['SIGKILL to 0', 'SIGKILL to 1', 'SIGKILL to 2'] : []);
      sent.length = 0;
      await vi.advanceTimersByTimeAsync(1000);
      expect(sent).toEqual(second ? [] : ['SIGINT to 0', 'SIGINT to 1', 'SIGINT to 2']);
      for (const rank of [0, 1, 2]) supervisor.ended(rank, { code: 0, signal: 'SIGINT' });
      await vi.runAllTimersAsync();
      expect((await supervisor.done).failure?.message.split('\n')).toEqual([
        'interrupted by SIGINT while 3 ranks were running:',
        expect.stringMatching(/^ {2}rank 0 .*is not waiting/),
        expect.stringMatching(/^ {2}rank 1 .*waits in barrier$/),
        expect.stringMatching(/^ {2}rank 2 .*has not called init\(\)$/),
      ]);
    }
  });

  it('kills the second time also when a rank had failed before', async () => {
    const { supervisor, sent } = job(2, { grace: 60 });
    supervisor.ended(0, { code: 3 });
    await vi.advanceTimersByTimeAsync(1000);
    sent.splice(0);
    supervisor.interrupt('SIGINT');
    expect(sent.splice(0)).toEqual(['SIGINT to 1']);
    supervisor.interrupt('SIGINT');
    expect(sent).toEqual(['SIGKILL to 1']);
    supervisor.ended(1, { code: 0, signal: 'SIGKILL' });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toMatchObject({ exitCode: 3 });
  });

  it('gives its code also when the ranks end well of it', async () => {
    const { supervisor } = job(1);
    supervisor.interrupt('SIGTERM');
    supervisor.ended(0, { code: 0 });
    await vi.runAllTimersAsync();
    expect((await supervisor.done).exitCode).toBe(143);
  });

  it('stops who stays when others died of it', async () => {
    const { control, supervisor, sent } = job(2, { grace: 1 });
    supervisor.interrupt('SIGHUP');
    sent.length = 0;
    supervisor.ended(0, { code: 0, signal: 'SIGHUP' });
    expect(control.header[Header.FAILED]).toBe(1);
    await vi.advanceTimersByTimeAsync(3000);
    expect(sent).toEqual(['SIGTERM to 1', 'SIGKILL to 1']);
  });
});

describe('a timeout', () => {
  it('names the ranks that still run and what they do', async () => {
    const { control, supervisor, sent, wake } = job(5, { timeout: 5 });
    for (const rank of [1, 4]) setState(control, rank, RankState.JOINED);
    setState(control, 2, RankState.FINALIZED);
    setState(control, 3, RankState.FINALIZED);
    await vi.advanceTimersByTimeAsync(4900);
    supervisor.ended(3, { code: 0 });
    expect(sent).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    // They are asked first, and have a moment to answer.
    expect(wake).toHaveBeenCalledTimes(1);
    expect(sent).toEqual([]);
    expect([0, 1, 2].map((rank) => isAsked(control, rank))).toEqual([true, true, true]);
    report(control, 4, 'fence of window #1 (waiting for rank 1), for 4.9 s');
    await vi.advanceTimersByTimeAsync(500);
    expect(sent).toEqual(['SIGTERM to 0', 'SIGTERM to 1', 'SIGTERM to 2', 'SIGTERM to 4']);
    for (const rank of [0, 1, 2, 4]) supervisor.ended(rank, { code: 0, signal: 'SIGTERM' });
    await vi.runAllTimersAsync();
    expect(await supervisor.done).toEqual({
      exitCode: 124,
      failure: {
        kind: 'timeout',
        message:
          'the job did not end within 5 s (--timeout); still running:\n' +
          '  rank 0 (pid 100) has not called init()\n' +
          '  rank 1 (pid 101) is not waiting in a call of this library\n' +
          '  rank 2 (pid 102) has finalized\n' +
          '  rank 4 (pid 104) waits in fence of window #1 (waiting for rank 1), for 4.9 s',
      },
    });
  });

  it('keeps nobody waiting once all have said what they wait in', async () => {
    const { control, supervisor, sent } = job(2, { timeout: 5 });
    for (const rank of [0, 1]) setState(control, rank, RankState.JOINED);
    await vi.advanceTimersByTimeAsync(5001);
    for (const rank of [0, 1]) report(control, rank, 'é'.repeat(1000));
    await vi.advanceTimersByTimeAsync(50);
    expect(sent).toEqual(['SIGTERM to 0', 'SIGTERM to 1']);
    for (const rank of [0, 1]) supervisor.ended(rank, { code: 0, signal: 'SIGTERM' });
    await vi.runAllTimersAsync();
    expect((await supervisor.done).failure?.message).toMatch(/rank 0 \(pid 100\) waits in é{254}…\n/);
  });
});
