/**
 * Verbs on a `SlowNetwork`, as far as puts need them, that use what the specification leaves open: a write completes at
 * its initiator when the adapter at the other end has it, and only some time after that it is in the memory there. What
 * is promised is kept: one connection's writes are placed in their order, and a receive completes after all that came
 * before it on its connection was placed.
 */
import type { Context } from '../../src/verbs/device.ts';
import type { ProtectionDomain } from '../../src/verbs/memory.ts';
import type { QueuePair } from '../../src/verbs/queue-pair.ts';
import type { SlowNetwork } from './slow-network.ts';

interface Completion {
  readonly wrId: number;
  readonly qpNum: number;
  readonly immData: number;
}

function completionQueue() {
  const waiting: Completion[] = [];
  const wc = {
    wrId: new Float64Array(64),
    status: new Uint8Array(64),
    immData: new Uint32Array(64),
    qpNum: new Uint32Array(64),
  };
  return {
    waiting,
    capacity: 65536,
    wc,
    poll(max: number): number {
      const n = Math.min(max, 64, waiting.length);
      for (let i = 0; i < n; i++) {
        const { wrId, qpNum, immData } = waiting.shift()!;
        wc.wrId[i] = wrId;
        wc.qpNum[i] = qpNum;
        wc.immData[i] = immData;
      }
      return n;
    },
    reqNotify() {},
    destroy() {},
  };
}

/**
 * The adapters of all ranks. A rank's queue pair for its peer p has the number p; a rank's part has the rank as its
 * key, and begins at address 0.
 */
export class LaggingVerbs {
  readonly #network: SlowNetwork;
  readonly #parts: readonly Uint8Array[];
  readonly #receivers: ReturnType<typeof completionQueue>[] = [];

  constructor(network: SlowNetwork, parts: readonly Uint8Array[]) {
    this.#network = network;
    this.#parts = parts;
  }

  open(rank: number): { readonly context: Context; readonly pd: ProtectionDomain } {
    const network = this.#network;
    const queues: ReturnType<typeof completionQueue>[] = [];
    let pairs = 0;
    const createQueuePair = (): QueuePair => {
      const peer = pairs++;
      let request = { wrId: 0, address: 0, data: new Uint8Array(0), immData: 0, write: false };
      const begin = (wrId: number, write: boolean, address: number, immData: number): void => {
        request = { wrId, address, data: new Uint8Array(0), immData, write };
      };
      const pair = {
        number: peer,
        maxInlineData: 64,
        modify() {},
        wrStart() {},
        wrRdmaWrite: (wrId: number, _: number, __: number, address: number) => begin(wrId, true, address, 0),
        wrRdmaWriteImm: (wrId: number, _: number, __: number, address: number, imm: number) =>
          begin(wrId, true, address, imm),
        wrSendImm: (wrId: number, _: number, imm: number) => begin(wrId, false, 0, imm),
        wrSetInlineData: (bytes: Uint8Array, at: number, length: number) => {
          request.data = bytes.slice(at, at + length);
        },
        wrComplete: () => {
          const { wrId, address, data, immData } = request;
          network.send(`post ${rank} ${peer}`, () => {
            network.send(`completion ${rank} ${peer}`, () => {
              queues[0].waiting.push({ wrId, qpNum: peer, immData: 0 });
            });
            network.send(`placement ${rank} ${peer}`, () => {
              this.#parts[peer].set(data, address);
              if (immData !== 0) this.#receivers[peer].waiting.push({ wrId: 0, qpNum: rank, immData });
            });
          });
        },
        destroy() {},
      };
      return pair as unknown as QueuePair;
    };
    const context = {
      capabilities: { completionImpliesPlacement: false },
      device: { maxInlineData: 64, maxQpInitRdAtom: 16, maxMsgSize: 2 ** 30, maxCqe: 65536, maxSrqWr: 4096 },
      neighbours: undefined,
      createCq: () => {
        const queue = completionQueue();
        queues.push(queue);
        // The second one is that of receives.
        if (queues.length === 2) this.#receivers[rank] = queue;
        return queue;
      },
      allocateMemory: (bytes: number) => ({ buffer: new ArrayBuffer(bytes), free() {} }),
    };
    const pd = {
      createSharedReceiveQueue: () => ({ posted: 1024, postRecv() {}, arm() {}, destroy() {} }),
      registerMemory: () => ({ lkey: 0, address: 0, deregister() {} }),
      createQueuePair,
    };
    return { context: context as unknown as Context, pd: pd as unknown as ProtectionDomain };
  }
}
