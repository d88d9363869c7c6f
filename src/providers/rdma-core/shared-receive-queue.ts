/** Shared receive queues of a device. */
import { RmaError } from '../../errors.ts';
import type { RdmaContext } from '../../native.ts';
import { checkInteger } from '../../verbs/checks.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import type { RdmaCoreContext } from './context.ts';
import type { RdmaProtectionDomain } from './memory.ts';
import { ReceiveSlots } from './receive-slots.ts';
import { verb } from './verb.ts';

export class RdmaSharedReceiveQueue implements SharedReceiveQueue {
  readonly maxWr: number;
  readonly maxSge: number;
  readonly number: number;
  readonly pd: RdmaProtectionDomain;
  readonly slots: ReceiveSlots;
  /** What completions name it by. */
  readonly owner: number;
  /** Queue pairs that receive from it. */
  users = 0;
  readonly #context: RdmaCoreContext;
  readonly #device: RdmaContext;
  #destroyed = false;

  constructor(context: RdmaCoreContext, device: RdmaContext, pd: RdmaProtectionDomain, maxWr: number, maxSge: number) {
    this.#context = context;
    this.#device = device;
    this.pd = pd;
    const capacity = Math.min(2 ** Math.ceil(Math.log2(maxWr)), context.device.maxSrqWr);
    [this.number] = verb('create a shared receive queue', () => device.createSrq(pd.number, capacity, maxSge));
    this.maxWr = capacity;
    this.maxSge = maxSge;
    this.slots = new ReceiveSlots(device, true, this.number, capacity, maxSge);
    this.owner = context.addReceiver(this.slots);
    context.srqs.set(this.number, this);
    pd.children++;
  }

  get posted(): number {
    return this.#destroyed ? 0 : this.slots.posted;
  }

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.#mustLive('post receive');
    this.slots.post(this.owner, wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.#mustLive('post receive');
    this.slots.add(lkey, address, length);
  }

  arm(limit: number): void {
    const call = 'arm the limit';
    this.#mustLive(call);
    checkInteger(call, 'the limit', limit, 0, this.maxWr);
    // A device looks at the limit when it takes a receive: one that is passed already would say so later, or never.
    if (limit > this.slots.posted) {
      verb(call, () => this.#device.armSrq(this.number, 0));
      this.#context.raise({ type: 'SRQ_LIMIT_REACHED', srq: this });
    } else verb(call, () => this.#device.armSrq(this.number, limit));
  }

  destroy(): void {
    if (this.#destroyed || this.#context.isClosed) return;
    if (this.users > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `destroy a shared receive queue: ${this.users} queue pairs still receive from it; destroy them first (EBUSY)`,
      );
    }
    this.#context.giveBack('destroy a shared receive queue', () => this.#device.destroySrq(this.number));
    this.#destroyed = true;
    this.#context.dropReceiver(this.owner);
    this.#context.srqs.delete(this.number);
    this.pd.children--;
  }

  #mustLive(call: string): void {
    this.#context.mustBeOpen(call);
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: the shared receive queue was destroyed`);
  }
}
