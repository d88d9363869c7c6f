/**
 * A job as one of its ranks sees it: who the ranks are, the device context, control messages, waiting, and failures.
 */
import { RmaError } from '../errors.ts';
import type { Rendezvous } from '../message/message-connections.ts';
import { Messenger } from '../message/messenger.ts';
import { Blocks } from '../message/word-blocks.ts';
import type { Recorder } from '../trace/recorder.ts';
import type { Context } from '../verbs/device.ts';
import type { Memory, ProtectionDomain } from '../verbs/memory.ts';
import { type Processor, REAL_PROCESSOR } from '../verbs/processor.ts';
import { type Liveness, Progress, type ProgressEngine, type ProgressOptions } from '../wait/progress.ts';
import { TracedProgress } from '../wait/traced-progress.ts';
import { AUTOMATIC_BARRIER, type BarrierChoice } from './barrier-choice.ts';
import { type Control, declareFailed, FailKind, Header, RankState, Slot } from './control-region.ts';
import { Members } from './members.ts';
import type { Membership, TaskTime } from './membership.ts';
import { Origins } from './origins.ts';
import type { RaceWatch } from './race-watch.ts';
import { RankFailures } from './rank-failures.ts';
import { RankLocks } from './rank-locks.ts';
import { isAsked, report } from './reports.ts';

/**
 * If there are more ranks than this and a launcher watches them, they wake less often, so that all together they take a
 * hundredth of a core, however many they are.
 */
const RANKS_AT_FULL_RATE = 6;
/** How long ranks have to end by themselves after an `abort`, where no launcher watches them. */
const ABORT_MS = 1000;
/** Between two looks whether they have. */
const ABORT_LOOK_MS = 10;

export class Job {
  readonly rank: number;
  readonly size: number;
  readonly context: Context;
  readonly pd: ProtectionDomain;
  readonly origins: Origins;
  readonly failures: RankFailures;
  /** All ranks. */
  readonly everyone: Members;
  readonly messenger: Messenger;
  readonly blocks: Blocks;
  readonly progress: ProgressEngine;
  /** Absent where time is that of the clock. */
  readonly tasks: TaskTime | undefined;
  readonly processor: Processor;
  readonly oversubscribed: boolean;
  readonly recorder: Recorder | undefined;
  readonly races: RaceWatch | undefined;
  readonly supersteps: Membership['supersteps'];
  readonly locks = new RankLocks();
  /** The barriers that the program wants. */
  readonly barrier: BarrierChoice;
  /** Library memory by its buffer, so that `Window.create` recognizes it. */
  readonly libraryMemory = new WeakMap<ArrayBufferLike, Memory>();
  #finalized = false;
  #membership: Membership;

  constructor(membership: Membership, timeoutMs: number, barrier = AUTOMATIC_BARRIER) {
    const { rank, size, context, control, recorder, tasks } = membership;
    this.#membership = membership;
    this.barrier = barrier;
    this.tasks = tasks;
    this.processor = tasks?.processor ?? REAL_PROCESSOR;
    this.rank = rank;
    this.size = size;
    this.recorder = recorder;
    this.races = membership.races;
    this.supersteps = membership.supersteps ?? (recorder && { recorder, probes: false });
    this.context = context;
    this.pd = context.allocPd();
    this.blocks = new Blocks(context, this.pd);
    this.origins = new Origins(context, this.pd);
    this.oversubscribed = size > membership.cores;
    this.failures = new RankFailures(membership, {
      failed: (other) => this.messenger.forget(other),
      exit: (code) => this.#exit(code),
      isFinalized: () => this.#finalized,
    });
    this.everyone = new Members(
      this,
      Array.from({ length: size }, (_, other) => other),
    );
    const messages = recorder?.flow('message', '', size);
    const rendezvous = tasks?.rendezvous ?? rendezvousOver(control, context, rank);
    this.messenger = new Messenger(
      context,
      this.pd,
      rank,
      size,
      rendezvous,
      tasks?.messageMemory,
      messages,
      this.processor,
    );
    const liveness: Liveness = {
      inspectPeers: () => this.failures.inspectSome(),
      isAsked: () => isAsked(control, rank),
      report: (waits) => report(control, rank, [...waits, ...this.locks.describe()].join('; and ')),
    };
    const poll = (): void => this.messenger.poll();
    const options: ProgressOptions = {
      timeout: timeoutMs,
      oversubscribed: this.oversubscribed,
      schedYield: membership.schedYield,
      rest: membership.watched ? Math.max(1, size / RANKS_AT_FULL_RATE) : 1,
      expectsCalls: () => !context.capabilities.loadStore && !this.messenger.isComplete,
      isIdle: () => this.messenger.idle,
    };
    if (tasks !== undefined) this.progress = tasks.makeProgress(poll, () => this.messenger.isSilent, timeoutMs);
    else if (recorder === undefined) this.progress = new Progress(context, liveness, poll, options);
    else this.progress = new TracedProgress(recorder, context, liveness, poll, options);
    Atomics.store(control.slots, rank * control.slotWords + Slot.STATE, RankState.JOINED);
    if (Atomics.add(control.header, Header.JOINED, 1) + 1 === size) this.#wakeOthers();
  }

