/** What the emulated device can do. The limits are those of a common adapter, and are enforced like an adapter's. */

import type { Capabilities, DeviceAttributes } from '../../verbs/device.ts';
import { MAX_MESSAGE_BYTES } from '../../verbs/work-request-ring.ts';
import { MAX_ATTACHMENTS } from './group-table.ts';
import { MAX_QP } from './qp-table.ts';
import { MAX_REGIONS } from './region-table.ts';

/** Entries of one completion queue. */
export const MAX_COMPLETIONS = 1 << 22;

export const DEVICE: DeviceAttributes = Object.freeze({
  name: 'emulator0',
  maxQp: MAX_QP,
  maxQpWr: 16384,
  maxSge: 30,
  maxCq: 65536,
  maxCqe: MAX_COMPLETIONS,
  maxMr: MAX_REGIONS,
  maxMrSize: Number.MAX_SAFE_INTEGER,
  maxPd: 32768,
  maxSrq: 65536,
  maxSrqWr: 32768,
  maxSrqSge: 30,
  maxInlineData: 448,
  maxQpInitRdAtom: 16,
  maxMsgSize: MAX_MESSAGE_BYTES,
  mtu: 4096,
  maxAh: 65536,
  maxMcastGrp: MAX_ATTACHMENTS,
  maxMcastQpAttach: MAX_ATTACHMENTS,
  maxTotalMcastQpAttach: MAX_ATTACHMENTS,
});

export const CAPABILITIES: Capabilities = Object.freeze({
  loadStore: true,
  atomicsAgree: true,
  immediateCompletion: true,
  completionImpliesPlacement: true,
  remoteUserMemory: false,
  randomKeys: true,
  faultEvents: true,
  helper: false,
  datagrams: true,
  multicast: true,
  waits: true,
  updates: false,
  barrier: false,
});
