/**
 * Which device the suites of this folder run on: an RDMA device in a guest (`npm run test:rdma`), or libfabric over TCP
 * on the loopback interface (`npm run test:tcp`).
 */
import { readFileSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import type { FabricAddress } from '../../src/providers/libfabric/libfabric-addresses.ts';
import { chooseFabric, type FabricChoice } from '../../src/providers/libfabric/libfabric-choice.ts';
import { openFabric } from '../../src/providers/libfabric/libfabric-context.ts';
import type { RdmaAddress } from '../../src/providers/rdma-core/addresses.ts';
import { openRdma } from '../../src/providers/rdma-core/rdma-context.ts';
import { chooseEndpoint } from '../../src/providers/rdma-core/rdma-devices.ts';
import type { Context } from '../../src/verbs/device.ts';
import { End } from '../verbs/conformance/harness.ts';

export const PROVIDER = process.env['ONESIDED_TEST_PROVIDER'] ?? 'rdma-core';
export const ON_DEVICE = { ONESIDED_PROVIDER: PROVIDER };

/** What else members of libfabric know. */
interface Known {
  /** Where further members are, who come after those that are opened. */
  readonly others?: readonly FabricAddress[];
  /** What member `from` believes of a member that is at `own`. */
  tell?(own: FabricAddress, from: number): FabricAddress;
}

/** Opens libfabric so many times, by members that know each other. */
function openFabrics(
  choice: FabricChoice,
  count: number,
  { others = [], tell = (own) => own }: Known = {},
): { contexts: Context[]; own: FabricAddress[] } {
  const own: FabricAddress[] = [];
  const contexts = Array.from({ length: count }, (_, from) => {
    const opened = Array.from({ length: count }, (_, to) => () => own[to] && tell(own[to], from));
    const { context, own: address } = openFabric(choice, from, [...opened, ...others.map((other) => () => other)]);
    own.push(address);
    return context;
  });
  return { contexts, own };
}

/** Opens the device so many times, by members that can reach each other. */
export function openMembers(count: number): Context[] {
  if (PROVIDER === 'libfabric') {
    return openFabrics(chooseFabric(process.env['ONESIDED_DEVICE'] ?? '', '127.0.0.1'), count).contexts;
  }
  const endpoint = chooseEndpoint();
  const addresses: RdmaAddress[] = [];
  const contexts = Array.from({ length: count }, (_, member) => openRdma(endpoint, member, addresses));
  addresses.push(...contexts.map(({ own }) => own));
  return contexts;
}

/** Endpoints of libfabric on the loopback interface until the test ends, and where they are. */
export function openEnds(count: number, known?: Known): { ends: End[]; own: FabricAddress[] } {
  const { contexts, own } = openFabrics(chooseFabric('', '127.0.0.1'), count, known);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  return { ends: contexts.map((context) => new End(context)), own };
}

/** Segments that TCP has sent here. */
export function segments(): number {
  const lines = readFileSync('/proc/self/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Tcp:'))
    .map((line) => line.split(' '));
  return Number(lines[1][lines[0].indexOf('OutSegs')]);
}
