/**
 * The answering end of a queue pair: what requests of the other end do here.
 *
 * A write takes its bytes from the sender's memory when it is carried out: the sender may not change them before the
 * completion, which comes later.
 */
import { WcFlag, WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { Access } from '../../verbs/memory.ts';
import { SendFlag, WrOpcode } from '../../verbs/queue-pair.ts';
import { type WorkRequestRing, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import type { MappedRegion } from '../core/local-side.ts';
import { copyBytes, copyPieces, Mapping } from '../core/mapped-memory.ts';
import type { Datagram } from './datagram.ts';
import { gather, local, scatter } from './local-pieces.ts';
import type { Completing, ModelledCompletionQueue } from './modelled-completion-queue.ts';
import type { ModelledParent } from './modelled-parent.ts';
import type { ModelledSharedReceiveQueue, ReceiveQueue } from './modelled-receive-queue.ts';
import { NOT_READY, type Transit } from './transit.ts';

/** The queue pair that it answers for. */
interface Answering extends Completing {
  readonly pd: object;
  readonly recvCq: ModelledCompletionQueue;
  readonly srq: ModelledSharedReceiveQueue | undefined;
  readonly receiveQueue: ReceiveQueue;
  /** Moves to ERR and flushes. */
  toError(): void;
}

export class Responder {
  /** What requests of the other end may do. */
  access = 0;
  maxDestRdAtomic = 0;
  /** What datagrams must bring. */
  qkey = Number.NaN;
  /** Microseconds after which a request that found no receive may be tried again. */
  rnrTimer = 0;
  /** When the last of the writes that have come here is in memory. */
  lastPlaced = 0;
  readonly #context: ModelledParent;
  readonly #qp: Answering;

  constructor(context: ModelledParent, qp: Answering) {
    this.#context = context;
    this.#qp = qp;
  }

  /** Carries a request out. @returns its status, or `NOT_READY`: then nothing has happened */
  carryOut(transit: Transit): number {
    const { opcode } = transit;
    const w = transit.requester.ring.wordsOf(transit.request);
    if (opcode >= WrOpcode.RDMA_READ) this.#context.placeAll();
    switch (opcode) {
      case WrOpcode.RDMA_WRITE:
      case WrOpcode.RDMA_WRITE_WITH_IMM:
        return this.#write(w, transit, opcode === WrOpcode.RDMA_WRITE_WITH_IMM);
      case WrOpcode.SEND:
        return this.#send(w, transit, 0);
      case WrOpcode.SEND_WITH_IMM:
        return this.#send(w, transit, WcFlag.WITH_IMM);
      case WrOpcode.RDMA_READ:
        return this.#read(w, transit);
      default: {
        const status = this.#atomic(w, transit);
        if (status === WcStatus.SUCCESS) transit.requester.tookEffect(transit.request);
        return status;
      }
    }
  }

  #write(w: number, transit: Transit, immediate: boolean): number {
    const { requester, bytes } = transit;
    const { ring } = requester;
    let region: MappedRegion | undefined;
    // A key is not looked at when there is nothing to access (InfiniBand 1.3, C9-88).
    if (bytes > 0) {
      region = this.#findRegion(ring, w, bytes, Access.REMOTE_WRITE);
      if (region === undefined) return this.#accuse('QP_ACCESS_ERR', WcStatus.REM_ACCESS_ERR);
    }
    const receives = immediate ? this.#takeReceive() : undefined;
    if (immediate && receives === undefined) return NOT_READY;
    this.#context.simulator.changed();
    if (region !== undefined) {
      const status = requester.findLocal(w, 0);
      if (status !== WcStatus.SUCCESS) return status;
      const at = remoteAddress(ring, w) - region.memory.address;
      if (!immediate && this.#context.shared.faults.placement > 0) {
        this.#placeLater(region, at, transit);
        return WcStatus.SUCCESS;
      }
      gather(region.memory.mapping, at);
      this.#context.stored();
    }
    requester.tookEffect(transit.request);
    if (receives !== undefined) {
      this.#received(ring, w, receives, WcStatus.SUCCESS, WcOpcode.RECV_RDMA_WITH_IMM, WcFlag.WITH_IMM, bytes);
    }
    return WcStatus.SUCCESS;
  }

  #send(w: number, { requester }: Transit, flags: number): number {
    const receives = this.#takeReceive();
    if (receives === undefined) return NOT_READY;
    const { ring } = requester;
    const status = requester.findLocal(w, 0);
    if (status !== WcStatus.SUCCESS) return status;
    const { length } = local;
    const fault = this.#findScatter(receives, length);
    if (fault !== WcStatus.SUCCESS) {
      this.#received(ring, w, receives, fault, WcOpcode.RECV, 0, 0);
      this.#qp.toError();
      return fault === WcStatus.LOC_LEN_ERR ? WcStatus.REM_INV_REQ_ERR : WcStatus.REM_OP_ERR;
    }
    if (length > 0) copyPieces(scatter, local, length);
    this.#context.simulator.changed();
    this.#context.stored();
    this.#received(ring, w, receives, WcStatus.SUCCESS, WcOpcode.RECV, flags, length);
    return WcStatus.SUCCESS;
  }

  /** Takes a datagram in, or drops it. */
  takeDatagram(message: Datagram): void {
    const qp = this.#qp;
    const { srq } = qp;
    const receives = qp.receiveQueue;
    if (this.qkey !== message.qkey || !receives.take()) return;
    srq?.noticeLimit();
    this.#context.simulator.changed();
    const { data, length } = message;
    const fault = this.#findScatter(receives, length);
    if (fault !== WcStatus.SUCCESS) {
      qp.recvCq.push(qp, 0, receives.wrId, fault, WcOpcode.RECV, 0, 0, 0, true);
      qp.toError();
      return;
    }
    local.clear();
    local.add(data, 0, length);
    copyPieces(scatter, local, length);
    this.#context.stored();
    const { flags, source, immediate, solicited } = message;
    qp.recvCq.push(qp, source, receives.wrId, fault, WcOpcode.RECV, flags, length, immediate, solicited);
  }

  /** Takes the data of a write, which come into memory later. */
  #placeLater(region: MappedRegion, at: number, { requester, request }: Transit): void {
    const { simulator, shared } = this.#context;
    const { length } = local;
    const data = new Mapping(new ArrayBuffer(8 * Math.ceil(length / 8)));
    gather(data, 0);
    this.lastPlaced = Math.max(this.lastPlaced, simulator.now + shared.faults.drawPlacement());
    this.#context.placeAt(this.lastPlaced, region, () => {
      copyBytes(region.memory.mapping, at, data, 0, length);
      requester.tookEffect(request);
    });
  }

  #read(w: number, transit: Transit): number {
    if (this.maxDestRdAtomic === 0) return this.#accuse('QP_REQ_ERR', WcStatus.REM_INV_REQ_ERR);
    const { bytes } = transit;
    if (bytes === 0) return WcStatus.SUCCESS;
    const { ring } = transit.requester;
    const region = this.#findRegion(ring, w, bytes, Access.REMOTE_READ);
    if (region === undefined) return this.#accuse('QP_ACCESS_ERR', WcStatus.REM_ACCESS_ERR);
    const { mapping, address } = region.memory;
    copyBytes(transit.keep(bytes), 0, mapping, remoteAddress(ring, w) - address, bytes);
    return WcStatus.SUCCESS;
  }

  #atomic(w: number, transit: Transit): number {
    const { ring } = transit.requester;
    const remote = remoteAddress(ring, w);
    if (this.maxDestRdAtomic === 0 || remote % 8 !== 0) return this.#accuse('QP_REQ_ERR', WcStatus.REM_INV_REQ_ERR);
    const region = this.#findRegion(ring, w, 8, Access.REMOTE_ATOMIC);
    if (region === undefined) return this.#accuse('QP_ACCESS_ERR', WcStatus.REM_ACCESS_ERR);
    const { mapping, address } = region.memory;
    const found = transit.keep(8);
    copyBytes(found, 0, mapping, remote - address, 8);
    const { u32 } = ring;
    const operand = w + WrField.COMPARE_ADD;
    const lo = found.i32[0] >>> 0;
    const hi = found.i32[1] >>> 0;
    // 64 bits in halves: a carry at most.
    if (transit.opcode === WrOpcode.ATOMIC_FETCH_AND_ADD) {
      const sum = lo + u32[operand];
      found.i32[2] = sum | 0;
      found.i32[3] = (hi + u32[operand + 1] + (sum >= 2 ** 32 ? 1 : 0)) | 0;
    } else if (lo === u32[operand] && hi === u32[operand + 1]) {
      found.i32[2] = u32[w + WrField.SWAP] | 0;
      found.i32[3] = u32[w + WrField.SWAP + 1] | 0;
    } else return WcStatus.SUCCESS;
    copyBytes(mapping, remote - address, found, 8, 8);
    this.#context.stored();
    if (found.i32[2] !== found.i32[0] || found.i32[3] !== found.i32[1]) this.#context.simulator.changed();
    return WcStatus.SUCCESS;
  }

  /** The region that the request names, if the request may do there what it wants to. */
  #findRegion(ring: WorkRequestRing, w: number, length: number, right: number): MappedRegion | undefined {
    const region = this.#context.regions.get(ring.u32[w + WrField.RKEY]);
    return region !== undefined &&
      (region.access & this.access & right) !== 0 &&
      region.pd === this.#qp.pd &&
      region.contains(remoteAddress(ring, w), length)
      ? region
      : undefined;
  }

  #takeReceive(): ReceiveQueue | undefined {
    const receives = this.#qp.receiveQueue;
    const { srq } = this.#qp;
    if (!receives.take()) {
      this.#context.hasRefused = true;
      if (srq !== undefined) srq.refused++;
      return undefined;
    }
    srq?.noticeLimit();
    return receives;
  }

  /** Resolves where the receive that was taken puts `length` bytes into `scatter`. @returns the receiver's status */
  #findScatter(receives: ReceiveQueue, length: number): number {
    scatter.clear();
    let left = length;
    for (let i = 0; i < receives.numSge && left > 0; i++) {
      const n = Math.min(receives.length(i), left);
      if (n === 0) continue;
      const address = receives.address(i);
      const region = this.#context.regions.get(receives.lkey(i));
      if (!region?.allows(this.#qp.pd, Access.LOCAL_WRITE, address, n)) return WcStatus.LOC_PROT_ERR;
      scatter.add(region.memory.mapping, address - region.memory.address, n);
      left -= n;
    }
    return left > 0 ? WcStatus.LOC_LEN_ERR : WcStatus.SUCCESS;
  }

  /** The receive that was taken completes. @param ring and slot `w`: the sender's request */
  #received(
    ring: WorkRequestRing,
    w: number,
    receives: ReceiveQueue,
    status: number,
    opcode: number,
    flags: number,
    length: number,
  ): void {
    const qp = this.#qp;
    const immediate = flags === WcFlag.WITH_IMM ? ring.u32[w + WrField.IMM_DATA] : 0;
    const solicited = status !== WcStatus.SUCCESS || (ring.u32[w + WrField.FLAGS] & SendFlag.SOLICITED) !== 0;
    qp.recvCq.push(qp, 0, receives.wrId, status, opcode, flags, length, immediate, solicited);
  }

  /** A request of the other end broke a rule here: this queue pair goes to ERR too. */
  #accuse(event: 'QP_ACCESS_ERR' | 'QP_REQ_ERR', status: number): number {
    this.#context.raise({ type: event, qpNumber: this.#qp.number });
    this.#qp.toError();
    return status;
  }
}

function remoteAddress(ring: WorkRequestRing, w: number): number {
  return ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS];
}
