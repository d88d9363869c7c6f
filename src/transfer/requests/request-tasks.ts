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
 *
 * A task may have a request that does all of it, if it goes well (`Ahead`), and that holds nothing. It is posted ahead
 * of the task's turn, as long as all tasks before it have such a request, too, and none has gone wrong. When its turn
 * comes, and the request has gone well, the task is over, whether this rank waits or not; otherwise its steps begin.
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

/** A request that does all of a task, or nothing. */
export interface Ahead {
  /** Errors: why it cannot be posted. */
  post(): void;
  /** Whether it is complete. */
  isOver(): boolean;
  /** Called once, when it is. Errors: why its results cannot be taken. @returns whether the task is done */
  end(): boolean;
}

/** Such requests of a target that are posted, and whose tasks have not ended. */
const AHEAD = 64;

/** @returns false if it was asked to leave, and has */
export type HoldingSteps = Generator<void, boolean>;

interface Task {
  steps: Generator<void, unknown> | undefined;
  /** Makes the steps, of a task that may hold something. */
  readonly make: ((hold: Hold) => HoldingSteps) | undefined;
  readonly hold: Hold;
  /** Absent, too, when it has gone wrong. */
  ahead: Ahead | undefined;
  /** In which it was begun (operation-failures.ts). */
  readonly turn: number;
}

const NOTHING: Hold = { has: false, leaving: false };

/** Those of one target. */
interface TargetTasks {
  readonly rank: number;
  /** The running one first. */
  readonly tasks: Fifo<Task>;
  /** So many of the first have posted their request ahead. */
  posted: number;
  /** The request of the first one has gone wrong: none is posted until those that were have had their turn. */
  wrong: boolean;
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
  readonly #targets = new ByRank(
    (rank): TargetTasks => ({ rank, tasks: new Fifo<Task>(), posted: 0, wrong: false, begun: 0, active: false }),
  );
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
    this.#add(rank, { steps, make: undefined, hold: NOTHING, ahead: undefined, turn: this.#turns.turn });
  }

  /**
   * @param make makes the steps, again each time that they have left; until they can no longer leave, they do nothing
   * that cannot be done again
   */
  beginHolding(rank: number, make: (hold: Hold) => HoldingSteps, ahead?: Ahead): void {
    this.#add(rank, { steps: undefined, make, hold: { has: false, leaving: false }, ahead, turn: this.#turns.turn });
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
    this.#postAhead(target);
    for (;;) {
      try {
        this.#advance(target, false);
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
        this.#advance(target, waiting);
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
  #advance(target: TargetTasks, waiting: boolean): void {
    const { tasks } = target;
    for (let task = tasks.first; task !== undefined; task = tasks.first) {
      const { make, hold } = task;
      if (task.ahead !== undefined) {
        if (!this.#isOver(target, task)) return;
        if (tasks.first !== task) continue;
      }
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

  /** Posts requests ahead of the turn of their tasks, as many as may. */
  #postAhead(target: TargetTasks): void {
    if (target.wrong || target.posted >= Math.min(AHEAD, target.tasks.length)) return;
    const turns = this.#turns;
    const now = turns.turn;
    let at = 0;
    for (const task of target.tasks) {
      if (task.ahead === undefined || target.posted === AHEAD) break;
      if (at++ < target.posted) continue;
      turns.turn = task.turn;
      try {
        task.ahead.post();
        target.posted++;
      } catch {
        // The steps will say why, if it is in their way, too.
        task.ahead = undefined;
        break;
      } finally {
        turns.turn = now;
      }
    }
  }

  /**
   * Whether the request of the first task is over. If it went well, so is the task.
   * Errors: why its results cannot be taken; the task has ended then.
   */
  #isOver(target: TargetTasks, task: Task): boolean {
    if (target.posted === 0) this.#postAhead(target);
    const { ahead } = task;
    if (ahead === undefined) return true;
    if (!ahead.isOver()) return false;
    task.ahead = undefined;
    target.posted--;
    let over = true;
    this.#failedTurn = task.turn;
    try {
      over = ahead.end();
    } finally {
      if (over) this.#end(target.tasks);
      target.wrong = (target.wrong || !over) && target.posted > 0;
    }
    if (over && target.posted < AHEAD / 2) this.#postAhead(target);
    return true;
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
