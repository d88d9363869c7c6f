/**
 * Small writes that go together over libfabric (native/fabric_batches.cc): that they do, in which order they are
 * placed, what becomes of one that is not allowed, and of all of them when their peer ends. Run by `npm run test:tcp`.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { Access } from '../../src/verbs/memory.ts';
import { QpState, SendFlag } from '../../src/verbs/queue-pair.ts';
import { endMembers, failuresOf, follow, type Member } from '../robustness/members.ts';
import { freePort } from '../support/ports.ts';
import { randomBelow } from '../support/random-below.ts';
import { programOf, seedOfRun } from '../support/ranks.ts';
import {
  bringUp,
  connect,
  End,
  name,
  pattern,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  reaches,
  write,
} from '../verbs/conformance/harness.ts';
import { ON_DEVICE, openMembers } from './device.ts';

const LONG = { timeout: 120_000 };
const SUCCESS = name(WcStatus.SUCCESS);
const DENIED = name(WcStatus.REM_ACCESS_ERR);
const FLUSHED = name(WcStatus.WR_FLUSH_ERR);
const PLACES = { maxSendWr: 256, maxInlineData: 64, cqe: 512 };

afterEach(endMembers);

function pair(options = {}): [End, End] {
  const contexts = openMembers(2);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const [a, b] = contexts.map((context) => new End(context));
  connect(a, b, { ...PLACES, ...options });
  return [a, b];
}

interface Write {
  readonly at: number;
  readonly bytes: Uint8Array;
  readonly rkey?: number;
  readonly flags?: number;
}

/** Posts writes by one call, inline where they fit. Request `i` has the number `first + i`. */
function list(from: End, to: End, writes: readonly Write[], first = 0): void {
  post(from, (qp) => {
    writes.forEach(({ at, bytes, rkey = to.region.rkey, flags = SendFlag.SIGNALED }, i) => {
      qp.wrRdmaWrite(first + i, flags, rkey, to.at(at));
      qp.wrSetInlineData(bytes, 0, bytes.length);
    });
  });
}

const word = (value: number): Uint8Array => new Uint8Array(Float64Array.of(value).buffer);
const wordAt = (end: End, at: number): number => new Float64Array(end.memory.buffer, at, 1)[0];

/** A connection that was used once, so that both know each other's keys. */
async function warm(options = {}): Promise<[End, End]> {
  const [a, b] = pair(options);
  write(a, b, 1, 0, 0, 8);
  await pollSuccess(a.sendCq);
  write(b, a, 1, 0, 0, 8);
  await pollSuccess(b.sendCq);
  return [a, b];
}

/** Segments that TCP has sent here. */
function segments(): number {
  const lines = readFileSync('/proc/self/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Tcp:'))
    .map((line) => line.split(' '));
  return Number(lines[1][lines[0].indexOf('OutSegs')]);
}

