/**
 * How a task of a modelled fabric waits: it does nothing until something has changed at its rank, and then its
 * operations are advanced by the simulator, at virtual times.
 *
 * The operations are the same as those that processes and threads wait for; but no rank spins, sleeps, or looks at the
 * clock. What wakes a rank is a completion in one of its queues, an asynchronous event, a rank that wants to connect,
 * or a failure. Operations that ask again and again (`isPolling`) are advanced every `lookAgain` microseconds as well,
 * or when they say. Deadlines are virtual milliseconds.
 *
 * What serves others in the background (`serve`) is called when something has come for the rank, whether or not the
 * rank waits. A rank that computes is busy, so then the call comes when it has computed. The call ends no wait and
 * begins none, so it keeps no deadlock from being reported.
 */
import { RmaError } from '../errors.ts';
import type { Cpu, DeadlineEvent, Simulator, Watcher } from '../providers/modelled/simulator.ts';
import { isAborted, reasonOf, whenAborted } from './abort-signals.ts';
import { SeenWaiting, seenByCaller } from './caller.ts';
import type { Concerned } from './concerned.ts';
import { abandonQuietly, type Operation, type WaitOptions } from './operation.ts';
import { type Background, DONE, type ProgressEngine } from './progress.ts';
import type { Stirred } from './servers.ts';
import type { VainLooks } from './vain-looks.ts';

interface Pending {
  readonly operation: Operation;
  readonly concerned: Concerned;
  readonly since: number;
  resolve(seen?: SeenWaiting): void;
  reject(error: unknown): void;
  /** No signal and no deadline ends it any more. */
  release(): void;
  deadline: Deadline | undefined;
}

export interface VirtualWaits {
  /** Virtual milliseconds, of waits that say nothing else. */
  readonly timeout: number;
  /** Microseconds from one look of an operation that asks again and again to the next. */
  readonly lookAgain: number;
  /** Whether nothing is under way that a poll brings on. */
  readonly isIdle: () => boolean;
  readonly vainLooks: VainLooks;
}

/** Of a wait, as long as that waits. */
class Deadline implements DeadlineEvent {
  pending: Pending | undefined;
  readonly #pass: (late: Pending) => void;

  constructor(pending: Pending, pass: (late: Pending) => void) {
    this.pending = pending;
    this.#pass = pass;
  }

  get isOver(): boolean {
    return this.pending === undefined;
  }

  happen(): void {
    if (this.pending !== undefined) this.#pass(this.pending);
  }
}

/**
 * So many calls that were complete at once, and during which no time has passed, take so many microseconds: what they
 * cost on a processor.
 */
const FREE_CALLS = 64;
const FREE_CALLS_TAKE = 1;

export class VirtualProgress implements ProgressEngine, Watcher {
  /** To look twice at the same time changes nothing. */
  readonly spin = 1;
  readonly #simulator: Simulator;
  readonly #cpu: Cpu;
  readonly #poll: () => void;
  readonly timeout: number;
  readonly #lookAgain: number;
  readonly #isIdle: () => boolean;
  readonly #vainLooks: VainLooks;
  readonly #compute: (microseconds: number) => Promise<void>;
  readonly #pending = new Set<Pending>();
  readonly #servers = new Map<() => number, Concerned>();
  /** Those that are called in the background, too. */
  readonly #background = new Map<() => number, Concerned>();
  #looking = false;
  /** Something has changed during a look. */
  #rung = false;
  #closed = false;
  /** What bringing messages in has thrown while this rank waited for nothing: its next wait is told. */
  #missed: { readonly error: unknown } | undefined;
  /** The time of the last call that was complete at once, and how many there were at that time. */
  #freeAt = -1;
  #free = 0;

  /** @param compute lets time pass on the rank's processor, and the others run */
  constructor(
    simulator: Simulator,
    cpu: Cpu,
    poll: () => void,
    compute: (microseconds: number) => Promise<void>,
    { timeout, lookAgain, isIdle, vainLooks }: VirtualWaits,
  ) {
    this.#compute = compute;
    this.#simulator = simulator;
    this.#cpu = cpu;
    this.#poll = poll;
    this.timeout = timeout;
    this.#lookAgain = lookAgain;
    this.#isIdle = isIdle;
    this.#vainLooks = vainLooks;
  }

