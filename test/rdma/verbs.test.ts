/**
 * The verbs conformance suite on a real device: the first one with an active port. Fails where there is none. Run by
 * `npm run test:rdma`.
 */
import type { RdmaAddress } from '../../src/providers/rdma-core/addresses.ts';
import { openRdma } from '../../src/providers/rdma-core/rdma-context.ts';
import { chooseEndpoint } from '../../src/providers/rdma-core/rdma-devices.ts';
import { verbsConformance } from '../verbs/conformance/index.ts';

const endpoint = chooseEndpoint();
const { device, port, gidIndex } = endpoint;

await verbsConformance(`${device}, port ${port}, GID ${gidIndex}`, {
  open(count) {
    const addresses: RdmaAddress[] = [];
    const contexts = Array.from({ length: count }, (_, member) => openRdma(endpoint, member, addresses));
    addresses.push(...contexts.map(({ own }) => own));
    return contexts;
  },
});
