/** What a bootstrap gives a job: who the ranks are, what they share, and how time passes. */

import type { Rendezvous } from '../message/message-connections.ts';
import type { MessageMemory } from '../message/messenger.ts';
import type { Recorder } from '../trace/recorder.ts';
import type { ReportRequest } from '../trace/trace-request.ts';
import type { Recording } from '../trace/trace-ring.ts';
import type { Context } from '../verbs/device.ts';
import type { Processor } from '../verbs/processor.ts';
import type { ProgressEngine } from '../wait/progress.ts';
import type { VainLooks } from '../wait/vain-looks.ts';
import type { Control } from './control-region.ts';
import type { RaceWatch } from './race-watch.ts';

/** What a bootstrap (launched processes, threads, a named job, alone) provides. */
export interface Membership {
  readonly rank: number;
  readonly size: number;
  readonly control: Control;
  readonly context: Context;
  /** For messages: `process 1234`, `thread 3`. */
  describe(rank: number): string;
  /** Whether the rank's process still runs; `true` where only the launcher can know. */
  alive(rank: number): boolean;
  /** Whether a launcher watches the ranks: it knows better than their peers how one ended. */
  readonly watched: boolean;
  /** Whether ranks may be on other hosts, where no process here sees whether they live. */
  readonly distant?: boolean;
  /** Gives processor time to others, where that can be asked for. */
  schedYield?: (() => void) | undefined;
  /** Ranks that share this host's cores. */
  readonly cores: number;
  /** Records this rank's run, if the job is traced. */
  readonly recorder?: Recorder | undefined;
  /** Sees its calls, if races are searched for. */
  readonly races?: RaceWatch | undefined;
  /** Where its supersteps are recorded, if that was asked for, and whether the machine must be measured first. */
  readonly supersteps?: RecordedSupersteps | undefined;
  /** Where ranks are tasks, in virtual time. */
  readonly tasks?: TaskTime;
  /**
   * Asks the process of a rank to end. Where no launcher watches the ranks, `abort` does this with ranks that go on.
   */
  terminate?(rank: number): void;
  /** Lets go of everything; called once. */
  leave(): void;
}

/** How supersteps are recorded. */
export interface RecordedSupersteps {
  readonly recorder: Recorder;
  readonly probes: boolean;
  /** Where this rank may have to write the report itself, since no launcher of ours does. */
  readonly report?: OwnReport | undefined;
}

/** A report that ranks write. */
export interface OwnReport {
  readonly request: ReportRequest;
  /** Writes it, and returns what there is to say; set by the first computation that begins. */
  write: ((recordings: readonly Recording[]) => string) | undefined;
}

/** What is different where ranks are tasks of one process, and time is virtual. */
export interface TaskTime {
  /** Virtual microseconds, by this rank's processor. */
  now(): number;
  /** Passes virtual time on this rank's processor. */
  compute(microseconds: number): Promise<void>;
  /** @param isIdle whether nothing is under way that `poll` brings on */
  makeProgress(poll: () => void, isIdle: () => boolean, timeoutMs: number): ProgressEngine;
  /** Looks that find nothing, and which no wait follows. */
  readonly vainLooks: VainLooks;
  /** Has all other ranks look whether something has changed. */
  wakeAll(): void;
  /** Ends the run, and with it all ranks; throws. */
  abort(code: number): never;
  /** Where this rank reports what takes its processor time. */
  readonly processor: Processor;
  readonly rendezvous: Rendezvous;
  readonly messageMemory: MessageMemory;
  readonly registry: Registry;
  /** Of the run: from it comes all that is random. */
  readonly seed: number;
}

/**
 * Where ranks of one process find what the others have made for a window, so that connections need not be made before
 * they are used.
 */
export interface Registry {
  /** @param space the same number at all ranks for one thing, and for no other */
  offer(space: number, rank: number, what: object): void;
  find(space: number, rank: number): object | undefined;
  withdraw(space: number, rank: number): void;
  /**
   * One copy of what several ranks have computed alike: that of the first that comes.
   * @param rank one of them, the same at all
   * @param members how many they are; each calls it once
   */
  share<V extends object>(space: number, rank: number, members: number, value: V): V;
}