describe('small writes that are posted together', () => {
  const COUNT = 64;
  const ROUNDS = 20;
  const writes = Array.from({ length: COUNT }, (_, i) => ({
    at: 8 * i,
    bytes: word(i),
    flags: i === COUNT - 1 ? SendFlag.SIGNALED : 0,
  }));

  test.each([
    ['by one call', (a: End, b: End): void => list(a, b, writes)],
    [
      'one by one',
      (a: End, b: End): void => {
        for (const one of writes) list(a, b, [one]);
      },
    ],
  ])('%s take some packets, not two for each', LONG, async (_, postAll) => {
    const [a, b] = await warm();
    let least = Number.POSITIVE_INFINITY;
    // Others may use TCP here, too.
    for (let tries = 0; tries < 10 && least > COUNT * ROUNDS; tries++) {
      const before = segments();
      for (let round = 0; round < ROUNDS; round++) {
        postAll(a, b);
        await pollSuccess(a.sendCq);
      }
      least = Math.min(least, segments() - before);
    }
    for (const { at, bytes } of writes) expect(b.bytes.subarray(at, at + 8)).toEqual(bytes);
    // Each by itself would be a segment and its answer.
    expect(least).toBeLessThan((COUNT * ROUNDS) / 2);
  });

  test('are carried out although the program that posted them does not poll', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 1; round < 20; round++) {
      for (let i = 0; i < 8; i++) list(a, b, [{ at: 8 * i, bytes: word(round + i), flags: i === 7 ? 2 : 0 }]);
      const deadline = performance.now() + 60_000;
      while (wordAt(b, 56) !== round + 7 && performance.now() < deadline);
      expect(wordAt(b, 56)).toBe(round + 7);
      await pollSuccess(a.sendCq);
    }
  });

  test('complete in order, those that are signalled', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 0; round < 20; round++) {
      const some = Array.from({ length: 40 }, (_, i) => ({
        at: 8 * i,
        bytes: word(i),
        flags: (i + round) % 3 === 0 || i === 39 ? SendFlag.SIGNALED : 0,
      }));
      list(a, b, some, 100);
      const wanted = some.flatMap(({ flags }, i) => (flags === 0 ? [] : [[100 + i, SUCCESS]]));
      expect(await pollStatuses(a.sendCq, wanted.length)).toEqual(wanted);
    }
  });
});

describe('order', () => {
  test('of writes to the same place: the last one stays', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 0; round < 30; round++) {
      for (let i = 0; i < 6; i++) {
        const writes = Array.from({ length: 1 + ((round + i) % 9) }, (_, k) => ({
          at: 8,
          bytes: word(1000 * round + 10 * i + k),
          flags: 0,
        }));
        list(a, b, writes);
      }
      list(a, b, [{ at: 8, bytes: word(-round) }]);
      await pollSuccess(a.sendCq);
      expect(wordAt(b, 8)).toBe(-round);
    }
  });

  test('what comes behind them finds them placed: a long write, a read, an atomic, a message', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 1; round <= 30; round++) {
      const few = Array.from({ length: 1 + (round % 7) }, (_, i) => ({ at: 8 * i, bytes: word(round + i), flags: 0 }));
      // A long write covers them.
      list(a, b, few);
      a.bytes.fill(round, 2048, 4096);
      for (let at = 0; at < 2048; at += 2048) write(a, b, 1, 2048, at, 2048);
      await pollSuccess(a.sendCq);
      expect(b.bytes.subarray(0, 64).every((byte) => byte === round)).toBe(true);
      // A read sees them.
      list(a, b, few);
      post(a, (qp) => {
        qp.wrRdmaRead(2, SendFlag.SIGNALED, b.region.rkey, b.at(8 * (few.length - 1)));
        qp.wrSetSge(a.region.lkey, a.at(1024), 8);
      });
      await pollSuccess(a.sendCq);
      expect(wordAt(a, 1024)).toBe(round + few.length - 1);
      // An atomic adds to the last of them.
      const number = new Uint8Array(BigUint64Array.of(BigInt(round)).buffer);
      list(a, b, [...few, { at: 512, bytes: number, flags: 0 }]);
      post(a, (qp) => {
        qp.wrAtomicFetchAdd(3, SendFlag.SIGNALED, b.region.rkey, b.at(512), 5, 0);
        qp.wrSetSge(a.region.lkey, a.at(1032), 8);
      });
      // And they come behind an atomic.
      list(
        a,
        b,
        [1, 2, 3].map((k) => ({ at: 520, bytes: word(k * round), flags: k === 3 ? SendFlag.SIGNALED : 0 })),
      );
      await poll(a.sendCq, 2);
      expect(new BigUint64Array(a.memory.buffer, 1032, 1)[0]).toBe(BigInt(round));
      expect(new BigUint64Array(b.memory.buffer, 512, 1)[0]).toBe(BigInt(round + 5));
      expect(wordAt(b, 520)).toBe(3 * round);
      // A message is received behind them.
      b.receive(9, 3000, 8);
      list(
        a,
        b,
        few.map(({ at }) => ({ at, bytes: word(-round) })),
      );
      post(a, (qp) => {
        qp.wrSend(4, 0);
        qp.wrSetInlineData(word(1), 0, 8);
      });
      await pollSuccess(b.recvCq);
      for (const { at } of few) expect(wordAt(b, at)).toBe(-round);
      await poll(a.sendCq, few.length);
    }
  });

  test('behind a message that waits for its receive, they wait, too', LONG, async () => {
    const [a, b] = await warm();
    new Float64Array(b.memory.buffer)[0] = 7;
    post(a, (qp) => {
      qp.wrSend(1, SendFlag.SIGNALED);
      qp.wrSetInlineData(word(1), 0, 8);
    });
    list(
      a,
      b,
      [1, 2, 3].map((k) => ({ at: 0, bytes: word(k) })),
      2,
    );
    await sleep(50);
    expect(a.sendCq.poll(1)).toBe(0);
    expect(wordAt(b, 0)).toBe(7);
    b.receive(1, 3000, 8);
    expect(await pollStatuses(a.sendCq, 4)).toEqual([1, 2, 3, 4].map((id) => [id, SUCCESS]));
    expect(wordAt(b, 0)).toBe(3);
  });
});

