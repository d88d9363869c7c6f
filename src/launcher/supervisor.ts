/**
 * Watches the ranks of one job, of whatever kind, and decides how the job ends: the first failure ends it.
 *
 * A rank that exits with a code other than 0, or by a signal, is declared failed in the control memory and all ranks
 * are woken, so that every rank that waits for it gets `ERR_RMA_RANK_FAILED`. The others have a time of grace to end by
 * themselves, then they are asked to (SIGTERM), and a second later killed.
 *
 * A rank that exits with 0 and has not finalized is declared failed as well, because others may wait for it for ever;
 * but that alone does not end the job: only if another rank that had joined then fails is the missing `finalize()`
 * reported as the cause.
 *
 * With `keepGoing`, failures are declared in the same way, and nothing else: the ranks go on until all have ended. The
 * job has ended well if any rank did.
 *
 * When the job's time is up, the ranks are asked what they wait in (reports.ts) before they are told to end.
 *
 * Peers may notice a death before this process does, fail because of it, and be collected first or in the same turn of
 * the event loop. Therefore the verdict waits until the turn is over, and the rank that FAILED in the control memory
 * names is given a moment to be collected. One that has noted itself how it ends (an `abort`, a code of more than eight
 * bits) is the cause also where it takes longer to end than that.
 */
import { constants } from 'node:os';
import { type Control, declareFailed, FailKind, Header, RankState, Slot } from '../job/control-region.ts';
import { askForReports, reportOf } from '../job/reports.ts';
import type { JobFailure, JobResult } from './job-start.ts';

/** How one rank ended. */
export interface Ending {
  readonly code: number;
  readonly signal?: NodeJS.Signals;
}

/** What a supervisor can do to ranks. */
export interface Ranks {
  /** Processes: sends the signal. Threads: terminates the worker, whatever the signal. */
  signal(rank: number, signal: NodeJS.Signals): void;
  /** For messages: `pid 1234`, `thread 3`. */
  describe(rank: number): string;
  /** Why a rank has not been started yet, in words behind its name; `undefined` if it has. */
  unstarted?(rank: number): string | undefined;
}

/** Milliseconds between SIGTERM and SIGKILL. */
const KILL_AFTER = 1000;
/** Milliseconds that a rank which peers found gone has until its own end is known here. */
const COLLECT_WITHIN = 500;
/**
 * Milliseconds that ranks have to say what they wait in when the job's time is up, and from one look at what they say
 * to the next.
 */
const ANSWER_WITHIN = 500;
const ANSWER_EVERY = 10;

export interface SupervisorOptions {
  /** Seconds. */
  readonly grace?: number | undefined;
  readonly timeout?: number | undefined;
  readonly keepGoing?: boolean;
  /** Milliseconds that ranks have to say what they wait in, if that takes longer than on one host. */
  readonly answerWithin?: number;
}

export class Supervisor {
  /** Settles when every rank has ended. */
  readonly done: Promise<JobResult>;
  readonly #control: Control;
  readonly #wake: () => void;
  readonly #ranks: Ranks;
  readonly #graceMs: number;
  readonly #keepGoing: boolean;
  readonly #answerWithin: number;
  readonly #endings: (Ending | undefined)[];
  readonly #failing: number[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();
  #running: number;
  /** Lines to follow the message. */
  #details = '';
  #judging = false;
  #patience: 'none' | 'waiting' | 'over' = 'none';
  #stopping = false;
  /** Ranks that were running when the time of grace was over. */
  readonly #told = new Set<number>();
  /** A signal has stopped it: the next one kills. */
  #interrupted = false;
  #killed = false;
  #verdict:
    | { readonly exitCode: number; readonly failure: JobFailure; readonly named: number[] | undefined }
    | undefined;
  #finish!: (result: JobResult) => void;

