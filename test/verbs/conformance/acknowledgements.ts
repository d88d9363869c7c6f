/**
 * Sends complete when they were received, whatever their receiver does then. A provider may let the acknowledgement of
 * a small message wait for something that carries it: whoever waits for it must not wait for long.
 */
import { expect } from 'vitest';
import { SendFlag } from '../../../src/verbs/queue-pair.ts';
import { IN_GATE } from '../../support/gate.ts';
import {
  bringUp,
  connect,
  type End,
  expectNothing,
  pattern,
  poll,
  pollSuccess,
  post,
  type Suite,
  send,
  turn,
} from './harness.ts';

const ROUNDS = 9;
/**
 * Milliseconds that half of the rounds may take: far more than any that waits for a thread of the provider, and less
 * than one in which something had to be asked for. In the gate, what ends a hang.
 */
const MOST_MS = IN_GATE ? 60_000 : 100;

/** Runs a round again and again, which gives how many milliseconds it took, of the clock whatever devices go by. */
async function expectSoon(round: (i: number) => Promise<number>): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < ROUNDS; i++) times.push(await round(i));
  expect(times.sort((x, y) => x - y)[ROUNDS >> 1]).toBeLessThan(MOST_MS);
}

/** Until `end`'s send is complete. @returns milliseconds */
async function timeOfSend(end: End, wrId: number, meanwhile: () => void = () => {}): Promise<number> {
  const began = performance.now();
  while (end.sendCq.poll(1) === 0) {
    meanwhile();
    await turn();
  }
  expect(end.sendCq.wc.wrId[0]).toBe(wrId);
  expect(end.sendCq.wc.status[0]).toBe(0);
  return performance.now() - began;
}