  #wakeOthers(): void {
    if (this.tasks !== undefined) this.tasks.wakeAll();
    else for (let other = 0; other < this.size; other++) if (other !== this.rank) this.context.wake(other);
  }

  /** Refuses a call that would block this thread, on which all other ranks run. */
  refuseSync(call: string): void {
    if (this.tasks === undefined) return;
    throw new RmaError(
      'ERR_RMA_WOULD_DEADLOCK',
      `${call}Sync: all ranks are tasks of one thread, and a blocking call would stop them ` +
        `all; await ${call}() instead`,
    );
  }

  get finalized(): boolean {
    return this.#finalized;
  }

  /** Whether all ranks have joined. */
  get complete(): boolean {
    return Atomics.load(this.#membership.control.header, Header.JOINED) >= this.size;
  }

  /** Ranks that have not joined. */
  get absent(): readonly number[] {
    const { slots, slotWords } = this.#membership.control;
    const ranks = Array.from({ length: this.size }, (_, rank) => rank);
    return ranks.filter((rank) => Atomics.load(slots, rank * slotWords + Slot.STATE) === RankState.ABSENT);
  }

  /** Memory from the library: other ranks may access it once it is part of a window. */
  allocateMemory(bytes: number): Memory {
    const memory = this.context.allocateMemory(bytes);
    this.libraryMemory.set(memory.buffer, memory);
    return memory;
  }

  /** Ends all ranks of the job with this exit code. */
  abort(code: number): never {
    if (this.tasks !== undefined) return this.tasks.abort(code);
    if (this.#finalized) process.exit(code);
    declareFailed(this.#membership.control, this.rank, FailKind.ABORTED, code);
    this.#wakeOthers();
    this.#terminateOthers();
    return this.#exit(code);
  }

  #exit(code: number): never {
    // On several hosts the last words must have left.
    this.#membership.leave();
    process.exit(code);
  }

  /** Where no launcher watches the ranks: asks the ranks to end that have not ended by themselves within a second. */
  #terminateOthers(): void {
    const { alive, terminate, control } = this.#membership;
    if (terminate === undefined) return;
    const left = (): number[] =>
      Array.from({ length: this.size }, (_, rank) => rank).filter((rank) => {
        const state = Atomics.load(control.slots, rank * control.slotWords + Slot.STATE);
        return rank !== this.rank && state === RankState.JOINED && alive(rank);
      });
    const deadline = performance.now() + ABORT_MS;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (left().length > 0 && performance.now() < deadline) Atomics.wait(pause, 0, 0, ABORT_LOOK_MS);
    for (const rank of left()) {
      try {
        terminate(rank);
      } catch {
        // It has ended meanwhile.
      }
    }
  }

  /** Ends what `init` has begun and not completed: the others are told that this rank will not come. */
  giveUp(): void {
    declareFailed(this.#membership.control, this.rank, FailKind.GAVE_UP, 0);
    this.#wakeOthers();
    this.finalize(false);
  }

  /**
   * Leaves the job.
   * @param agreed no other rank needs this one any more. Otherwise it leaves others behind, which must be told when it
   * ends: it does not count as finalized
   */
  finalize(agreed: boolean): void {
    if (this.#finalized) return;
    this.#finalized = true;
    this.progress.close();
    const { control } = this.#membership;
    if (agreed) {
      Atomics.store(control.slots, this.rank * control.slotWords + Slot.STATE, RankState.FINALIZED);
      Atomics.add(control.header, Header.FINALIZED, 1);
    }
    // Tasks that have agreed wait for nothing any more.
    if (this.tasks === undefined || !agreed) this.#wakeOthers();
    this.messenger.close();
    this.blocks.close();
    this.races?.close();
    this.context.close();
    this.#membership.leave();
  }
}

const NOBODY: readonly number[] = [];

function rendezvousOver(control: Control, context: Context, self: number): Rendezvous {
  const { connections, slots, slotWords, size } = control;
  return {
    publish(peer, qpNumber, ready) {
      Atomics.store(connections, control.connectionAt(self, peer), qpNumber * 2 + (ready ? 1 : 0));
      Atomics.store(slots, peer * slotWords + Slot.CONNECT_BELL, 1);
      context.wake(peer);
    },
    lookUp(peer) {
      const word = Atomics.load(connections, control.connectionAt(peer, self));
      return word === 0 ? undefined : { qpNumber: word >>> 1, ready: (word & 1) === 1 };
    },
    hasLeft: (peer) => Atomics.load(slots, peer * slotWords + Slot.STATE) === RankState.FINALIZED,
    callers() {
      const bell = self * slotWords + Slot.CONNECT_BELL;
      if (Atomics.load(slots, bell) === 0) return NOBODY;
      return Atomics.exchange(slots, bell, 0) === 0 ? NOBODY : Array.from({ length: size }, (_, peer) => peer);
    },
  };
}
