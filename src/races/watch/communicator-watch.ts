/** What the collectives and messages of a communicator give and take. */
import type { CollectiveCall } from '../../collective/collective-calls.ts';
import type { Communicator } from '../../collective/communicator.ts';
import type { GeneratorOperation } from '../../wait/operation.ts';
import { DONE } from '../../wait/progress.ts';
import { Meeting, RaceEvent } from '../race-events.ts';
import type { RaceTeller } from './race-teller.ts';
import { replace } from './window-watch.ts';

type Method = (...args: unknown[]) => unknown;
type Methods = Record<string, Method>;

const MEETINGS: Readonly<Record<string, number>> = {
  broadcast: Meeting.FROM_ROOT,
  scatter: Meeting.FROM_ROOT,
  scatterv: Meeting.FROM_ROOT,
  reduce: Meeting.TO_ROOT,
  gather: Meeting.TO_ROOT,
  gatherv: Meeting.TO_ROOT,
  scan: Meeting.PREFIX,
  exscan: Meeting.PREFIX,
};

export function watchCommunicator(watch: RaceTeller, communicator: Communicator, key: string): void {
  const { rank: place, size } = communicator;
  watchMeetings(watch, communicator, ['barrier', 'barrierSync'], { scope: `barrier ${key}`, place, size });
  watchCollectives(watch, communicator, key);
  watchMessages(watch, communicator, key);
}

/**
 * Calls in which all of some ranks meet. One whose wait ended early goes on with the next call, so that one is the
 * same meeting.
 */
function watchMeetings(
  watch: RaceTeller,
  object: object,
  forms: readonly string[],
  { scope, place, size }: { readonly scope: string; readonly place: number; readonly size: number },
): void {
  const methods = object as Methods;
  let number = 0;
  let isLeft = false;
  const failed = (error: unknown): never => {
    isLeft = true;
    throw error;
  };
  for (const form of forms) {
    const original = methods[form];
    if (original === undefined) continue;
    replace(methods, form, (...args) => {
      if (!isLeft) number++;
      isLeft = false;
      const own = number;
      watch.begin(scope).add(own).add(size).add(Meeting.ALL).add(0).add(place).tell(RaceEvent.ARRIVED);
      const leave = (): void => watch.begin(scope).add(own).add(place).tell(RaceEvent.LEFT);
      let result: unknown;
      try {
        result = original.apply(object, args);
      } catch (error) {
        failed(error);
      }
      if (result instanceof Promise && result !== DONE) return result.then(leave, failed);
      leave();
      return result;
    });
  }
}

function watchCollectives(watch: RaceTeller, communicator: Communicator, key: string): void {
  const { rank, size } = communicator;
  const methods = communicator as unknown as Methods;
  const arrive = (call: CollectiveCall<unknown>, number: number): void => {
    const meeting = MEETINGS[call.name] ?? Meeting.ALL;
    watch
      .begin(key)
      .add(number)
      .add(size)
      .add(meeting)
      .add(call.root ?? 0)
      .add(rank)
      .tell(RaceEvent.ARRIVED);
  };
  const leave = (number: number): void => watch.begin(key).add(number).add(rank).tell(RaceEvent.LEFT);
  /**
   * Tells before the call what its number will be, since others may learn of it before it returns. If it then gets
   * none, it was no collective, or was refused: whoever gets the number next arrives again.
   * @returns the number
   */
  const arrives = (call: CollectiveCall<unknown>): number => {
    const number = communicator.sequence + 1;
    arrive(call, number);
    return number;
  };
  const { collective, collectiveSync, begin } = methods;
  replace(methods, 'collective', (...args) => {
    const number = arrives(args[0] as CollectiveCall<unknown>);
    const begun = collective.apply(communicator, args) as { operation: unknown; promise: Promise<void> };
    const isEntered = communicator.sequence === number;
    return { operation: begun.operation, promise: begun.promise.then(() => isEntered && leave(number)) };
  });
  replace(methods, 'collectiveSync', (...args) => {
    const number = arrives(args[0] as CollectiveCall<unknown>);
    const result = collectiveSync.apply(communicator, args);
    if (communicator.sequence >= number) leave(number);
    return result;
  });
  replace(methods, 'begin', (...args) => {
    const number = arrives(args[2] as CollectiveCall<unknown>);
    const operation = begin.apply(communicator, args) as GeneratorOperation<unknown>;
    if (communicator.sequence !== number) return operation;
    const { advance } = operation;
    let isOver = false;
    replace(operation, 'advance', () => {
      const done = advance.call(operation);
      if (done && !isOver) leave(number);
      isOver ||= done;
      return done;
    });
    return operation;
  });
}

function watchMessages(watch: RaceTeller, communicator: Communicator, key: string): void {
  const { group } = communicator;
  const methods = communicator as unknown as Methods;
  const { send, receive, receiveSync } = methods;
  const tagOf = (options: unknown): unknown => (options as { tag?: unknown } | undefined)?.tag ?? 0;
  const scopeOf = (options: unknown): string => `message ${key} ${String(tagOf(options))}`;
  replace(methods, 'send', (...args) => {
    const [buffer, target, options] = args;
    watch.touchArray(buffer, false, 'send');
    const peer = group.worldRanks[target as number];
    if (peer !== undefined) watch.begin(scopeOf(options)).add(peer).tell(RaceEvent.SENT);
    return send.apply(communicator, args);
  });
  const received = ([buffer, source, options]: readonly unknown[]): void => {
    const peer = group.worldRanks[source as number];
    if (peer !== undefined) watch.begin(scopeOf(options)).add(peer).tell(RaceEvent.RECEIVED);
    watch.touchArray(buffer, true, 'receive');
  };
  /** A message that does not fit is taken all the same. */
  const failed = (args: readonly unknown[], error: unknown): never => {
    if ((error as { code?: unknown }).code === 'ERR_TRUNCATE') received(args);
    throw error;
  };
  replace(methods, 'receive', (...args) =>
    (receive.apply(communicator, args) as Promise<void>).then(
      () => received(args),
      (error: unknown) => failed(args, error),
    ),
  );
  replace(methods, 'receiveSync', (...args) => {
    try {
      receiveSync.apply(communicator, args);
    } catch (error) {
      failed(args, error);
    }
    received(args);
  });
}

/**
 * A superstep orders all of a computation's ranks.
 * @param key the same at all of them, and no other computation's
 */
export function watchSupersteps(watch: RaceTeller, bsp: object, key: string, rank: number, size: number): void {
  watchMeetings(watch, bsp, ['sync', 'syncSync', 'end', 'endSync'], { scope: `superstep ${key}`, place: rank, size });
  const { uid, pidsOf } = bsp as { readonly uid?: number; pidsOf?(): readonly number[] };
  if (uid === undefined || pidsOf === undefined) return;
  const pids = pidsOf.call(bsp);
  const unit = { scope: `superstep ${key} unit ${uid}`, place: pids.indexOf(rank), size: pids.length };
  watchMeetings(watch, bsp, ['usync', 'usyncSync'], unit);
}
