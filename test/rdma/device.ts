/**
 * Which device the suites of this folder run on: an RDMA device in a guest (`npm run test:rdma`), or libfabric over TCP
 * on the loopback interface (`npm run test:tcp`).
 */

import { readFileSync } from 'node:fs';
import type { FabricAddress } from '../../src/providers/libfabric/libfabric-addresses.ts';
import { chooseFabric } from '../../src/providers/libfabric/libfabric-choice.ts';
import { openFabric } from '../../src/providers/libfabric/libfabric-context.ts';
import type { RdmaAddress } from '../../src/providers/rdma-core/addresses.ts';
import { openRdma } from '../../src/providers/rdma-core/rdma-context.ts';
import { chooseEndpoint } from '../../src/providers/rdma-core/rdma-devices.ts';
import type { Context } from '../../src/verbs/device.ts';

export const PROVIDER = process.env['ONESIDED_TEST_PROVIDER'] ?? 'rdma-core';
export const ON_DEVICE = { ONESIDED_PROVIDER: PROVIDER };

/** Opens the device so many times, by members that can reach each other. */
export function openMembers(count: number): Context[] {
  if (PROVIDER === 'libfabric') {
    const choice = chooseFabric(process.env['ONESIDED_DEVICE'] ?? '', '127.0.0.1');
    const own: FabricAddress[] = [];
    const addresses = Array.from({ length: count }, (_, member) => () => own[member]);
    return Array.from({ length: count }, (_, member) => {
      const opened = openFabric(choice, member, addresses);
      own[member] = opened.own;
      return opened.context;
    });
  }
  const endpoint = chooseEndpoint();
  const addresses: RdmaAddress[] = [];
  const contexts = Array.from({ length: count }, (_, member) => openRdma(endpoint, member, addresses));
  addresses.push(...contexts.map(({ own }) => own));
  return contexts;
}

/** Segments that TCP has sent here. */
export function segments(): number {
  const lines = readFileSync('/proc/self/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Tcp:'))
    .map((line) => line.split(' '));
  return Number(lines[1][lines[0].indexOf('OutSegs')]);
}
