/**
 * Carries out the requests of one queue pair: does on this processor what two adapters and a wire do for a device.
 *
 * A request is checked as they would check it, in their order: the local side (keys, ranges, rights), the connection,
 * the remote side (key, domain, range, rights of region and queue pair; a posted receive), and only then is a byte
 * moved. Each check that fails ends in the status that a device reports, and a fault that the responder's adapter would
 * find puts its queue pair into ERR.
 *
 * The peer's tables are read on the way with loads that are plain on x86 (memory-model.ts). What is read are single
 * words, never torn. That they are recent enough follows from how the two sides learn of each other: keys and queue
 * pair numbers reach this side by messages after they were published, and a peer that takes something back while a
 * request is under way races with it on a device too.
 *
 * Stores into remote memory are plain. `publish`, an atomic store, ends each doorbell: what came before is then visible
 * to all processors, which is the capability `immediateCompletion`. Requests of one doorbell become visible in order on
 * x86-64, whose stores keep their order.
 */
import { loadAcquire } from '../../memory-model.ts';
import { WcFlag, WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { Access } from '../../verbs/memory.ts';
import { QpState, SendFlag, WrOpcode } from '../../verbs/queue-pair.ts';
import { type WorkRequestRing, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import { LocalSide } from '../core/local-side.ts';
import { copyBytes, copyPieces, Mapping, Pieces } from '../core/mapped-memory.ts';
import { CompletionRing } from './completion-ring.ts';
import type { EmulatedParent, EmulatedPd } from './emulator-parent.ts';
import type { Attached, Peer, PeerRegion } from './peer.ts';
import { QpEvent, QpField, QpField64, type QpRows, rowOf } from './qp-table.ts';
import { NO_RECEIVE, ReceiveRing } from './receive-ring.ts';
import { findScatter } from './scatter.ts';

/** What `execute` returns, besides a `WcStatus`, when the peer has posted no receive. */
export const NOT_READY = -1;

/** The same for a wait that is not over. */
export const WAITS = -2;

/** One result of an atomic, as a word and as a piece of memory. */
const RESULT = new Mapping(new ArrayBuffer(8));
/** The table of no context: every state is RESET. */
const NO_ROWS = new Int32Array(QpField.EVENTS + 1);
/** A place of no meaning, to store to. */
const ANYWHERE = new Int32Array(new SharedArrayBuffer(4));

/** Makes everything stored before visible to all processors before anything is loaded after. */
export function publish(): void {
  Atomics.store(ANYWHERE, 0, 0);
}

export class EmulatorRequester {
  readonly #context: EmulatedParent;
  readonly #number: number;
  readonly #ring: WorkRequestRing;
  readonly #ringMapping: Mapping;
  /** Operands of atomics: 64-bit words of the ring. */
  readonly #operands: BigInt64Array;
  readonly #source: LocalSide;
  /** What the request gathers from or scatters to. */
  readonly #local: Pieces;

  // The connection.
  #peer: Peer | undefined;
  #destNumber = 0;
  #maxRdAtomic = 0;
  /** Of the peer's queue pair table, and the row of the one at the other end. */
  #rows: QpRows | undefined;
  #table: Int32Array = NO_ROWS;
  #row = 0;
  #remoteRegion: PeerRegion | undefined;
  // What two-sided requests need, attached at the first.
  #receives: ReceiveRing | undefined;
  #completions: CompletionRing | undefined;
  #scatter: Pieces | undefined;
  #attached: Attached[] = [];

  constructor(context: EmulatedParent, number: number, pd: EmulatedPd, ring: WorkRequestRing) {
    this.#context = context;
    this.#number = number;
    this.#ring = ring;
    this.#source = new LocalSide(context.regions, pd, ring);
    this.#ringMapping = this.#source.ringMapping;
    this.#operands = this.#ringMapping.i64;
    this.#local = this.#source.pieces;
  }

  /** @param peer `undefined` if there is no context at that place: then no request will find a peer */
  connect(peer: Peer | undefined, destNumber: number): void {
    this.#peer = peer;
    this.#destNumber = destNumber;
    if (peer !== undefined) this.#findRow();
  }

  /** Where the other end's row is; it is nowhere if the peer has never had that number. */
  #findRow(): void {
    this.#rows = this.#peer!.root.queuePairs.rows(this.#destNumber);
    this.#table = this.#rows?.words ?? NO_ROWS;
    this.#row = this.#rows === undefined ? 0 : rowOf(this.#destNumber);
  }

  limitReads(maxRdAtomic: number): void {
    this.#maxRdAtomic = maxRdAtomic;
  }

  disconnect(): void {
    for (const attached of this.#attached) this.#peer!.detach(attached);
    this.#attached = [];
    this.#peer = undefined;
    this.#rows = undefined;
    this.#table = NO_ROWS;
    this.#row = 0;
    this.#remoteRegion = undefined;
    this.#receives = undefined;
    this.#completions = undefined;
    this.#scatter = undefined;
  }

  /** Milliseconds after which a request that found no receive may be tried again. */
  get rnrDelay(): number {
    return this.#table[this.#row + QpField.RNR_TIMER_US] / 1000;
  }

  /** Carries out the request in slot `w`. @returns its `WcStatus`, or `NOT_READY`: then nothing has happened */
  execute(w: number): number {
    switch (this.#ring.u32[w + WrField.OPCODE]) {
      case WrOpcode.RDMA_WRITE:
        return this.#write(w);
      case WrOpcode.RDMA_WRITE_WITH_IMM:
        return this.#writeWithImm(w);
      case WrOpcode.RDMA_READ:
        return this.#read(w);
      case WrOpcode.WAIT:
        return this.#wait(w);
      case WrOpcode.SEND:
        return this.#send(w, 0);
      case WrOpcode.SEND_WITH_IMM:
        return this.#send(w, WcFlag.WITH_IMM);
      default:
        return this.#atomic(w);
    }
  }

  #wait(w: number): number {
    const awaited = this.#source.awaited(w);
    if (awaited === undefined) return WcStatus.LOC_PROT_ERR;
    // Sequentially consistent: the requests behind it see all that came before the word was written.
    const word = Atomics.load(awaited.region.memory.mapping.i32, awaited.at);
    return ((word - this.#ring.u32[w + WrField.IMM_DATA]) | 0) >= 0 ? WcStatus.SUCCESS : WAITS;
  }

  #write(w: number): number {
    const status = this.#source.find(w, 0);
    if (status !== WcStatus.SUCCESS) return status;
    if (!this.#isConnected()) return WcStatus.RETRY_EXC_ERR;
    const { length } = this.#local;
    // A key is not looked at when there is nothing to access (InfiniBand 1.3, C9-88).
    if (length === 0) return WcStatus.SUCCESS;
    const region = this.#findRemote(w, length, Access.REMOTE_WRITE);
    if (region === undefined) return this.#accuse(QpEvent.ACCESS, WcStatus.REM_ACCESS_ERR);
    this.#copyOut(w, region, length);
    return WcStatus.SUCCESS;
  }

  #writeWithImm(w: number): number {
    const status = this.#source.find(w, 0);
    if (status !== WcStatus.SUCCESS) return status;
    if (!this.#isConnected() || !this.#openReceives()) return WcStatus.RETRY_EXC_ERR;
    const { length } = this.#local;
    let region: PeerRegion | undefined;
    if (length > 0) {
      region = this.#findRemote(w, length, Access.REMOTE_WRITE);
      if (region === undefined) return this.#accuse(QpEvent.ACCESS, WcStatus.REM_ACCESS_ERR);
    }
    if (!this.#consume()) return NOT_READY;
    if (region !== undefined) this.#copyOut(w, region, length);
    this.#deliver(w, WcStatus.SUCCESS, WcOpcode.RECV_RDMA_WITH_IMM, WcFlag.WITH_IMM, length);
    return WcStatus.SUCCESS;
  }

  #read(w: number): number {
    const status = this.#source.find(w, Access.LOCAL_WRITE);
    if (status !== WcStatus.SUCCESS) return status;
    if (this.#maxRdAtomic === 0) return WcStatus.LOC_QP_OP_ERR;
    if (!this.#isConnected()) return WcStatus.RETRY_EXC_ERR;
    if (!this.#servesReads()) return this.#accuse(QpEvent.REQUEST, WcStatus.REM_INV_REQ_ERR);
    const local = this.#local;
    if (local.length === 0) return WcStatus.SUCCESS;
    const region = this.#findRemote(w, local.length, Access.REMOTE_READ);
    if (region === undefined) return this.#accuse(QpEvent.ACCESS, WcStatus.REM_ACCESS_ERR);
    let at = this.#ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS] + region.shift;
    for (let i = 0; i < local.count; i++) {
      copyBytes(local.mappings[i], local.offsets[i], region.mapping, at, local.lengths[i]);
      at += local.lengths[i];
    }
    return WcStatus.SUCCESS;
  }

  #atomic(w: number): number {
    const status = this.#source.find(w, Access.LOCAL_WRITE);
    if (status !== WcStatus.SUCCESS) return status;
    const local = this.#local;
    if (local.length !== 8) return WcStatus.LOC_LEN_ERR;
    if (this.#maxRdAtomic === 0) return WcStatus.LOC_QP_OP_ERR;
    if (!this.#isConnected()) return WcStatus.RETRY_EXC_ERR;
    const address = this.#ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS];
    // The low bits survive the conversion to 32 of them.
    if (!this.#servesReads() || (address & 7) !== 0) return this.#accuse(QpEvent.REQUEST, WcStatus.REM_INV_REQ_ERR);
    const region = this.#findRemote(w, 8, Access.REMOTE_ATOMIC);
    if (region === undefined) return this.#accuse(QpEvent.ACCESS, WcStatus.REM_ACCESS_ERR);
    // Memory begins at page-aligned addresses, so the place in the mapping is aligned too. 64-bit words go from array
    // to array: compiled code keeps such values in registers and makes no BigInt of them.
    const words = region.mapping.i64;
    const i = (address + region.shift) / 8;
    const operands = this.#operands;
    const o = (w >>> 1) + WrField64.COMPARE_ADD;
    RESULT.i64[0] =
      this.#ring.u32[w + WrField.OPCODE] === WrOpcode.ATOMIC_FETCH_AND_ADD
        ? Atomics.add(words, i, operands[o])
        : Atomics.compareExchange(words, i, operands[o], operands[o + 1]);
    let at = 0;
    for (let k = 0; k < local.count; k++) {
      copyBytes(local.mappings[k], local.offsets[k], RESULT, at, local.lengths[k]);
      at += local.lengths[k];
    }
    return WcStatus.SUCCESS;
  }

  #send(w: number, flags: number): number {
    const status = this.#source.find(w, 0);
    if (status !== WcStatus.SUCCESS) return status;
    if (!this.#isConnected() || !this.#openReceives()) return WcStatus.RETRY_EXC_ERR;
    if (!this.#consume()) return NOT_READY;
    const { length } = this.#local;
    const receiver = findScatter(
      this.#peer!,
      this.#table[this.#row + QpField.PD],
      this.#receives!,
      this.#scatter!,
      length,
    );
    if (receiver !== WcStatus.SUCCESS) {
      // The receive that was consumed completes with what went wrong at its end, and takes its queue pair along. Its
      // owner flushes the receives behind it when its attention is called: after this completion.
      const peer = this.#peer!;
      this.#rows!.toError(this.#row);
      this.#deliver(w, receiver, WcOpcode.RECV, 0, 0);
      peer.callAttention();
      return receiver === WcStatus.LOC_LEN_ERR ? WcStatus.REM_INV_REQ_ERR : WcStatus.REM_OP_ERR;
    }
    if (length > 0) copyPieces(this.#scatter!, this.#local, length);
    this.#deliver(w, WcStatus.SUCCESS, WcOpcode.RECV, flags, length);
    return WcStatus.SUCCESS;
  }

  // ---- the connection -----------------------------------------------------------------------------------------------

  /** Whether the other end is there, connected to this queue pair, and takes requests. */
  #isConnected(): boolean {
    if (this.#peer === undefined) return false;
    if (this.#rows === undefined) this.#findRow();
    const table = this.#table;
    const row = this.#row;
    const state = loadAcquire(table, row + QpField.STATE);
    return (
      (state === QpState.RTS || state === QpState.RTR) &&
      table[row + QpField.NUMBER] === this.#destNumber &&
      table[row + QpField.DEST_NUMBER] === this.#number &&
      table[row + QpField.DEST_MEMBER] === this.#context.member
    );
  }

  /** Attaches the other end's receives and the queue of their completions; `false` if it is gone. */
  #openReceives(): boolean {
    if (this.#completions !== undefined) return true;
    const table = this.#table;
    const row = this.#row;
    const { doubles } = this.#rows!;
    const d = row / 2;
    const receives = this.#attach(doubles[d + QpField64.RECV_HANDLE], doubles[d + QpField64.RECV_BYTES]);
    const completions = this.#attach(doubles[d + QpField64.CQ_HANDLE], doubles[d + QpField64.CQ_BYTES]);
    if (receives === undefined || completions === undefined) return false;
    const maxSge = table[row + QpField.RECV_SGE];
    this.#receives = new ReceiveRing(receives.buffer, table[row + QpField.RECV_WR], maxSge);
    this.#scatter = new Pieces(maxSge, this.#ringMapping);
    this.#completions = new CompletionRing(completions.buffer, table[row + QpField.CQE]);
    return true;
  }

  #attach(handle: number, byteLength: number): Mapping | undefined {
    const attached = this.#peer!.attach(handle, byteLength);
    if (attached !== undefined) this.#attached.push(attached);
    return attached?.mapping;
  }

  // ---- the remote side ----------------------------------------------------------------------------------------------

  #servesReads(): boolean {
    return this.#table[this.#row + QpField.MAX_DEST_RD_ATOMIC] > 0;
  }

  /** The region that the request names, if the request may do there what it wants to. */
  #findRemote(w: number, length: number, right: number): PeerRegion | undefined {
    const key = this.#ring.u32[w + WrField.RKEY];
    let region = this.#remoteRegion;
    if (region === undefined || region.gone || region.key !== key || !region.isHeld) {
      region = this.#peer!.region(key);
      if (region === undefined) return undefined;
      this.#remoteRegion = region;
    }
    const table = this.#table;
    const row = this.#row;
    const address = this.#ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS];
    return (region.access & table[row + QpField.ACCESS] & right) !== 0 &&
      region.pd === table[row + QpField.PD] &&
      region.contains(address, length)
      ? region
      : undefined;
  }

  #copyOut(w: number, region: PeerRegion, length: number): void {
    const local = this.#local;
    let at = this.#ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS] + region.shift;
    if (local.count === 1) {
      copyBytes(region.mapping, at, local.mappings[0], local.offsets[0], length);
      return;
    }
    for (let i = 0; i < local.count; i++) {
      copyBytes(region.mapping, at, local.mappings[i], local.offsets[i], local.lengths[i]);
      at += local.lengths[i];
    }
  }

  /** Takes a receive of the other end into `#receives`; `false` if none is posted. */
  #consume(): boolean {
    const receives = this.#receives!;
    const left = receives.consume();
    if (left === NO_RECEIVE) return false;
    if (this.#table[this.#row + QpField.SHARED] !== 0 && receives.passedLimit(left)) this.#peer!.callAttention();
    return true;
  }

  /**
   * Puts the completion of the receive that was consumed into the other end's queue, and wakes the peer if it asked for
   * that.
   */
  #deliver(w: number, status: number, opcode: number, flags: number, length: number): void {
    const { u32 } = this.#ring;
    const completions = this.#completions!;
    const imm = flags === WcFlag.WITH_IMM ? u32[w + WrField.IMM_DATA] : 0;
    if (!completions.push(this.#receives!.wrId, status, opcode, flags, length, imm, this.#destNumber)) {
      this.#peer!.callAttention();
      return;
    }
    const solicited = status !== WcStatus.SUCCESS || (u32[w + WrField.FLAGS] & SendFlag.SOLICITED) !== 0;
    if (completions.takeArmed(solicited)) this.#peer!.wakeFor(completions);
  }

  /** The request broke a rule at the other end: that queue pair goes to ERR too. */
  #accuse(event: number, status: number): number {
    const peer = this.#peer!;
    this.#rows!.accuse(this.#row, event);
    peer.callAttention();
    return status;
  }
}
