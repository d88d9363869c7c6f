/**
 * What a rank makes of a connection that is lost: the failure of the other rank, if that is behind it or nothing else
 * can be known.
 */
import { describe, expect, test } from 'vitest';
import { LostConnectionError, LostQueueError, RmaError } from '../../src/errors.ts';
import {
  controlBytes,
  declareFailed,
  FailKind,
  formatControl,
  Header,
  RankState,
  Slot,
  viewControl,
} from '../../src/job/control-region.ts';
import { Job } from '../../src/job/job.ts';
import { Members } from '../../src/job/members.ts';
import { openEmulatorAsDevice } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { overrunError } from '../../src/verbs/checks.ts';
import type { Context } from '../../src/verbs/device.ts';

/** Rank 0 of three. @param distant whether the others may be on other hosts */
function makeJob(distant: boolean, change: (context: Context) => void = () => {}) {
  const control = viewControl(new SharedArrayBuffer(controlBytes(3)), 3);
  formatControl(control);
  const contexts = createLocalFabric(3).map((fabric) => openEmulatorAsDevice(fabric, 1));
  change(contexts[0]);
  const make = (rank: number): Job =>
    new Job(
      {
        ...{ rank, size: 3, control, context: contexts[rank], distant, cores: 3, watched: true },
        describe: (other) => `process ${100 + other} on host${other}`,
        alive: () => true,
        leave: () => {},
      },
      1000,
    );
  return { job: make(0), control, make };
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
    expect(job.everyone.explain(cause)).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 1, message, cause });
    expect(job.everyone.failure()).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 1 });
    const slot = control.slotWords;
    expect([control.slots[slot + Slot.FAIL_KIND], control.slots[slot + Slot.FAIL_VALUE]]).toEqual([
      FailKind.UNREACHABLE,
      0,
    ]);
    expect(job.everyone.explain(lost(true))).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 1 });
  });

  test('with a rank that was there to refuse something is no failure, and says the same each time', () => {
    const { job } = makeJob(true);
    const error = lost(false);
    const told = Array.from({ length: 3 }, () => job.everyone.explain(error));
    for (const one of told) expect(one).toEqual(error);
    // Each caller has a stack of its own.
    expect(new Set([error, ...told]).size).toBe(4);
    expect(job.everyone.failure()).toBeUndefined();
  });

  test('on one host, where it can be seen that the rank lives, is the fault of the device', () => {
    const { job } = makeJob(false);
    const error = lost(true);
    expect(job.everyone.explain(error)).toEqual(error);
    expect(job.everyone.failure()).toBeUndefined();
  });

  test('with a rank that has left in agreement is none', () => {
    const { job, control } = makeJob(true);
    control.slots[control.slotWords + Slot.STATE] = RankState.FINALIZED;
    const error = lost(true);
    expect(job.everyone.explain(error)).toEqual(error);
    expect(job.everyone.failure()).toBeUndefined();
  });

  test('is the failure that is known, whoever has failed', () => {
    const { job, control } = makeJob(true);
    declareFailed(control, 2, FailKind.VANISHED, 0);
    const failure = { code: 'ERR_RMA_RANK_FAILED', rank: 2, message: 'rank 2 (process 102 on host2) is gone' };
    expect(job.everyone.explain(lost(true))).toMatchObject(failure);
  });
});

describe('who waits for some of the ranks', () => {
  test('is told the failure of one of them, whichever was first, and of no other', () => {
    const { job, control } = makeJob(true);
    const [pair, others] = [new Members(job, [0, 1]), new Members(job, [0, 2])];
    declareFailed(control, 2, FailKind.EXIT_CODE, 7);
    expect([pair.failure(), pair.trouble()]).toEqual([undefined, undefined]);
    expect(pair.explain(new RmaError('ERR_COLLECTIVE', 'a mismatch'))).toMatchObject({ code: 'ERR_COLLECTIVE' });
    expect(others.failure()).toMatchObject({ rank: 2, message: expect.stringContaining('exited with code 7') });
    declareFailed(control, 1, FailKind.SIGNAL, 9);
    expect(pair.failure()).toMatchObject({ rank: 1, message: expect.stringContaining('was killed by signal 9') });
    expect(others.failure()).toMatchObject({ rank: 2 });
    expect(job.everyone.failure()).toMatchObject({ rank: 2 });
  });

  test('is told every failure where no more are heard of', () => {
    const { job, control } = makeJob(true);
    const pair = new Members(job, [0, 1]);
    control.header[Header.DEAF] = 1;
    expect(pair.failure()).toBeUndefined();
    declareFailed(control, 2, FailKind.VANISHED, 0);
    expect(pair.failure()).toMatchObject({ rank: 2 });
  });

  test('is told once what a server of theirs has thrown, and others are not', () => {
    const { job } = makeJob(false);
    const [pair, others] = [new Members(job, [0, 1]), new Members(job, [0, 2])];
    const error = new Error('a server');
    pair.note(error);
    expect([others.trouble(), pair.trouble(), pair.trouble()]).toEqual([undefined, error, undefined]);
  });
});

