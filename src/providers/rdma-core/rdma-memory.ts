/** Memory and protection domains of a device. Addresses are those of the process. */
import { bytesIn } from '../../intrinsics.ts';
import type { Native, RdmaContext } from '../../native.ts';
import type { AddressHandle, AhAttributes } from '../../verbs/address-handle.ts';
import { gidText } from '../../verbs/gid.ts';
import type { Memory, QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import { AddressHandleCore, CREATE_AH, wayOf } from '../core/address-handles.ts';
import { MemoryCore, ProtectionDomainCore, RegionCore } from '../core/verbs-objects.ts';
import type { RdmaParent, RdmaPd } from './rdma-parent.ts';
import { verb } from './verb.ts';

export class RdmaMemory extends MemoryCore {
  readonly buffer: ArrayBufferLike;
  readonly address: number;
  readonly byteLength: number;
  readonly fromLibrary: boolean;
  /** What native code takes: it does not take a bare `SharedArrayBuffer`. */
  readonly bytes: Uint8Array;
  readonly #unmap: (() => void) | undefined;

  constructor(native: Native, buffer: ArrayBufferLike, unmap: (() => void) | undefined) {
    super();
    this.buffer = buffer;
    this.bytes = new Uint8Array(buffer);
    this.byteLength = bytesIn(buffer);
    this.address = this.byteLength === 0 ? 0 : native.addressOf(this.bytes);
    this.fromLibrary = unmap !== undefined;
    this.#unmap = unmap;
  }

  protected release(): void {
    this.#unmap?.();
  }
}

class RdmaRegion extends RegionCore<RdmaMemory, RdmaProtectionDomain> {
  /** What native code knows it by. */
  readonly #number: number;

  constructor(
    pd: RdmaProtectionDomain,
    memory: RdmaMemory,
    offset: number,
    length: number,
    access: number,
    [number, lkey, rkey]: readonly number[],
  ) {
    super(pd, memory, offset, length, access, lkey, rkey);
    this.#number = number;
  }

  override deregister(): void {
    if (!this.pd.context.isClosed) super.deregister();
  }

  protected revoke(): void {
    const { context, device } = this.pd;
    context.giveBack('deregister memory', () => device.deregMr(this.#number));
  }
}

export class RdmaProtectionDomain
  extends ProtectionDomainCore<RdmaMemory, RdmaRegion, QueuePair, SharedReceiveQueue>
  implements RdmaPd
{
  readonly number: number;
  readonly context: RdmaParent;
  readonly device: RdmaContext;

  constructor(context: RdmaParent, device: RdmaContext) {
    super(context.device);
    this.context = context;
    this.device = device;
    this.number = verb('allocate a protection domain', () => device.allocPd());
  }

  override dealloc(): void {
    if (!this.context.isClosed) super.dealloc();
  }

  protected owns(memory: Memory): memory is RdmaMemory {
    return memory instanceof RdmaMemory;
  }

  protected register(call: string, memory: RdmaMemory, offset: number, length: number, access: number): RdmaRegion {
    const { device } = this;
    const keys = verb(call, () =>
      length === 0
        ? device.regMr(this.number, this.context.nothing().bytes, 0, 1, 0)
        : device.regMr(this.number, memory.bytes, offset, length, access),
    );
    return new RdmaRegion(this, memory, offset, length, access, keys);
  }

  protected makeQueuePair(init: QueuePairInit): QueuePair {
    return this.context.createQueuePair(this, init);
  }

  protected get handles(): number {
    return this.context.handles;
  }

  protected makeAh(attributes: AhAttributes): AddressHandle {
    const { context, device } = this;
    const way = wayOf(attributes, context.peers.length, (member) => context.peers[member]);
    const gid = gidText(way.words);
    const from = `${CREATE_AH} (from GID ${context.gid} to ${gid}; check that there is a route)`;
    const number = verb(from, () => device.createAh(this.number, gid, way.lid));
    context.handles++;
    return new AddressHandleCore(this, number, way, () => {
      if (context.isClosed) return;
      context.giveBack('destroy an address handle', () => device.destroyAh(number));
      context.handles--;
    });
  }

  protected makeSharedReceiveQueue(call: string, maxWr: number, maxSge: number): SharedReceiveQueue {
    return this.context.createSrq(call, this, maxWr, maxSge);
  }

  protected release(): void {
    this.context.giveBack('deallocate a protection domain', () => this.device.deallocPd(this.number));
  }

  protected override mustLive(call: string): void {
    this.context.mustBeOpen(call);
    super.mustLive(call);
  }
}
