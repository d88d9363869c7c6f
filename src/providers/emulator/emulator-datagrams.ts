/**
 * Carries out the requests of a queue pair of type UD: does on this processor what the sender's adapter, the switches
 * and the receivers' adapters do with a datagram.
 *
 * The receiver of a datagram is looked up in the tables of its context (qp-table.ts); the receivers in a group are
 * looked up in those of all contexts (group-table.ts), one after the other. Each receiver gets a copy, by the same
 * steps as a message of a connection: a receive is claimed, filled, and completed. Claims and completions are made for
 * any number of initiators (receive-ring.ts, completion-ring.ts), so senders need not know of each other. Whatever is
 * missing at a receiver (queue pair, state, key, receive) drops the datagram there, and the sender learns nothing of
 * it.
 *
 * What is mapped of a receiver's memory is kept under the number of its queue pair, which does not soon become another
 * one's. It is let go when the number does not belong to that queue pair any more, or when the sender is reset or
 * destroyed.
 */
import { loadAcquire } from '../../memory-model.ts';
import { GRH_BYTES } from '../../verbs/address-handle.ts';
import { WcFlag, WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { parseGid } from '../../verbs/gid.ts';
import { QpState, QpType, SendFlag, WrOpcode } from '../../verbs/queue-pair.ts';
import { type WorkRequestRing, WrField } from '../../verbs/work-request-ring.ts';
import type { AddressHandleCore } from '../core/address-handles.ts';
import { writeGrh } from '../core/grh.ts';
import { LocalSide } from '../core/local-side.ts';
import { copyPieces, Mapping, Pieces } from '../core/mapped-memory.ts';
import { CompletionRing } from './completion-ring.ts';
import { DEVICE } from './emulator-limits.ts';
import type { EmulatedParent, EmulatedPd } from './emulator-parent.ts';
import type { Attached, Peer } from './peer.ts';
import { QpField, QpField64, type QpRows, rowOf } from './qp-table.ts';
import { NO_RECEIVE, ReceiveRing } from './receive-ring.ts';
import { findScatter } from './scatter.ts';

/** A queue pair that datagrams go to, and what is mapped of it. */
interface Receiver {
  readonly peer: Peer;
  readonly number: number;
  readonly rows: QpRows;
  readonly row: number;
  readonly receives: ReceiveRing;
  readonly completions: CompletionRing;
  readonly scatter: Pieces;
  readonly attached: readonly Attached[];
}

export class DatagramRequester {
  /** Nothing waits for a receive. */
  readonly rnrDelay = 0;
  readonly #context: EmulatedParent;
  readonly #number: number;
  readonly #ring: WorkRequestRing;
  readonly #source: LocalSide;
  /** The header and the data. */
  readonly #message: Pieces;
  readonly #grh = new Mapping(new ArrayBuffer(GRH_BYTES));
  readonly #gid: Uint32Array;
  readonly #receivers = new Map<number, Receiver>();

  constructor(context: EmulatedParent, number: number, pd: EmulatedPd, ring: WorkRequestRing) {
    this.#context = context;
    this.#number = number;
    this.#ring = ring;
    this.#source = new LocalSide(context.regions, pd, ring);
    this.#message = new Pieces(1 + Math.max(1, ring.maxSge), this.#grh);
    this.#gid = parseGid('open a device', context.gid);
  }

  /** It is never connected. */
  connect(): void {}

  limitReads(): void {}

  disconnect(): void {
    for (const receiver of this.#receivers.values()) this.#letGo(receiver);
    this.#receivers.clear();
  }

  /** Sends the datagram in slot `w`. @returns its `WcStatus` */
  execute(w: number): number {
    const ring = this.#ring;
    const status = this.#source.find(w, 0);
    if (status !== WcStatus.SUCCESS) return status;
    const data = this.#source.pieces;
    if (data.length > DEVICE.mtu) return WcStatus.LOC_LEN_ERR;
    const handle = this.#context.handles.get(ring.u32[w + WrField.AH]);
    // Destroyed since it was named.
    if (handle === undefined) return WcStatus.LOC_QP_OP_ERR;
    this.#wrap(data, handle);
    if (!handle.isMulticast) {
      this.#sendTo(w, handle.member, ring.u32[w + WrField.REMOTE_QPN]);
      return WcStatus.SUCCESS;
    }
    const { size } = this.#context.fabric;
    for (let member = 0; member < size; member++) {
      const groups = this.#context.peer(member)?.root.groups;
      if (groups === undefined) continue;
      for (let i = groups.count - 1; i >= 0; i--) {
        const number = groups.attached(i, handle.words);
        if (number !== 0) this.#sendTo(w, member, number);
      }
    }
    return WcStatus.SUCCESS;
  }

  /** Puts the header in front of the data. */
  #wrap(data: Pieces, handle: AddressHandleCore): void {
    const message = this.#message;
    message.clear();
    writeGrh(this.#grh.u8, data.length, this.#gid, handle.words);
    message.add(this.#grh, 0, GRH_BYTES);
    for (let i = 0; i < data.count; i++) message.add(data.mappings[i], data.offsets[i], data.lengths[i]);
  }

  #sendTo(w: number, member: number, number: number): void {
    const receiver = this.#receiver(member, number);
    if (receiver === undefined) return;
    const { peer, rows, row, receives } = receiver;
    const { words } = rows;
    const state = loadAcquire(words, row + QpField.STATE);
    if (state !== QpState.RTS && state !== QpState.RTR) return;
    if (words[row + QpField.QKEY] !== this.#ring.u32[w + WrField.REMOTE_QKEY]) return;
    const left = receives.consume();
    if (left === NO_RECEIVE) return;
    if (words[row + QpField.SHARED] !== 0 && receives.passedLimit(left)) peer.callAttention();
    const status = findScatter(peer, words[row + QpField.PD], receives, receiver.scatter, this.#message.length);
    if (status !== WcStatus.SUCCESS) {
      // As in a connection: the receive completes with what went wrong, its queue pair flushes those behind it.
      rows.toError(row);
      this.#complete(w, receiver, status, 0, 0);
      peer.callAttention();
      return;
    }
    const message = this.#message;
    copyPieces(receiver.scatter, message, message.length);
    const immediate = this.#ring.u32[w + WrField.OPCODE] === WrOpcode.SEND_WITH_IMM ? WcFlag.WITH_IMM : 0;
    this.#complete(w, receiver, status, WcFlag.GRH | immediate, message.length);
  }

  /** A queue pair of type UD, if there is one of this number. */
  #receiver(member: number, number: number): Receiver | undefined {
    const key = member * 2 ** 24 + number;
    const known = this.#receivers.get(key);
    if (known !== undefined) {
      const { root } = known.peer;
      if (root.isOpen && loadAcquire(known.rows.words, known.row + QpField.NUMBER) === number) return known;
      this.#letGo(known);
      this.#receivers.delete(key);
    }
    const peer = this.#context.peer(member);
    if (peer === undefined) return undefined;
    const rows = peer.root.queuePairs.rows(number);
    if (rows === undefined) return undefined;
    const { words, doubles } = rows;
    const row = rowOf(number);
    if (loadAcquire(words, row + QpField.NUMBER) !== number || words[row + QpField.TYPE] !== QpType.UD)
      return undefined;
    const d = row / 2;
    const receives = peer.attach(doubles[d + QpField64.RECV_HANDLE], doubles[d + QpField64.RECV_BYTES]);
    const completions = peer.attach(doubles[d + QpField64.CQ_HANDLE], doubles[d + QpField64.CQ_BYTES]);
    const attached = [receives, completions].filter((one) => one !== undefined);
    if (receives === undefined || completions === undefined) {
      for (const one of attached) peer.detach(one);
      return undefined;
    }
    const maxSge = words[row + QpField.RECV_SGE];
    const receiver = {
      ...{ peer, number, rows, row, attached },
      receives: new ReceiveRing(receives.mapping.buffer, words[row + QpField.RECV_WR], maxSge),
      completions: new CompletionRing(completions.mapping.buffer, words[row + QpField.CQE]),
      scatter: new Pieces(maxSge, this.#grh),
    };
    this.#receivers.set(key, receiver);
    return receiver;
  }

  #letGo({ peer, attached }: Receiver): void {
    for (const one of attached) peer.detach(one);
  }

  #complete(
    w: number,
    { peer, number, receives, completions }: Receiver,
    status: number,
    flags: number,
    n: number,
  ): void {
    const { u32 } = this.#ring;
    const imm = (flags & WcFlag.WITH_IMM) === 0 ? 0 : u32[w + WrField.IMM_DATA];
    if (!completions.push(receives.wrId, status, WcOpcode.RECV, flags, n, imm, number, this.#number)) {
      peer.callAttention();
      return;
    }
    const solicited = status !== WcStatus.SUCCESS || (u32[w + WrField.FLAGS] & SendFlag.SOLICITED) !== 0;
    if (completions.takeArmed(solicited)) peer.wakeFor(completions);
  }
}
