/**
 * The verbs conformance suite on a real device: the first one with an active port. Fails where there is none. Run by
 * `npm run test:rdma`, and on libfabric by `npm run test:tcp`.
 */
import { verbsConformance } from '../verbs/conformance/index.ts';
import { openMembers, PROVIDER } from './device.ts';

await verbsConformance(PROVIDER, { open: openMembers });