  /** @param wake wakes every rank that sleeps, after the control memory has changed */
  constructor(control: Control, ranks: Ranks, wake: () => void, options: SupervisorOptions) {
    const { size } = control;
    this.#answerWithin = options.answerWithin ?? ANSWER_WITHIN;
    this.#control = control;
    this.#ranks = ranks;
    this.#wake = wake;
    this.#graceMs = (options.grace ?? 2) * 1000;
    this.#keepGoing = options.keepGoing === true;
    this.#endings = new Array<Ending | undefined>(size).fill(undefined);
    this.#running = size;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
    if (options.timeout !== undefined) this.#after(options.timeout * 1000, () => this.#timedOut(options.timeout!));
  }

  /** Whether it is decided that the job fails: no more ranks may be started. */
  get concluded(): boolean {
    return this.#verdict !== undefined;
  }

  /** To be called once for each rank, when it has ended. */
  ended(rank: number, ending: Ending): void {
    if (this.#endings[rank] !== undefined) return;
    this.#endings[rank] = ending;
    this.#running--;
    const { signal } = ending;
    const code = this.#codeOf(rank);
    if (signal !== undefined) this.#declare(rank, FailKind.SIGNAL, constants.signals[signal]);
    else if (code !== 0) this.#declare(rank, FailKind.EXIT_CODE, code);
    else if (this.#state(rank) !== RankState.FINALIZED) this.#declare(rank, FailKind.NO_FINALIZE, 0);
    if (failed(ending)) {
      this.#failing.push(rank);
      // After an interruption no rank is to blame, but a rank that stays although others are gone is stopped all the
      // same.
      if (this.#verdict !== undefined) this.#stopAfter(this.#graceMs);
    }
    if (this.#failing.length > 0 || this.#running === 0) this.#judgeSoon();
  }

  /**
   * This process was told to stop: passes the signal on; the second time kills. Before Ctrl-C is passed on, ranks that
   * wait say what for: they cannot any more when the signal has come.
   */
  interrupt(signal: NodeJS.Signals): void {
    if (this.#interrupted) {
      this.#killed = true;
      this.#signalAll('SIGKILL');
      return;
    }
    this.#interrupted = true;
    const running = this.#running;
    const asks = signal === 'SIGINT' && this.#verdict === undefined && this.#hasJoined();
    this.#conclude(128 + constants.signals[signal], {
      kind: 'interrupted',
      message: `interrupted by ${signal} while ${running === 1 ? '1 rank was' : `${running} ranks were`} running`,
    });
    if (!asks) {
      this.#signalAll(signal);
      return;
    }
    this.#ask((ranks) => {
      const hangs = ranks.some((rank) => reportOf(this.#control, rank) !== undefined);
      if (hangs) this.#details = `:${this.#inWords(ranks)}`;
      if (!this.#killed) this.#signalAll(signal);
    });
  }

  #hasJoined(): boolean {
    return this.#stillRunning().some((rank) => this.#state(rank) === RankState.JOINED);
  }

  /** What ranks do, a line each. */
  #inWords(ranks: readonly number[]): string {
    return ranks.map((rank) => `\n  rank ${rank} (${this.#ranks.describe(rank)}) ${this.#doing(rank)}`).join('');
  }

  /** Something other than a rank makes the job impossible: all ranks are stopped, at once. */
  abort(exitCode: number, failure: JobFailure): void {
    this.#conclude(exitCode, failure);
    this.#stop();
  }

  /** Sends a signal that is not meant to end the job (SIGSTOP, SIGCONT). */
  forward(signal: NodeJS.Signals): void {
    this.#signalAll(signal);
  }

  #timedOut(seconds: number): void {
    this.#conclude(124, {
      kind: 'timeout',
      message: `the job did not end within ${seconds} s (--timeout); still running:`,
    });
    this.#ask((running) => {
      this.#details = this.#inWords(running);
      this.#stop();
    });
  }

  /**
   * Has the ranks say what they wait in.
   * @param told called when all that can have said it, or soon, with the ranks that were running at the beginning
   */
  #ask(told: (running: readonly number[]) => void): void {
    const running = this.#stillRunning();
    askForReports(this.#control);
    this.#wake();
    const deadline = performance.now() + this.#answerWithin;
    const look = (): void => {
      const silent = running.some(
        (rank) =>
          this.#endings[rank] === undefined &&
          this.#state(rank) === RankState.JOINED &&
          reportOf(this.#control, rank) === undefined,
      );
      if (silent && performance.now() < deadline) {
        this.#after(ANSWER_EVERY, look);
        return;
      }
      told(running);
    };
    look();
  }

  #judgeSoon(): void {
    if (this.#judging) return;
    this.#judging = true;
    setImmediate(() => {
      this.#judging = false;
      this.#judge();
    });
  }

  #judge(): void {
    if (this.#keepGoing && (this.#running > 0 || this.#endings.some((ending) => !failed(ending!)))) {
      if (this.#running === 0) this.#end();
      return;
    }
    if (this.#verdict === undefined && this.#failing.length > 0) {
      const blamed = Atomics.load(this.#control.header, Header.FAILED) - 1;
      if (blamed >= 0 && this.#endings[blamed] === undefined && this.#patience !== 'over') {
        if (this.#patience === 'none') {
          this.#patience = 'waiting';
          this.#after(COLLECT_WITHIN, () => {
            this.#patience = 'over';
            this.#judge();
          });
        }
        return;
      }
      this.#blame(this.#failing[0], blamed);
    }
    if (this.#running === 0) this.#end();
  }

  /** `first` was the first that was seen to fail; `declared` is the one that the control memory names, or −1. */
  #blame(first: number, declared: number): void {
    const cause = this.#endings[declared] ?? this.#noted(declared);
    const ending = this.#endings[first]!;
    if (cause === undefined || declared === first) this.#blameEnding(first, ending);
    else if (failed(cause)) this.#blameEnding(declared, cause);
    else if (ending.signal === undefined && this.#state(first) === RankState.JOINED) {
      const missing = this.#state(declared) === RankState.ABSENT ? 'init()' : 'finalize()';
      const message =
        `rank ${declared} exited with code 0 without calling ${missing} (${this.#ranks.describe(declared)}); ` +
        `rank ${first} then exited with code ${this.#codeOf(first)}`;
      this.#conclude(asExitCode(ending.code), { kind: 'no-finalize', rank: declared, message }, [declared, first]);
    } else this.#blameEnding(first, ending);
    this.#stopAfter(this.#graceMs);
  }

  #blameEnding(rank: number, { code, signal }: Ending): void {
    const who = this.#ranks.describe(rank);
    if (signal === undefined) {
      const message = `rank ${rank} exited with code ${this.#codeOf(rank, code)} (${who})`;
      this.#conclude(asExitCode(code), { kind: 'exit-code', rank, message }, [rank]);
    } else {
      const message = `rank ${rank} was killed by ${signal} (${who})`;
      this.#conclude(128 + constants.signals[signal], { kind: 'signal', rank, message }, [rank]);
    }
  }

  /**
   * Says how many ranks besides the `named` ones the failure took with it: they failed after it, or were told to end.
   */
  #othersInWords(...named: number[]): string {
    const others = [...this.#endings.keys()].filter(
      (rank) => !named.includes(rank) && (this.#told.has(rank) || failed(this.#endings[rank]!)),
    ).length;
    const all = others === this.#control.size - named.length;
    if (others === 0) return '';
    if (others === 1) return all ? '; the other rank was stopped' : '; 1 other rank was stopped';
    return all ? `; the other ${others} ranks were stopped` : `; ${others} other ranks were stopped`;
  }

  /** Fixes how the job ends; only the first call counts. @param named the ranks that the message names as failed */
  #conclude(exitCode: number, failure: JobFailure, named?: number[]): void {
    this.#verdict ??= { exitCode, failure, named };
  }

  #stopAfter(graceMs: number): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#after(graceMs, () => this.#stop());
  }

  #stop(): void {
    this.#stopping = true;
    for (const rank of this.#stillRunning()) this.#told.add(rank);
    this.#signalAll('SIGTERM');
    this.#after(KILL_AFTER, () => this.#signalAll('SIGKILL'));
  }

  #signalAll(signal: NodeJS.Signals): void {
    for (const rank of this.#stillRunning()) this.#ranks.signal(rank, signal);
  }

  #stillRunning(): number[] {
    return [...this.#endings.keys()].filter((rank) => this.#endings[rank] === undefined);
  }

  #end(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    if (this.#verdict === undefined) this.#finish({ exitCode: 0, ...this.#losses() });
    else {
      const { exitCode, failure, named } = this.#verdict;
      const others = named === undefined ? '' : this.#othersInWords(...named);
      const message = `${failure.message}${others}${this.#details}`;
      this.#finish({ exitCode, failure: { ...failure, message } });
    }
  }

  /** The ranks that have failed, where the job has ended well without them. */
  #losses(): { lossNote?: string } {
    if (this.#failing.length === 0) return {};
    const how = this.#failing.map((rank) => {
      const { signal } = this.#endings[rank]!;
      const end = signal === undefined ? `exited with code ${this.#codeOf(rank)}` : `was killed by ${signal}`;
      return `rank ${rank} ${end} (${this.#ranks.describe(rank)})`;
    });
    return {
      lossNote: `the job went on without ${how.length === 1 ? 'a rank' : `${how.length} ranks`}: ${how.join(', ')}`,
    };
  }

  #declare(rank: number, kind: number, value: number): void {
    if (this.#running === 0) return;
    declareFailed(this.#control, rank, kind, value);
    this.#wake();
  }

  /** The code that a rank has ended with, also where the system does not keep all of it (start/exit-code.ts). */
  #codeOf(rank: number, code = this.#endings[rank]!.code): number {
    const { kind, value } = this.#failureOf(rank);
    return code !== 0 && kind === FailKind.EXIT_CODE && value !== 0 ? value : code;
  }

  /** How a rank ends that is about to, as it has noted itself. */
  #noted(rank: number): Ending | undefined {
    if (rank < 0) return undefined;
    const { kind, value } = this.#failureOf(rank);
    const isOwn = kind === FailKind.EXIT_CODE || kind === FailKind.ABORTED;
    return isOwn && value !== 0 ? { code: value } : undefined;
  }

  #failureOf(rank: number): { readonly kind: number; readonly value: number } {
    const { slots, slotWords } = this.#control;
    const slot = rank * slotWords;
    return { kind: Atomics.load(slots, slot + Slot.FAIL_KIND), value: Atomics.load(slots, slot + Slot.FAIL_VALUE) };
  }

  #state(rank: number): number {
    return Atomics.load(this.#control.slots, rank * this.#control.slotWords + Slot.STATE);
  }

  /** What a rank that still runs is about, in words. */
  #doing(rank: number): string {
    switch (this.#state(rank)) {
      case RankState.JOINED: {
        const waits = reportOf(this.#control, rank);
        return waits === undefined ? 'is not waiting in a call of this library' : `waits in ${waits}`;
      }
      case RankState.FINALIZED:
        return 'has finalized';
      default:
        return this.#ranks.unstarted?.(rank) ?? 'has not called init()';
    }
  }

  #after(milliseconds: number, action: () => void): void {
    // Longer delays than a timer can count are no deadline.
    if (milliseconds > 2 ** 31 - 1) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, milliseconds);
    this.#timers.add(timer);
  }
}

function failed(ending: Ending): boolean {
  return ending.signal !== undefined || ending.code !== 0;
}

/**
 * What a process can end with for a rank that has failed with `code`: the system keeps eight bits, and 0 would be a
 * success.
 */
function asExitCode(code: number): number {
  return code & 255 || 1;
}
