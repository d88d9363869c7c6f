/** Queue pairs and queues of a window that cannot be made: what was made by then is given back. */
import { describe, expect, test, vi } from 'vitest';
import { Origins } from '../../src/job/origins.ts';
import { MessageConnections, type Rendezvous } from '../../src/message/message-connections.ts';
import { beginQueuePair } from '../../src/message/reliable-queue-pairs.ts';
import { openEmulatorAsDevice } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import type { QueuePair } from '../../src/verbs/queue-pair.ts';
import { Window } from '../../src/window/calls/window.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';

/** A device of which everything that is made is counted; from the `failing`-th move on, queue pairs refuse to move. */
function makeDevice(failing = Number.POSITIVE_INFINITY) {
  const [context] = createLocalFabric(1).map((fabric) => openEmulatorAsDevice(fabric, 1));
  const pd = context.allocPd();
  const left = { cq: 0, srq: 0, qp: 0 };
  const count = <T extends { destroy(): void }>(kind: keyof typeof left, made: T): T => {
    left[kind]++;
    const destroy = made.destroy.bind(made);
    made.destroy = () => {
      destroy();
      left[kind]--;
    };
    return made;
  };
  let moves = 0;
  const refusals = { srq: false };
  const [createCq, createSrq, createQp] = [
    context.createCq.bind(context),
    pd.createSharedReceiveQueue.bind(pd),
    pd.createQueuePair.bind(pd),
  ];
  context.createCq = (cqe) => count('cq', createCq(cqe));
  pd.createSharedReceiveQueue = (init) => {
    if (refusals.srq) throw new Error('no more shared receive queues');
    return count('srq', createSrq(init));
  };
  pd.createQueuePair = (init) => {
    const qp: QueuePair = count('qp', createQp(init));
    const modify = qp.modify.bind(qp);
    qp.modify = (attributes) => {
      if (++moves >= failing) throw new Error('does not move');
      modify(attributes);
    };
    return qp;
  };
  return { context, pd, left, refusals };
}

const NOTHING = { cq: 0, srq: 0, qp: 0 };

describe('of a window', () => {
  test.each([1, 3])('whose queue pair number %i cannot be begun, none is left', (failing) => {
    const { context, pd, left } = makeDevice(failing);
    const transfer = new RequestTransfer(context, pd, new Origins(context, pd), 4, true);
    const numbers = (): number[] => [0, 1, 2, 3].map((rank) => transfer.queuePairFor(rank));
    expect(numbers).toThrow('does not move');
    expect(left.qp).toBe(failing - 1);
    transfer.close();
    expect(left).toEqual(NOTHING);
  });

  test('for which there is no receive queue, no completion queue is left', () => {
    const { context, pd, left, refusals } = makeDevice();
    refusals.srq = true;
    expect(() => new RequestTransfer(context, pd, new Origins(context, pd), 4, true)).toThrow('no more shared');
    expect(left).toEqual(NOTHING);
  });
});

test('of messages: none is left that cannot be begun', () => {
  const { context, pd, left } = makeDevice(1);
  const cq = context.createCq(8);
  const rendezvous = { lookUp: () => undefined, publish: () => {} } as unknown as Rendezvous;
  const connections = new MessageConnections(0, rendezvous, () => beginQueuePair(pd, { sendCq: cq, recvCq: cq }, 0));
  expect(() => connections.to(1)).toThrow('does not move');
  cq.destroy();
  expect(left).toEqual(NOTHING);
});

test('a connection of which one end cannot be made is made anew by the next request', async () => {
  const [found] = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 1);
      await win.lockAll(Assert.NO_CHECK);
      if (world.rank === 1) {
        vi.spyOn(world.job.pd, 'createQueuePair').mockImplementationOnce(() => {
          throw new Error('no more queue pairs');
        });
      }
      await world.barrier();
      let refusal: unknown;
      if (world.rank === 0) {
        try {
          win.put(Int32Array.of(7), 1, 0);
        } catch (error) {
          refusal = (error as Error).message;
        }
        win.put(Int32Array.of(8), 1, 0);
        await win.flush(1);
      }
      await win.unlockAll();
      await world.barrier();
      const there = Int32Array.of(win.local[0]);
      await world.broadcast(there, 1);
      await win.free();
      return [refusal, there[0]];
    },
    { fabric: 'infinihost-64' },
  );
  expect(found).toEqual(['no more queue pairs', 8]);
});
