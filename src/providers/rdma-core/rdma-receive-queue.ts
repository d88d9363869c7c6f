/** Shared receive queues of a device. */
import type { RdmaContext } from '../../native.ts';
import { SharedReceiveQueueCore } from '../core/verbs-objects.ts';
import type { RdmaParent, RdmaPd } from './rdma-parent.ts';
import { ReceiveSlots } from './receive-slots.ts';
import { verb } from './verb.ts';

export class RdmaSharedReceiveQueue extends SharedReceiveQueueCore<RdmaPd> {
  readonly number: number;
  readonly slots: ReceiveSlots;
  /** What completions name it by. */
  readonly owner: number;
  readonly #context: RdmaParent;
  readonly #device: RdmaContext;

  constructor(context: RdmaParent, device: RdmaContext, pd: RdmaPd, number: number, maxWr: number, maxSge: number) {
    const slots = new ReceiveSlots(device, true, number, maxWr, maxSge);
    super(pd, slots);
    this.#context = context;
    this.#device = device;
    this.number = number;
    this.slots = slots;
    this.owner = context.addReceiver(slots);
  }

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.mustLive('post receive');
    this.slots.post(this.owner, wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.mustLive('post receive');
    this.slots.add(lkey, address, length);
  }

  protected setLimit(call: string, limit: number): void {
    // A device looks at the limit when it takes a receive: one that is passed already would say so later, or never.
    if (limit > this.slots.posted) {
      verb(call, () => this.#device.armSrq(this.number, 0));
      this.#context.raise({ type: 'SRQ_LIMIT_REACHED', srq: this });
    } else verb(call, () => this.#device.armSrq(this.number, limit));
  }

  override destroy(): void {
    if (!this.#context.isClosed) super.destroy();
  }

  protected release(): void {
    this.#context.giveBack('destroy a shared receive queue', () => this.#device.destroySrq(this.number));
    this.#context.dropReceiver(this.owner);
    this.#context.srqs.delete(this.number);
  }

  protected override mustLive(call: string): void {
    this.#context.mustBeOpen(call);
    super.mustLive(call);
  }
}