describe('one that is not allowed, among others', () => {
  const EARLIER = 5;
  const LATER = 4;

  async function tryOne(fault: (b: End) => { rkey?: number; at: number }): Promise<void> {
    for (const signalled of [true, false]) {
      const [a, b] = await warm();
      const before = b.bytes.slice();
      const bad = fault(b);
      const flags = signalled ? SendFlag.SIGNALED : 0;
      const writes = [
        ...Array.from({ length: EARLIER }, (_, i) => ({ at: 8 * i, bytes: word(-1 - i), flags })),
        { ...bad, bytes: word(-100), flags },
        ...Array.from({ length: LATER }, (_, i) => ({ at: 8 * (EARLIER + i), bytes: word(-200), flags })),
      ];
      list(a, b, writes);
      // Whatever fails completes, signalled or not.
      const statuses = await pollStatuses(a.sendCq, (signalled ? EARLIER : 0) + 1 + LATER);
      const wanted = writes.map((_, i) => [i, i < EARLIER ? SUCCESS : i === EARLIER ? DENIED : FLUSHED]);
      expect(statuses).toEqual(signalled ? wanted : wanted.slice(EARLIER));
      expect(a.qp.state).toBe(QpState.ERR);
      await reaches(b.qp, QpState.ERR);
      for (let i = 0; i < EARLIER; i++) before.set(word(-1 - i), 8 * i);
      expect(b.bytes).toEqual(before);
    }
  }

  test('by its key', LONG, () => tryOne((b) => ({ at: 0, rkey: (b.region.rkey ^ 0x55) >>> 0 })));
  test('by its range', LONG, () => tryOne(() => ({ at: 4092 })));
  test('by its rights', LONG, () =>
    tryOne((b) => ({ at: 0, rkey: b.pd.registerMemory(b.memory, 0, 64, Access.REMOTE_READ).rkey })),
  );
  test('by its domain', LONG, () =>
    tryOne((b) => ({ at: 0, rkey: b.context.allocPd().registerMemory(b.memory, 0, 64, 15).rkey })),
  );

  test('because its key is withdrawn while they are under way', LONG, async () => {
    const [a, b] = await warm();
    for (let round = 0; round < 60; round++) {
      const region = b.pd.registerMemory(b.memory, 0, 1024, 15);
      list(a, b, [{ at: 0, bytes: word(0), rkey: region.rkey }]);
      await pollSuccess(a.sendCq);
      const before = Uint8Array.from(b.bytes);
      for (let i = 0; i < 12; i++) list(a, b, [{ at: 8 * i, bytes: word(round + i + 0.5), rkey: region.rkey }], i);
      // In half of the rounds they leave by a poll, in the others by the thread, or with a key that is asked for again.
      const early = round % 2 === 0 ? a.sendCq.poll(1) : 0;
      if (early === 1) expect(a.sendCq.wc.status[0]).toBe(WcStatus.SUCCESS);
      region.deregister();
      const after = Uint8Array.from(b.bytes);
      const later = (await pollStatuses(a.sendCq, 12 - early)).map(([, status]) => status);
      const statuses = [...Array.from({ length: early }, () => SUCCESS), ...later];
      const good = statuses.filter((status) => status === SUCCESS).length;
      const wanted = statuses.map((_, i) => (i < good ? SUCCESS : i === good ? DENIED : FLUSHED));
      expect(statuses).toEqual(wanted);
      // What is said to be done is, in order; and nothing comes behind the end of the key.
      for (let i = 0; i < good; i++) expect(wordAt(b, 8 * i)).toBe(round + i + 0.5);
      expect(b.bytes).toEqual(after);
      for (let i = good + 1; i < 12; i++) {
        const at = 8 * i;
        expect(b.bytes.subarray(at, at + 8)).toEqual(before.subarray(at, at + 8));
      }
      if (good === 12) continue;
      await reaches(b.qp, QpState.ERR);
      for (const { qp } of [a, b]) qp.modify({ state: QpState.RESET });
      bringUp(a.qp, b.qp);
      bringUp(b.qp, a.qp);
    }
  });
});

