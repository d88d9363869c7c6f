/** What a modelled device can do besides what its fabric says: numbers that no experiment depends on. */
import type { Capabilities, DeviceAttributes } from '../../verbs/device.ts';
import { MAX_MESSAGE_BYTES } from '../../verbs/work-request-ring.ts';
import type { Fabric } from './fabric-numbers.ts';

/** Of each kind of object. Numbers of queue pairs have 24 bits. */
export const MOST = 2 ** 20;
/** Of multicast groups, and of queue pairs of a device that are attached to one. */
export const MOST_GROUPS = 8192;
export const MOST_ATTACHED = 56;

/**
 * A device across a network claims no more. Its keys are random, but drawn from a seed. With `faults.placement`,
 * completions do not imply placement. Requests can wait where the description says what a step of the adapter takes.
 */
export const CAPABILITIES: Capabilities = Object.freeze({
  loadStore: false,
  atomicsAgree: false,
  immediateCompletion: false,
  completionImpliesPlacement: true,
  remoteUserMemory: true,
  randomKeys: false,
  faultEvents: true,
  helper: false,
  datagrams: true,
  multicast: true,
  waits: false,
  updates: false,
  barrier: false,
});

export function deviceOf({ adapter, name }: Fabric): DeviceAttributes {
  return Object.freeze({
    name,
    maxQp: MOST,
    maxQpWr: 16_384,
    maxSge: adapter.maxSge,
    maxCq: MOST,
    maxCqe: 2 ** 22,
    maxMr: MOST,
    maxMrSize: Number.MAX_SAFE_INTEGER,
    maxPd: 32_768,
    maxSrq: MOST,
    maxSrqWr: 32_768,
    maxSrqSge: adapter.maxSge,
    maxInlineData: adapter.inline,
    maxQpInitRdAtom: adapter.maxReads,
    maxMsgSize: Math.min(adapter.maxMessage, MAX_MESSAGE_BYTES),
    mtu: Math.min(adapter.packet, adapter.maxMessage),
    maxAh: MOST,
    maxMcastGrp: MOST_GROUPS,
    maxMcastQpAttach: MOST_ATTACHED,
    maxTotalMcastQpAttach: MOST_GROUPS * MOST_ATTACHED,
  });
}
