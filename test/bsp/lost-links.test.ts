/** The connections of a computation (links.ts) when the device gives no completions. */
import { expect, onTestFinished, test } from 'vitest';
import type { CarrierUser } from '../../src/bsp/delivery/carrier-user.ts';
import { Links, SENDS } from '../../src/bsp/delivery/links.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { LostQueueError, RmaError } from '../../src/errors.ts';
import { openEmulatorAsDevice } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';

test('a queue that gives no completions is lost, as every look says; the device is not asked again', () => {
  const [fabric] = createLocalFabric(2);
  const context = openEmulatorAsDevice(fabric, 1);
  onTestFinished(() => context.close());
  let asked = 0;
  const createCq = context.createCq.bind(context);
  context.createCq = (entries) => {
    const cq = createCq(entries);
    cq.poll = () => {
      asked++;
      throw new RmaError('ERR_VERBS', 'the device refuses (EIO)');
    };
    return cq;
  };
  const job = { context, pd: context.allocPd() };
  const comm = { job, group: { worldRanks: [0, 1] } } as unknown as Communicator;
  const user: CarrierUser = { tell: () => {}, arrived: () => {} };
  const links = new Links(comm, 0, user, 1);
  expect(links.isReady(1, SENDS)).toBe(false);
  expect(() => links.poll()).toThrow(LostQueueError);
  expect(() => links.poll()).toThrow('the transfers of supersteps are lost: the device refuses (EIO)');
  expect(asked).toBe(1);
});
