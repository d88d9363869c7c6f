/**
 * What a process has done in each superstep: how long it computed, waited in `sync` until all had come, and delivered;
 * how many bytes it sent to and received from others (data, without headers), in how many calls. Kept where a
 * computation was begun with `report`, and recorded where the job is (`onesided run --bsp-report`, `--trace`).
 */
import type { Recorder } from '../trace/recorder.ts';
import { STEP_FIELDS, StepField } from '../trace/supersteps.ts';
import { Kind } from '../trace/trace-ring.ts';

const FIRST = 64;

/** What passed between a process and the others in a superstep. */
export interface Traffic {
  /** Bytes. */
  readonly sent: number;
  readonly received: number;
  /** Calls of others that concern this process. */
  readonly calls: number;
}

/** Where supersteps are recorded: the job's recorder, and the text of the computation's scope. */
export interface StepTrace {
  readonly recorder: Recorder;
  readonly scope: number;
}

export class Ledger {
  /** Microseconds. */
  readonly #now: () => number;
  readonly #trace: StepTrace | undefined;
  /** Absent if nothing is kept. */
  #kept: Float64Array | undefined;
  #count = 0;
  /** When the superstep began, its `sync` was called, and all had called theirs. */
  #began: number;
  #called = 0;
  #came = 0;
  /** Calls that concern others. */
  #out = 0;
  /** Supersteps are in no report now. */
  #leavesOut = false;

  /**
   * @param now microseconds; a trace has a clock of its own
   * @param keeps whether `numbers` are wanted
   */
  constructor(now: () => number, keeps: boolean, trace: StepTrace | undefined) {
    this.#now = trace === undefined ? now : () => trace.recorder.now() / 1000;
    this.#trace = trace;
    this.#kept = keeps ? new Float64Array(STEP_FIELDS * FIRST) : undefined;
    this.#began = this.#now();
  }

  get keeps(): boolean {
    return this.#kept !== undefined;
  }

  /** Supersteps that end from now on are in no report. @returns ends that: the next superstep begins then */
  leaveOut(): () => void {
    this.#leavesOut = true;
    return () => {
      this.#leavesOut = false;
      this.restart();
    };
  }

  /** The first superstep begins now. */
  restart(): void {
    this.#began = this.#now();
  }

  /** The process calls `sync`. @param out calls that concern others */
  ends(step: number, out: number): void {
    this.#called = this.#now();
    this.#out = out;
    this.#write(Kind.COMPUTED, -1, out, step, this.#began, this.#called);
  }

  /** All processes have called it. */
  came(): void {
    this.#came = this.#now();
  }

  /** The `sync` is complete. */
  ended(step: number, { sent, received, calls }: Traffic): void {
    const now = this.#now();
    this.#write(Kind.GATHERED, -1, calls, step, this.#called, this.#came);
    this.#write(Kind.DELIVERED, sent, received, step, this.#came, now);
    if (this.#kept !== undefined && !this.#leavesOut) {
      const at = STEP_FIELDS * this.#count++;
      if (at === this.#kept.length) {
        const longer = new Float64Array(2 * at);
        longer.set(this.#kept);
        this.#kept = longer;
      }
      const kept = this.#kept;
      kept[at + StepField.WORK] = this.#called - this.#began;
      kept[at + StepField.WAIT] = this.#came - this.#called;
      kept[at + StepField.DELIVERY] = now - this.#came;
      kept[at + StepField.SENT] = sent;
      kept[at + StepField.RECEIVED] = received;
      kept[at + StepField.OUT] = this.#out;
      kept[at + StepField.IN] = calls;
    }
    // What recording took is not work of the program; the others wait for it.
    this.#began = this.#trace === undefined ? now : this.#now();
  }

  #write(kind: number, peer: number, count: number, step: number, since: number, until: number): void {
    const trace = this.#trace;
    trace?.recorder.phase(kind, trace.scope, peer, count, step, 1000 * since, 1000 * (until - since));
  }

  /** Of all supersteps that have ended, {@link STEP_FIELDS} numbers each. */
  get numbers(): Float64Array {
    return (this.#kept ?? new Float64Array(0)).slice(0, STEP_FIELDS * this.#count);
  }
}