export function acknowledgements({ check, clock }: Suite): void {
  /** Nothing has come to `end`, which is used to poll then. */
  const looks = (end: End): void => clock.pass(2, () => expect(end.recvCq.poll(1)).toBe(0));

  /** A send whose receiver has taken it and then does `afterwards`, as often as the sender looks. */
  const expectAcknowledged = ([a, b]: End[], afterwards?: () => void): Promise<void> => {
    connect(a, b);
    return expectSoon(async (i) => {
      b.receive(i, 0, 64);
      looks(b);
      send(a, i, 0, 8);
      await pollSuccess(b.recvCq);
      return timeOfSend(a, i, afterwards);
    });
  };

  check('a send completes though nothing is sent back, while its receiver polls', async (ends) => {
    let more = 0;
    await expectAcknowledged(ends, () => {
      // So often that no thread of the provider takes its place.
      for (let k = 0; k < 20; k++) more += ends[1].recvCq.poll(1);
    });
    expect(more).toBe(0);
  });

  check('a send completes though nothing is sent back, and its receiver polls no more', (ends) =>
    expectAcknowledged(ends),
  );

  check('a send completes though its receiver posts the receive late, and does not poll', async ([a, b]) => {
    connect(a, b);
    await expectSoon(async (i) => {
      send(a, i, 0, 8);
      // Long enough that whatever looks after b sleeps.
      clock.pass(20, () => a.sendCq.poll(0));
      b.receive(i, 0, 64);
      const time = await timeOfSend(a, i);
      await pollSuccess(b.recvCq);
      return time;
    });
  });

  check('what is posted behind a send is carried out, and completes behind it', async ([a, b]) => {
    const BYTES = 32_768;
    for (const end of [a, b]) end.make({}, BYTES);
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
    const { rkey } = b.region;
    for (const length of [8, BYTES / 4]) {
      for (const polls of [true, false]) {
        await expectSoon(async (i) => {
          b.receive(i, 0, 64);
          a.bytes.fill(100 + i, 0, length);
          b.bytes.fill(200 + i, 3 * length, 4 * length);
          a.qp.wrStart();
          a.qp.wrSend(0, SendFlag.SIGNALED);
          a.qp.wrSetSge(a.region.lkey, a.at(0), 8);
          a.qp.wrRdmaWrite(1, SendFlag.SIGNALED, rkey, b.at(length));
          a.qp.wrSetSge(a.region.lkey, a.at(0), length);
          a.qp.wrRdmaRead(2, SendFlag.SIGNALED, rkey, b.at(3 * length));
          a.qp.wrSetSge(a.region.lkey, a.at(2 * length), length);
          a.qp.wrComplete();
          let time = 0;
          let received = 0;
          const meanwhile = (): void => {
            if (polls) received += b.recvCq.poll(1);
          };
          for (const wrId of [0, 1, 2]) time += await timeOfSend(a, wrId, meanwhile);
          if (received === 0) await pollSuccess(b.recvCq);
          expect(b.bytes.subarray(length, 2 * length).every((byte) => byte === 100 + i)).toBe(true);
          expect(a.bytes.subarray(2 * length, 3 * length).every((byte) => byte === 200 + i)).toBe(true);
          return time;
        });
      }
    }
  });

  check('1000 sends one behind another arrive and complete in order', async ([a, b]) => {
    const SLOTS = 16;
    const ROOM = 1100;
    for (const end of [a, b]) end.make({ maxSendWr: SLOTS, maxRecvWr: SLOTS }, SLOTS * ROOM);
    bringUp(a.qp, b.qp);
    bringUp(b.qp, a.qp);
    const at = (i: number): number => (i % SLOTS) * ROOM;
    const lengthOf = (i: number): number => (7 * i) % ROOM;
    let [sent, complete, received] = [0, 0, 0];
    for (let i = 0; i < SLOTS; i++) b.receive(i, at(i), ROOM);
    while (complete < 1000 || received < 1000) {
      for (; sent < 1000 && sent - complete < SLOTS; sent++) {
        a.bytes.fill(sent & 255, at(sent), at(sent) + lengthOf(sent));
        send(a, sent, at(sent), lengthOf(sent));
      }
      for (let n = a.sendCq.poll(16), i = 0; i < n; i++) {
        expect([a.sendCq.wc.wrId[i], a.sendCq.wc.status[i]]).toEqual([complete++, 0]);
      }
      for (let n = b.recvCq.poll(16), i = 0; i < n; i++, received++) {
        expect([b.recvCq.wc.wrId[i], b.recvCq.wc.status[i], b.recvCq.wc.byteLen[i]]).toEqual([
          received,
          0,
          lengthOf(received),
        ]);
        const from = at(received);
        const message = b.bytes.subarray(from, from + lengthOf(received));
        expect(message.every((byte) => byte === (received & 255))).toBe(true);
        b.receive(received + SLOTS, from, ROOM);
      }
      await turn();
    }
    await expectNothing(a.sendCq, b.recvCq);
  });

  check('a send that is answered completes as well as its answer', async ([a, b]) => {
    connect(a, b);
    await expectSoon(async (i) => {
      for (const end of [a, b]) end.receive(i, 1000, 64);
      send(a, i, 0, 8);
      await pollSuccess(b.recvCq);
      send(b, i, 0, 8);
      await pollSuccess(a.recvCq);
      return (await timeOfSend(a, i)) + (await timeOfSend(b, i));
    });
  });

  check('sends of both sides at once complete', async ([a, b]) => {
    const SLOTS = 16;
    const TOTAL = 300;
    const places = { maxSendWr: SLOTS, maxRecvWr: SLOTS };
    await expectSoon(async () => {
      connect(a, b, places);
      const began = performance.now();
      const sides = [a, b].map((end) => ({ end, sent: 0, complete: 0, received: 0 }));
      for (const { end } of sides) for (let i = 0; i < SLOTS; i++) end.receive(i, 1000 + 8 * i, 8);
      while (sides.some(({ complete, received }) => complete < TOTAL || received < TOTAL)) {
        for (const side of sides) {
          const { end } = side;
          for (; side.sent < TOTAL && side.sent - side.complete < SLOTS; side.sent++) {
            post(end, (qp) => {
              qp.wrSend(side.sent, SendFlag.SIGNALED);
              qp.wrSetInlineData(Uint8Array.of(side.sent & 255), 0, 1);
            });
          }
          for (let n = end.sendCq.poll(16), i = 0; i < n; i++) {
            expect([end.sendCq.wc.wrId[i], end.sendCq.wc.status[i]]).toEqual([side.complete++, 0]);
          }
          for (let n = end.recvCq.poll(16), i = 0; i < n; i++, side.received++) {
            expect([end.recvCq.wc.wrId[i], end.recvCq.wc.status[i]]).toEqual([side.received, 0]);
            const place = 1000 + 8 * (side.received % SLOTS);
            expect(end.bytes[place]).toBe(side.received & 255);
            end.receive(side.received + SLOTS, place, 8);
          }
        }
        await turn();
      }
      for (const { end } of sides) end.qp.destroy();
      // Some turns of the event loop each.
      return (performance.now() - began) / (TOTAL / SLOTS);
    });
  });

  check('what is sent back completes no send that waits for its receive', async ([a, b]) => {
    connect(a, b);
    for (let i = 0; i < 20; i++) {
      b.receive(0, 1000, 64);
      send(a, 2 * i, 0, 8);
      send(a, 2 * i + 1, 8, 8);
      await pollSuccess(b.recvCq);
      for (let k = 0; k < 3; k++) {
        a.receive(k, 2000, 8);
        send(b, k, 0, 8);
        await pollSuccess(a.recvCq);
      }
      expect((await pollSuccess(a.sendCq)).wrId).toBe(2 * i);
      await expectNothing(a.sendCq, b.recvCq);
      b.receive(1, 1000, 64);
      expect((await pollSuccess(a.sendCq)).wrId).toBe(2 * i + 1);
      await pollSuccess(b.recvCq);
      expect(b.bytes.subarray(1000, 1008)).toEqual(pattern(16).subarray(8));
      await poll(b.sendCq, 3);
    }
  });
}
