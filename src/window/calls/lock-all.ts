/**
 * How `lockAll` takes the shared locks of all ranks where there is no one lock for all, and some are held by others.
 *
 * Of these locks, one may be waited for at a time. At first, the call holds none of the others meanwhile. That alone
 * could go on for ever where parts are kept busy in turns: by the time that the call has one lock, another one has
 * gone. So after some rounds it holds on to the locks of lower ranks while it waits for the next, for a time that
 * doubles.
 *
 * Where a lock is asked for by requests, those of all ranks are asked for at once, by attempts that wait in no line.
 *
 * It comes to an end: ranks that hold one lock wait for no other, and ranks that lock all wait in the order of ranks,
 * so every line moves. Once the time is longer than a line takes, the call gets one lock after the other. No deadlock:
 * a rank that does wait for one lock while it holds another can be in the way of this call, and this call in its way.
 * Then the time runs out, and this call lets go of all that it has.
 */

import type { Attempt } from '../../sync/lock/lock-scheme.ts';
import type { Operation } from '../../wait/operation.ts';
import type { ProgressEngine } from '../../wait/progress.ts';
import type { Target } from '../path/target.ts';

/**
 * Locks that a `lockAll` waits for, one after the other, before it holds on to those that it has; then it does so for
 * this time at first, and at most.
 */
const GENEROUS = 3;
const FIRST_HOLD_MS = 1;
const LONGEST_HOLD_MS = 10_000;

/**
 * @param targets have their locks, and are in the order of ranks
 * @param what the call, for messages
 */
export function acquireAll(targets: readonly Target[], progress: ProgressEngine, what: string): Operation {
  const have = new Set<Target>();
  let waiting: { target: Target; operation: Operation; until: number } | undefined;
  /** Locks that were asked for. */
  let trying: { target: Target; operation: Attempt }[] = [];
  let waits = 0;
  let holdMs = FIRST_HOLD_MS;
  const letGo = (from: number): void => {
    for (const t of have) {
      if (t.rank < from) continue;
      t.lock!.release(false);
      have.delete(t);
    }
  };
  const wait = (target: Target): void => {
    const holds = ++waits > GENEROUS;
    letGo(holds ? target.rank : 0);
    const until = have.size > 0 ? progress.now() + holdMs : Number.POSITIVE_INFINITY;
    waiting = { target, operation: target.lock!.acquire(false), until };
  };
  /** It holds on to nothing any more, and still stands in line. */
  const waitAlone = (): void => {
    letGo(0);
    holdMs = Math.min(2 * holdMs, LONGEST_HOLD_MS);
    waiting!.until = Number.POSITIVE_INFINITY;
  };
  /** Whether all that were asked for have answered. */
  const haveAnswered = (): boolean => {
    let answered = true;
    for (const { operation } of trying) answered = operation.advance() && answered;
    return answered;
  };
  /** Takes those that are free, and asks for the others. @returns the first that has to be waited for */
  const take = (): Target | undefined => {
    for (const target of targets) {
      if (have.has(target)) continue;
      if (target.lock!.tryAcquire(false)) have.add(target);
      else {
        const operation = target.lock!.attempt?.(false);
        if (operation === undefined) return target;
        trying.push({ target, operation });
      }
    }
    return undefined;
  };
  return {
    advance: () => {
      for (;;) {
        if (waiting !== undefined) {
          if (!waiting.operation.advance()) {
            if (progress.now() >= waiting.until) waitAlone();
            return false;
          }
          have.add(waiting.target);
          waiting = undefined;
        }
        if (trying.length > 0) {
          if (!haveAnswered()) return false;
          const refused = trying.find(({ operation }) => operation.acquired !== true);
          for (const { target, operation } of trying) if (operation.acquired) have.add(target);
          trying = [];
          if (refused !== undefined) {
            wait(refused.target);
            continue;
          }
        }
        const refused = take();
        if (trying.length > 0) continue;
        if (refused === undefined) return true;
        wait(refused);
      }
    },
    describe: () =>
      `${what}${waiting ? ` (waiting for rank ${waiting.target.rank}: ${waiting.operation.describe()})` : ''}`,
    abandon: () => {
      // The lock of one rank, dead perhaps, is in the way of no other.
      const failures: unknown[] = [];
      const attempt = (undo: () => void): void => {
        try {
          undo();
        } catch (error) {
          failures.push(error);
        }
      };
      attempt(() => waiting?.operation.abandon?.());
      for (const { target, operation } of trying) {
        if (operation.acquired === undefined) attempt(() => operation.abandon?.());
        else if (operation.acquired) have.add(target);
      }
      trying = [];
      for (const { lock } of have) attempt(() => lock!.release(false));
      have.clear();
      if (failures.length > 0) throw failures[0];
    },
    isPolling: () => {
      const asked = waiting ?? trying.find(({ operation }) => operation.acquired === undefined);
      const again = asked?.operation.isPolling?.() ?? false;
      if (waiting === undefined || waiting.until === Number.POSITIVE_INFINITY || again === true) return again;
      const left = Math.max(0, waiting.until - progress.now());
      return again === false ? left : Math.min(again, left);
    },
  };
}