test('random requests of both sides, against a model', LONG, async () => {
  const seed = seedOfRun();
  const upTo = randomBelow(seed);
  const BYTES = 16384;
  const contexts = openMembers(2);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const ends = contexts.map((context) => new End(context).make(PLACES, 4 * BYTES));
  bringUp(ends[0].qp, ends[1].qp);
  bringUp(ends[1].qp, ends[0].qp);
  // The first quarter is the other side's to write, the second is what this side sends, the third where answers come,
  // and the last has receives.
  const models = ends.map(({ bytes }) => bytes.slice(0, BYTES));
  const told = [0, 0];
  const heard = [0, 0];
  const due = [0, 0];
  let left = 3000;
  while (left > 0) {
    const side = upTo(2);
    const [from, to] = [ends[side], ends[1 - side]];
    const model = models[1 - side];
    const flags = SendFlag.SIGNALED;
    const count = 1 + upTo(20);
    left -= count;
    // Each of some is posted by a call of its own.
    const together = upTo(2) === 0;
    const build: ((qp: End['qp']) => void)[] = [];
    for (let k = 0; k < count; k++) {
      const kind = upTo(20);
      const length = kind < 15 ? 1 + upTo(kind < 12 ? 64 : 1024) : 1 + upTo(6000);
      const at = upTo(BYTES - length);
      const source = BYTES + upTo(BYTES - length);
      if (kind === 19 && told[side] - heard[1 - side] < 50) {
        told[side]++;
        to.receive(0, 3 * BYTES, 8);
        build.push((qp) => {
          qp.wrSend(0, flags);
          qp.wrSetInlineData(word(told[side]), 0, 8);
        });
        continue;
      }
      if (kind === 18) {
        const target = at - (at % 8);
        const value = new BigUint64Array(model.buffer, target, 1);
        value[0] = BigInt.asUintN(64, value[0] + 3n);
        build.push((qp) => {
          qp.wrAtomicFetchAdd(0, flags, to.region.rkey, to.at(target), 3, 0);
          qp.wrSetSge(from.region.lkey, from.at(2 * BYTES), 8);
        });
        continue;
      }
      const isInline = length <= 64 && upTo(2) === 0;
      const content = isInline
        ? Uint8Array.from({ length }, () => upTo(256))
        : from.bytes.slice(source, source + length);
      model.set(content, at);
      build.push((qp) => {
        qp.wrRdmaWrite(0, flags, to.region.rkey, to.at(at));
        if (isInline) qp.wrSetInlineData(content, 0, length);
        else qp.wrSetSge(from.region.lkey, from.at(source), length);
      });
    }
    if (together) {
      post(from, (qp) => {
        for (const one of build) one(qp);
      });
    } else for (const one of build) post(from, one);
    due[side] += count;
    // Some are left under way.
    for (const [i, { sendCq, recvCq }] of ends.entries()) {
      heard[i] += recvCq.poll(64);
      const n = upTo(3) === 0 || due[i] > 200 ? due[i] : 0;
      const completions = await poll(sendCq, n);
      expect(completions.filter(({ status }) => status !== SUCCESS)).toEqual([]);
      due[i] -= n;
    }
    if (upTo(4) > 0 || due[side] > 0) continue;
    // A read of all: behind everything.
    post(from, (qp) => {
      qp.wrRdmaRead(0, flags, to.region.rkey, to.at(0));
      qp.wrSetSge(from.region.lkey, from.at(2 * BYTES), BYTES);
    });
    await pollSuccess(from.sendCq);
    expect(from.bytes.slice(2 * BYTES, 3 * BYTES), `seed ${seed}`).toEqual(model);
  }
  for (const [i, { sendCq }] of ends.entries()) await poll(sendCq, due[i]);
  for (const [i, { bytes }] of ends.entries()) expect(bytes.slice(0, BYTES), `seed ${seed}`).toEqual(models[i]);
  expect(ends[0].bytes.slice(BYTES, 2 * BYTES)).toEqual(pattern(4 * BYTES).slice(BYTES, 2 * BYTES));
});

