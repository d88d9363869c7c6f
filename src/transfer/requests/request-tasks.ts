/**
 * Tasks of a window by requests: what takes several requests to one rank, one after the other, as generators that yield
 * where they wait for an answer. Those of one target run one after the other, in the order in which they were begun.
 *
 * Some tasks hold something meanwhile for which other ranks wait (a stripe). Such a task begins only while this rank
 * waits for its requests, so that it does not hold anything while the program computes. Once it has something it goes
 * on in every look, whatever this rank waits for, since this rank may wait for a rank that waits for the task. When a
 * wait for requests has ended, well or early (a deadline, a failure), nothing may be waited for that depends on another
 * *rank*: the rank that has the stripe may be stopped, or dead. So the task is asked to leave (`Hold.leaving`): it
 * gives back what it has, and its place in a line, and ends. That takes requests that are posted and not waited for.
 * The task begins anew in the next wait; nothing was changed before, so nothing is lost and nothing is done twice. One
 * request can be on its way that may give the task something. Its answer comes from a device, and is waited for, but
 * not longer than `GRACE_MS` (a connection whose other end takes no more messages carries nothing that comes behind
 * them). If the answer does not come in that time, the task leaves when it has come, in whatever call looks for
 * completions next.
 */
import { Fifo } from '../../fifo.ts';
import { ByRank } from './by-rank.ts';
import type { OperationFailures } from './operation-failures.ts';

/** Milliseconds for which the end of a wait is put off until answers are there. */
export const GRACE_MS = 20;

/** What a task that holds something and the calls that run it say to each other. */
export interface Hold {
  /** It has something for which others wait, or stands in line for it. The task says so. */
  has: boolean;
  /** The task must give that back: no call waits for it at the moment. */
  leaving: boolean;
}

/** @returns false if it was asked to leave, and has */
export type HoldingSteps = Generator<void, boolean>;

interface Task {
  steps: Generator<void, unknown> | undefined;
  /** Makes the steps, of a task that may hold something. */
  readonly make: ((hold: Hold) => HoldingSteps) | undefined;
  readonly hold: Hold;
  /** In which it was begun (operation-failures.ts). */
  readonly turn: number;
}

const NOTHING: Hold = { has: false, leaving: false };

/** Those of one target. */
interface TargetTasks {
  readonly rank: number;
  /** The running one first. */
  readonly tasks: Fifo<Task>;
  /** Since the window was made. */
  begun: number;
  /** It is in the list of those with tasks. */
  active: boolean;
}

/** Is told what tasks throw, which have ended then. */
type Failed = (error: unknown, rank: number, turn: number) => void;

export class RequestTasks {
  readonly #failed: Failed;
  readonly #turns: Pick<OperationFailures, 'turn'>;
  readonly #targets = new ByRank((rank): TargetTasks => ({ rank, tasks: new Fifo<Task>(), begun: 0, active: false }));
  /** Those with tasks, and some that have none any more: `run` drops them. Of many targets, few have tasks. */
  readonly #active: TargetTasks[] = [];
  #count = 0;
  /** That of the task that has failed last. */
  #failedTurn = 0;

  /** @param turns whose turn is a task's own while its steps are carried out */
  constructor(failed: Failed, turns: Pick<OperationFailures, 'turn'>) {
    this.#failed = failed;
    this.#turns = turns;
  }

  /** Whether a target has tasks that have not ended. */
  has(rank: number): boolean {
    return this.#count > 0 && (this.#targets.find(rank)?.tasks.length ?? 0) > 0;
  }

  /** Tasks that have not ended. */
  get count(): number {
    return this.#count;
  }

  /** Those of a rank. */
  left(rank: number): number {
    return this.#targets.find(rank)?.tasks.length ?? 0;
  }

  begun(rank: number): number {
    return this.#targets.find(rank)?.begun ?? 0;
  }

  /** Errors: what the steps throw at once. */
  begin(rank: number, steps: Generator<void, unknown>): void {
    this.#add(rank, { steps, make: undefined, hold: NOTHING, turn: this.#turns.turn });
  }

  /**
   * @param make makes the steps, again each time that they have left; until they can no longer leave, they do nothing
   * that cannot be done again
   */
  beginHolding(rank: number, make: (hold: Hold) => HoldingSteps): void {
    this.#add(rank, { steps: undefined, make, hold: { has: false, leaving: false }, turn: this.#turns.turn });
  }

  #add(rank: number, task: Task): void {
    const target = this.#targets.of(rank);
    target.tasks.push(task);
    target.begun++;
    this.#count++;
    if (!target.active) {
      target.active = true;
      this.#active.push(target);
    }
    const { tasks } = target;
    for (;;) {
      try {
        this.#advance(tasks, false);
        return;
      } catch (error) {
        // That of the last one is of this call; another one's is not.
        if (tasks.length === 0) throw error;
        this.#failed(error, rank, this.#failedTurn);
      }
    }
  }

  /** @param waiting this rank waits for its requests */
  run(waiting: boolean): void {
    const active = this.#active;
    for (let i = 0; i < active.length; ) {
      const target = active[i];
      try {
        this.#advance(target.tasks, waiting);
      } catch (error) {
        this.#failed(error, target.rank, this.#failedTurn);
        continue;
      }
      if (target.tasks.length > 0 || active[i] !== target) {
        i++;
        continue;
      }
      target.active = false;
      active.splice(i, 1);
    }
  }

  /**
   * Runs the first task of a target until it waits for an answer; if it ends, the next one. Errors: the task's, which
   * has ended then.
   */
  #advance(tasks: Fifo<Task>, waiting: boolean): void {
    for (let task = tasks.first; task !== undefined; task = tasks.first) {
      const { make, hold } = task;
      if (make !== undefined && !waiting && !hold.leaving && !hold.has) return;
      task.steps ??= make!(hold);
      let left = false;
      let failed = true;
      const turns = this.#turns;
      const now = turns.turn;
      turns.turn = task.turn;
      try {
        const step = task.steps.next();
        failed = false;
        if (!step.done) return;
        left = make !== undefined && step.value === false;
      } finally {
        turns.turn = now;
        if (failed) {
          this.#failedTurn = task.turn;
          this.#end(tasks);
        }
      }
      if (!left) this.#end(tasks);
      else {
        task.steps = undefined;
        hold.leaving = false;
      }
    }
  }

  #end(tasks: Fifo<Task>): void {
    tasks.shift();
    this.#count--;
  }

  /**
   * Has tasks that hold something give it back: the wait that ran them ends early.
   * @returns whether to run them until `areLeaving` says no
   */
  leave(): boolean {
    for (const { tasks } of this.#active) {
      const task = tasks.first;
      if (task?.steps !== undefined && task.hold.has) task.hold.leaving = true;
    }
    return this.areLeaving;
  }

  /** Whether one has something for which others wait. */
  get areHolding(): boolean {
    return this.#count > 0 && this.#active.some(({ tasks: { first } }) => first?.hold.has === true);
  }

  get areLeaving(): boolean {
    return (
      this.#count > 0 && this.#active.some(({ tasks: { first } }) => first?.hold.leaving === true && first.hold.has)
    );
  }

  /** Ends all; what they try to post must lead nowhere. */
  close(): void {
    for (const { tasks } of this.#active) for (const { steps } of tasks) steps?.return(undefined);
  }
}