  /** What is waited for, in the words of the calls, oldest first. */
  get waits(): readonly string[] {
    return [...this.#pending].map(({ operation }) => operation.describe());
  }

  /** The run is over: an error takes the stack of a wait of this rank. @returns whether it shows the program then */
  async showIn(error: Error): Promise<boolean> {
    for (const pending of this.#pending) {
      this.#pending.delete(pending);
      if (await new Promise<boolean>((told) => pending.resolve(new SeenWaiting(error, told)))) return true;
    }
    return false;
  }

  /** Virtual milliseconds. */
  now(): number {
    return this.#cpu.time / 1000;
  }

  /** Its time costs nothing here, and its rank is woken when something has come. */
  serveUnlessQuiet(serve: () => number, _isQuiet: () => boolean, concerned: Concerned): Stirred {
    return { stir() {}, end: this.serve(serve, false, concerned) };
  }

  serve(serve: () => number, background: Background, concerned: Concerned): () => void {
    this.#servers.set(serve, concerned);
    if (background !== false) {
      this.#background.set(serve, concerned);
      this.#cpu.watchFor(this);
    }
    return () => {
      this.#servers.delete(serve);
      this.#background.delete(serve);
      this.#watchWhileNeeded();
    };
  }

  /** A program that only looks and computes never waits: what this rank has under way goes on all the same. */
  look(operation: Operation, concerned: Concerned): boolean {
    try {
      if (!this.#isIdle()) this.#poll();
      if (operation.advance()) return true;
    } catch (error) {
      throw concerned.explain(error);
    }
    concerned.check();
    this.#vainLooks.note(() => operation.describe());
    return false;
  }

  waitSync(operation: Operation): never {
    throw new RmaError(
      'ERR_RMA_WOULD_DEADLOCK',
      `${operation.describe()}: all ranks are tasks of one thread, and a blocking call would stop them all; ` +
        'use the form that returns a promise',
    );
  }

  /**
   * No time passes in a call that was complete at once, and no other rank runs. A rank that repeats it until something
   * comes from another rank would wait for ever, so many such calls take some time together.
   */
  done(): Promise<void> {
    const now = this.#cpu.time;
    if (now !== this.#freeAt) {
      this.#freeAt = now;
      this.#free = 0;
    }
    if (++this.#free < FREE_CALLS) return DONE;
    return this.#compute(FREE_CALLS_TAKE);
  }

  wait(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): Promise<void> {
    try {
      const signal = options?.signal;
      if (signal !== undefined && isAborted(signal)) throw reasonOf(signal);
      const { happened } = this.#simulator;
      if (operation.advance()) return this.done();
      const trouble = concerned.trouble();
      if (trouble !== undefined) throw trouble;
      if (this.#missed !== undefined) this.#tellMissed();
      const parked = this.#park(operation, options, concerned);
      // The operation has let events pass: what came for a part of it that had been looked at already rang in vain.
      if (this.#simulator.happened !== happened) this.#cpu.ring();
      // What this rank has under way came to a point where it could go on while no call waited.
      else if (!this.#isIdle()) this.#cpu.ringForMissed();
      return parked;
    } catch (error) {
      abandonQuietly(operation);
      return Promise.reject(concerned.explain(error));
    }
  }

  #park(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): Promise<void> {
    const signal = options?.signal;
    let onAbort: (() => void) | undefined;
    // Throws before anything waits.
    const release = whenAborted(signal, () => onAbort!());
    const settled = new Promise<SeenWaiting | undefined>((resolve, reject) => {
      const timeoutMs = options?.timeout ?? this.timeout;
      const since = this.#cpu.time;
      const pending: Pending = { operation, concerned, since, resolve, reject, release, deadline: undefined };
      onAbort = () => this.#end(pending, reasonOf(signal!));
      if (timeoutMs < Number.POSITIVE_INFINITY) this.#setDeadline(pending, timeoutMs);
      this.#pending.add(pending);
      this.#cpu.beginWait();
      this.#cpu.watchFor(this);
      this.#lookLater(this.#untilLook(operation));
    });
    return seenByCaller(settled as Promise<void>, signal);
  }

  /** Microseconds after which an operation must be advanced even though nothing has come. */
  #untilLook(operation: Operation): number {
    const polling = operation.isPolling?.() ?? false;
    return polling === false ? Number.POSITIVE_INFINITY : polling === true ? this.#lookAgain : 1000 * polling;
  }

  /** No rank looks more often than every `lookAgain`: what is due now is found then. */
  #lookLater(microseconds: number): void {
    if (microseconds < Number.POSITIVE_INFINITY) this.#cpu.ringAfter(Math.max(this.#lookAgain, microseconds));
  }

  #watchWhileNeeded(): void {
    if (this.#pending.size === 0 && (this.#background.size === 0 || this.#closed)) this.#cpu.watchFor(undefined);
  }

  #setDeadline(pending: Pending, timeoutMs: number): void {
    const simulator = this.#simulator;
    const pass = (late: Pending): void => {
      this.#end(
        late,
        new RmaError(
          'ERR_RMA_TIMEOUT',
          `${late.operation.describe()} did not complete within ${timeoutMs} ms; ` +
            'if the other ranks may need longer, raise the timeout',
        ),
      );
    };
    pending.deadline = new Deadline(pending, pass);
    simulator.underWay++;
    simulator.atDeadline(this.#cpu.time + 1000 * timeoutMs, this.#cpu.rank, pending.deadline);
  }

  /** Something may have changed: serves others, and settles what is complete or failed. */
  notice(): void {
    if (this.#looking) {
      // This look lets events pass, so it is followed by another. Ringing at once would let no time pass any more.
      this.#rung = true;
      return;
    }
    this.#looking = true;
    let due = Number.POSITIVE_INFINITY;
    try {
      this.#poll();
      due = this.#serve();
      // What completes may let another one go on.
      while (this.#sweep());
    } catch (error) {
      if (this.#pending.size === 0) this.#missed ??= { error };
      for (const pending of [...this.#pending]) this.#end(pending, pending.concerned.explain(error));
    } finally {
      this.#looking = false;
    }
    if (this.#rung) {
      this.#rung = false;
      this.#cpu.ring();
    }
    for (const { operation } of this.#pending) due = Math.min(due, this.#untilLook(operation));
    this.#lookLater(due);
    if (due < Number.POSITIVE_INFINITY) this.#simulator.askedInVain();
  }

  #tellMissed(): void {
    const { error } = this.#missed!;
    this.#missed = undefined;
    throw error;
  }

  /** @returns microseconds after which a server must be called again even though nothing has come */
  #serve(): number {
    let due = Number.POSITIVE_INFINITY;
    for (const [serve, concerned] of this.#pending.size > 0 ? this.#servers : this.#background) {
      try {
        due = Math.min(due, serve());
      } catch (error) {
        concerned.note(error);
      }
    }
    return 1000 * due;
  }

  /** @returns whether some wait has ended */
  #sweep(): boolean {
    let ended = false;
    for (const pending of this.#pending) {
      try {
        if (pending.operation.advance()) this.#settle(pending, pending.resolve);
        else {
          const trouble = pending.concerned.trouble();
          if (trouble === undefined) continue;
          this.#end(pending, trouble);
        }
      } catch (error) {
        this.#end(pending, pending.concerned.explain(error));
      }
      ended = true;
    }
    return ended && this.#pending.size > 0;
  }

  #end(pending: Pending, error: unknown): void {
    // What is done to leave may let time pass: the operation must not be advanced meanwhile.
    this.#pending.delete(pending);
    this.#endDeadline(pending);
    abandonQuietly(pending.operation);
    this.#settle(pending, () => pending.reject(error));
  }

  /** The task goes on when this rank's processor has done what it has been given to do. */
  #settle(pending: Pending, go: () => void): void {
    this.#pending.delete(pending);
    pending.release();
    this.#watchWhileNeeded();
    this.#endDeadline(pending);
    const simulator = this.#simulator;
    simulator.gotOn();
    resumeAt(simulator, this.#cpu, go);
  }

  /** It stays where it is, with nothing to do. */
  #endDeadline({ deadline }: Pending): void {
    if (deadline?.pending === undefined) return;
    deadline.pending = undefined;
    this.#simulator.underWay--;
  }

  close(): void {
    this.#closed = true;
    this.#servers.clear();
    this.#background.clear();
    this.#watchWhileNeeded();
    for (const pending of [...this.#pending]) {
      const what = pending.operation.describe();
      this.#end(
        pending,
        new RmaError('ERR_COMM', `finalize() ended the job before ${what} was complete; await it before finalize()`),
      );
    }
  }
}

/** Ends a computation of a rank's task when its processor has had the time for it, interrupts not counted. */
export function computeOn(simulator: Simulator, cpu: Cpu, go: () => void): void {
  let { interrupted } = cpu;
  const end = (): void => {
    // What has interrupted it has put off the end; the clock says so.
    if (cpu.interrupted > interrupted && !cpu.dead) {
      interrupted = cpu.interrupted;
      simulator.at(cpu.time, cpu.rank, { happen: end });
      return;
    }
    simulator.underWay--;
    cpu.computations--;
    if (cpu.dead) return;
    simulator.resume(() => {
      cpu.endWait();
      go();
    });
  };
  simulator.underWay++;
  cpu.computations++;
  cpu.whenComputing?.();
  simulator.at(cpu.time, cpu.rank, { happen: end });
}

/** Ends a wait of a rank's task, at the time of its processor. */
function resumeAt(simulator: Simulator, cpu: Cpu, go: () => void): void {
  simulator.underWay++;
  simulator.at(cpu.time, cpu.rank, {
    happen: () => {
      simulator.underWay--;
      if (cpu.dead) return;
      simulator.resume(() => {
        cpu.endWait();
        go();
      });
    },
  });
}