describe('what a server has lost for good', () => {
  test('ends every wait of those that it serves, and no look at something else', () => {
    const { job } = makeJob(false);
    const pair = new Members(job, [0, 1]);
    for (const error of [lost(false), new LostQueueError('the requests of a window are lost: …')]) {
      for (let i = 0; i < 2; i++) {
        // Whenever it is asked.
        pair.note(error);
        expect(() => pair.check()).not.toThrow();
        expect(pair.trouble()).toEqual(error);
      }
    }
    pair.note(new Error('a listener'));
    expect(() => pair.check()).toThrow('a listener');
    expect(() => pair.check()).not.toThrow();
  });
});

describe('the queue of a rank’s messages that is lost', () => {
  /** The queue of the messages, of which nothing is fetched any more. */
  function overrun() {
    let poll: (() => never) | undefined;
    const { job } = makeJob(false, (context) => {
      const createCq = context.createCq.bind(context);
      context.createCq = (cqe) => {
        const cq = createCq(cqe);
        const fetch = cq.poll.bind(cq);
        cq.poll = (max) => poll?.() ?? fetch(max);
        return cq;
      };
    });
    let polls = 0;
    poll = () => {
      polls++;
      throw overrunError(64);
    };
    return { job, polls: () => polls };
  }
  const words =
    'the messages of this rank are lost: the completion queue of 64 entries was overrun and has lost completions; ' +
    'create it with room for all requests and receives that can be outstanding (CQ_ERR)';

  test('ends all waits for other ranks, each time, in words that say so; looking for messages throws nothing', () => {
    const { job, polls } = overrun();
    for (let i = 0; i < 3; i++) job.messenger.poll();
    expect(polls()).toBe(1);
    const pair = new Members(job, [0, 2]);
    const told = [job.everyone.trouble(), job.everyone.trouble(), pair.trouble()] as RmaError[];
    for (const error of told) expect(error).toMatchObject({ code: 'ERR_VERBS', message: words });
    expect(new Set(told).size).toBe(3);
    expect(() => pair.check()).toThrow(words);
  });

  test('is told to a wait that is under way, and to the next one', () => {
    const { job } = overrun();
    const never = { advance: () => false, describe: () => 'a test' };
    for (let i = 0; i < 2; i++) expect(() => job.everyone.waitSync(never)).toThrow(words);
    job.everyone.waitSync({ advance: () => true, describe: () => 'a test' });
    expect(() => job.everyone.look(never)).toThrow(words);
  });
});

test('a queue pair for which there is no room ends waits for its rank, which has asked for it, and no other', () => {
  let refuses = false;
  const { job, make } = makeJob(false, (context) => {
    const allocPd = context.allocPd.bind(context);
    context.allocPd = () => {
      const pd = allocPd();
      const createQueuePair = pd.createQueuePair.bind(pd);
      pd.createQueuePair = (init) => {
        if (refuses) throw new RmaError('ERR_VERBS', 'create a queue pair: no room');
        return createQueuePair(init);
      };
      return pd;
    };
  });
  refuses = true;
  make(1).messenger.send(0, 0, Uint8Array.of(1));
  for (let i = 0; i < 2; i++) job.messenger.poll();
  expect(new Members(job, [0, 1]).trouble()).toMatchObject({ code: 'ERR_VERBS', message: /no room/ });
  expect(new Members(job, [0, 2]).trouble()).toBeUndefined();
});

test('a rank that the others have given up is told so, and not that it has failed by itself', () => {
  const { job, control } = makeJob(true);
  declareFailed(control, 0, FailKind.UNREACHABLE, 2);
  expect(job.everyone.failure()).toMatchObject({
    code: 'ERR_RMA_RANK_FAILED',
    rank: 0,
    message: expect.stringMatching(/^rank 0 \(process 100 on host0, this one\) can no longer be reached from rank 2/),
  });
  const other = makeJob(true);
  declareFailed(other.control, 0, FailKind.GAVE_UP, 0);
  expect(other.job.everyone.failure()).toBeUndefined();
});
