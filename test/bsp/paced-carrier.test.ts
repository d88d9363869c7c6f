/** One process that paces packets, on top of a carrier that has lost some: how it waits. */
import { expect, test } from 'vitest';
import type { PacketCarrier } from '../../src/bsp/delivery/carrier.ts';
import type { CarrierUser } from '../../src/bsp/delivery/carrier-user.ts';
import { FixedPace } from '../../src/bsp/delivery/pace-choices.ts';
import { PacedCarrier } from '../../src/bsp/delivery/paced-carrier.ts';
import type { Communicator } from '../../src/collective/communicator.ts';

const SLOT = 100;

test('it sleeps while what it owes cannot leave, and sends it in slots as soon as that can', () => {
  let time = 0;
  const lossy = {
    ...{ owed: 3, canLeave: false },
    get owes(): boolean {
      return lossy.owed > 0;
    },
    resend: (): boolean => {
      if (lossy.canLeave) lossy.owed--;
      return lossy.canLeave;
    },
    expectPackets: () => {},
    comeBy: () => false,
  };
  const below = { ...{ mostPieces: 4, headBytes: 20, isSilent: true, lossy }, expect: () => {}, poll: () => {} };
  const user: CarrierUser = { tell: () => {}, arrived: () => {} };
  const job = { processor: { copy: () => {}, isVirtual: true } };
  const comm = { rank: 0, size: 2, now: () => time, job } as unknown as Communicator;
  const pacing = { pacer: new FixedPace(SLOT, 1), packet: 1000, seeds: [1] };
  const carrier = new PacedCarrier(comm, user, () => below as unknown as PacketCarrier, pacing);
  carrier.announce([undefined, undefined]);
  carrier.expect(0, { senders: 1, packets: 3, most: 3, longest: 0 });
  carrier.poll();
  expect([lossy.owed, carrier.isPolling()]).toEqual([3, false]);
  time += SLOT;
  carrier.poll();
  expect([lossy.owed, carrier.isPolling()]).toEqual([3, false]);
  lossy.canLeave = true;
  carrier.poll();
  expect(lossy.owed).toBe(1);
  expect(carrier.isPolling()).toBe(SLOT / 1000);
  time += SLOT;
  carrier.poll();
  expect([lossy.owed, carrier.isPolling()]).toEqual([0, false]);
});