describe('an end', () => {
  test('of the endpoint that they go to is a RETRY_EXC_ERR of the first, and flushes the others', LONG, async () => {
    const [a, b] = await warm();
    b.context.close();
    for (let i = 0; i < 6; i++) list(a, b, [{ at: 8 * i, bytes: word(i) }], i);
    const [first, ...others] = await pollStatuses(a.sendCq, 6);
    expect(first).toEqual([0, name(WcStatus.RETRY_EXC_ERR)]);
    expect(others).toEqual([1, 2, 3, 4, 5].map((i) => [i, FLUSHED]));
  });

  async function putting(): Promise<Member[]> {
    const port = await freePort();
    const members = Array.from({ length: 2 }, (_, rank) =>
      follow(
        spawn(
          'unshare',
          ['--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, programOf('robust-puts')],
          {
            stdio: ['ignore', 'pipe', 'inherit'],
            env: {
              ...process.env,
              ...ON_DEVICE,
              ONESIDED_RANK: String(rank),
              ONESIDED_SIZE: '2',
              ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
              ONESIDED_SECRET: 'a secret of these tests',
            },
          },
        ),
      ),
    );
    await Promise.all(members.map(({ said }) => said('working')));
    return members;
  }

  const inside = ({ child }: Member): number =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8'));

  test('of a rank that many puts go to, by SIGKILL, is said to the others', LONG, async () => {
    for (let round = 0; round < 3; round++) {
      const members = await putting();
      await sleep(100 * round);
      process.kill(inside(members[1]), 'SIGKILL');
      const [failure] = await failuresOf([members[0]]);
      expect(failure.code).toBe('ERR_RMA_RANK_FAILED');
    }
  });

  test('is not what a stop is: the puts go on', LONG, async () => {
    const members = await putting();
    process.kill(inside(members[1]), 'SIGSTOP');
    await sleep(3000);
    process.kill(inside(members[1]), 'SIGCONT');
    await sleep(1000);
    expect(members.flatMap(({ lines }) => lines.filter(({ code }) => code !== undefined))).toEqual([]);
    process.kill(inside(members[1]), 'SIGKILL');
    const [failure] = await failuresOf([members[0]]);
    expect(failure.code).toBe('ERR_RMA_RANK_FAILED');
  });
});
