/**
 * Small accesses that go together over libfabric (native/fabric_batches.cc): random ones of both sides against a
 * model, and what becomes of them when their peer ends or is stopped. Run by `npm run test:tcp`.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { endMembers, failuresOf, follow, type Member } from '../robustness/members.ts';
import { freePort } from '../support/ports.ts';
import { randomBelow } from '../support/random-below.ts';
import { programOf, seedOfRun } from '../support/ranks.ts';
import { bringUp, End, name, pattern, poll, pollStatuses, post } from '../verbs/conformance/harness.ts';
import { ON_DEVICE, openMembers } from './device.ts';

import { FLUSHED, LONG, list, PLACES, SUCCESS, warm, word } from './together.ts';

afterEach(endMembers);

test('random requests of both sides, against a model', LONG, async () => {
  const seed = seedOfRun();
  const upTo = randomBelow(seed);
  const BYTES = 16384;
  const flags = SendFlag.SIGNALED;
  const contexts = openMembers(2);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  // The first quarter is the other side's to write, the second is what this side sends and the other one reads, the
  // third where answers come, and the last has receives.
  const ends = contexts.map((context) => new End(context).make(PLACES, 4 * BYTES));
  bringUp(ends[0].qp, ends[1].qp);
  bringUp(ends[1].qp, ends[0].qp);
  const sides = ends.map((end, i) => ({
    end,
    other: ends[1 - i],
    /** What it has written. */
    model: ends[1 - i].bytes.slice(0, BYTES),
    due: 0,
    told: 0,
    heard: 0,
    answers: [] as { readonly at: number; readonly bytes: Uint8Array }[],
    room: 2 * BYTES,
  }));
  type Side = (typeof sides)[number];

  function answer(side: Side, bytes: Uint8Array): number {
    const at = side.room;
    side.room += 8 * Math.ceil(bytes.length / 8);
    side.answers.push({ at, bytes: bytes.slice() });
    return at;
  }

  async function drain(side: Side): Promise<void> {
    const completions = await poll(side.end.sendCq, side.due);
    expect(completions.filter(({ status }) => status !== SUCCESS)).toEqual([]);
    for (const { at, bytes } of side.answers) {
      expect(side.end.bytes.slice(at, at + bytes.length), `seed ${seed}`).toEqual(bytes);
    }
    side.due = 0;
    side.answers = [];
    side.room = 2 * BYTES;
  }

  function random(side: Side): (qp: End['qp']) => void {
    const { end, other, model } = side;
    const kind = upTo(26);
    const length = kind < 12 ? 1 + upTo(64) : kind < 16 ? 1 + upTo(1024) : 1 + upTo(6000);
    const at = upTo(BYTES - length);
    const source = BYTES + upTo(BYTES - length);
    if (kind === 23 && side.told - side.heard < 50) {
      side.told++;
      other.receive(0, 3 * BYTES, 8);
      return (qp) => {
        qp.wrSend(0, flags);
        qp.wrSetInlineData(word(side.told), 0, 8);
      };
    }
    if (kind > 23 && side.told - side.heard < 50) {
      side.told++;
      other.receive(0, 3 * BYTES, 8);
      const fence = upTo(4) === 0 ? SendFlag.FENCE : 0;
      return (qp) => qp.wrRdmaWriteImm(0, flags | fence, other.region.rkey, other.at(0), side.told);
    }
    if (kind >= 21 && side.room < 3 * BYTES - 8) {
      const target = at - (at % 8);
      const value = new BigUint64Array(model.buffer, target, 1);
      const to = answer(side, new Uint8Array(value.slice().buffer));
      const swaps = upTo(2) === 0;
      const old = value[0];
      value[0] = swaps ? 7n : BigInt.asUintN(64, old + 3n);
      return (qp) => {
        if (swaps) {
          const [low, high] = new Uint32Array(BigUint64Array.of(old).buffer);
          qp.wrAtomicCmpSwp(0, flags, other.region.rkey, other.at(target), low, high, 7, 0);
        } else qp.wrAtomicFetchAdd(0, flags, other.region.rkey, other.at(target), 3, 0);
        qp.wrSetSge(end.region.lkey, end.at(to), 8);
      };
    }
    if (kind % 4 === 3 && side.room < 3 * BYTES - 8 - length) {
      const to = answer(side, other.bytes.subarray(source, source + length));
      return (qp) => {
        qp.wrRdmaRead(0, flags, other.region.rkey, other.at(source));
        qp.wrSetSge(end.region.lkey, end.at(to), length);
      };
    }
    const isInline = length <= 64 && upTo(2) === 0;
    const content = isInline ? Uint8Array.from({ length }, () => upTo(256)) : end.bytes.slice(source, source + length);
    model.set(content, at);
    return (qp) => {
      qp.wrRdmaWrite(0, flags, other.region.rkey, other.at(at));
      if (isInline) qp.wrSetInlineData(content, 0, length);
      else qp.wrSetSge(end.region.lkey, end.at(source), length);
    };
  }

  for (let left = 4000; left > 0; ) {
    const side = sides[upTo(2)];
    const { end, other, model } = side;
    const build = Array.from({ length: 1 + upTo(20) }, () => random(side));
    left -= build.length;
    side.due += build.length;
    // By one call, or each by a call of its own.
    const together = upTo(2) === 0;
    if (together) {
      post(end, (qp) => {
        for (const one of build) one(qp);
      });
    } else for (const one of build) post(end, one);
    for (const one of sides) one.heard += one.other.recvCq.poll(64);
    // Some are left under way.
    if (side.due < 200 && upTo(3) > 0) continue;
    // Reads behind everything: of all that was written, and of a part.
    const length = upTo(2) === 0 ? BYTES / 2 : 1 + upTo(500);
    const at = upTo(BYTES - length);
    if (side.room < 3 * BYTES - 8 - length) {
      const to = answer(side, model.subarray(at, at + length));
      post(end, (qp) => {
        qp.wrRdmaRead(0, flags, other.region.rkey, other.at(at));
        qp.wrSetSge(end.region.lkey, end.at(to), length);
      });
      side.due++;
    }
    await drain(side);
  }
  for (const side of sides) {
    await drain(side);
    expect(side.other.bytes.slice(0, BYTES), `seed ${seed}`).toEqual(side.model);
    expect(side.end.bytes.slice(BYTES, 2 * BYTES)).toEqual(pattern(4 * BYTES).slice(BYTES, 2 * BYTES));
  }
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
