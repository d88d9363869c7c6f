/**
 * What a rank makes of a connection that is lost: the failure of the other rank, if that is behind it or nothing else
 * can be known.
 */
import { describe, expect, test } from 'vitest';
import {
  controlBytes,
  declareFailed,
  FailKind,
  formatControl,
  RankState,
  Slot,
  viewControl,
} from '../../src/comm/bootstrap/control.ts';
import { Job } from '../../src/comm/job.ts';
import { LostConnectionError } from '../../src/errors.ts';
import { openEmulatorAsDevice } from '../../src/providers/emulator/context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';

/** Rank 0 of three. @param distant whether the others may be on other hosts */
function makeJob(distant: boolean) {
  const control = viewControl(new SharedArrayBuffer(controlBytes(3)), 3);
  formatControl(control);
  const [context] = createLocalFabric(3).map((fabric) => openEmulatorAsDevice(fabric, 1));
  const job = new Job(
    {
      ...{ rank: 0, size: 3, control, context, distant, cores: 3, watched: true },
      describe: (rank) => `process ${100 + rank} on host${rank}`,
      alive: () => true,
      leave: () => {},
    },
    1000,
  );
  return { job, control };
}

const lost = (unreachable: boolean): LostConnectionError =>
  new LostConnectionError(1, unreachable, 'the connection to rank 1 was lost: a request completed with IBV_WC_…');

describe('a lost connection', () => {
  test('with a rank of another host that does not answer is its failure, and everybody can know', () => {
    const { job, control } = makeJob(true);
    const cause = lost(true);
    const message =
      'rank 1 (process 101 on host1) can no longer be reached from rank 0: ' +
      'its host, its device or the network between them is down; the connection to rank 1 was lost: ' +
      'a request completed with IBV_WC_…';
    expect(job.explain(cause)).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 1, message, cause });
    expect(job.failure()).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 1 });
    const slot = control.slotWords;
    expect([control.slots[slot + Slot.FAIL_KIND], control.slots[slot + Slot.FAIL_VALUE]]).toEqual([
      FailKind.UNREACHABLE,
      0,
    ]);
    expect(job.explain(lost(true))).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 1 });
  });

  test('with a rank that was there to refuse something is no failure, and says the same each time', () => {
    const { job } = makeJob(true);
    const error = lost(false);
    const told = Array.from({ length: 3 }, () => job.explain(error));
    for (const one of told) expect(one).toEqual(error);
    // Each caller has a stack of its own.
    expect(new Set([error, ...told]).size).toBe(4);
    expect(job.failure()).toBeUndefined();
  });

  test('on one host, where it can be seen that the rank lives, is the fault of the device', () => {
    const { job } = makeJob(false);
    const error = lost(true);
    expect(job.explain(error)).toEqual(error);
    expect(job.failure()).toBeUndefined();
  });

  test('with a rank that has left in agreement is none', () => {
    const { job, control } = makeJob(true);
    control.slots[control.slotWords + Slot.STATE] = RankState.FINALIZED;
    const error = lost(true);
    expect(job.explain(error)).toEqual(error);
    expect(job.failure()).toBeUndefined();
  });

  test('is the failure that is known, whoever has failed', () => {
    const { job, control } = makeJob(true);
    declareFailed(control, 2, FailKind.VANISHED, 0);
    const failure = { code: 'ERR_RMA_RANK_FAILED', rank: 2, message: 'rank 2 (process 102 on host2) is gone' };
    expect(job.explain(lost(true))).toMatchObject(failure);
  });
});

test('a rank that the others have given up is told so, and not that it has failed by itself', () => {
  const { job, control } = makeJob(true);
  declareFailed(control, 0, FailKind.UNREACHABLE, 2);
  expect(job.failure()).toMatchObject({
    code: 'ERR_RMA_RANK_FAILED',
    rank: 0,
    message: expect.stringMatching(/^rank 0 \(process 100 on host0, this one\) can no longer be reached from rank 2/),
  });
  const other = makeJob(true);
  declareFailed(other.control, 0, FailKind.GAVE_UP, 0);
  expect(other.job.failure()).toBeUndefined();
});
