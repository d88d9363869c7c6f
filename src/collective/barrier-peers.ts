/** How ranks that have steps of a barrier with each other begin it: each makes its part, and tells them of it. */
import type { Channel } from '../message/message-channel.ts';
import type { BarrierSchedule } from '../verbs/adapter-barrier.ts';
import { peersOf } from './barrier-algorithms.ts';
import { anyOf } from './collectives.ts';
import { receive } from './receive.ts';

const NOTHING = new Uint8Array(0);

/** What a rank makes, and what the others need of it. */
interface Meeting<T> {
  make(): T;
  /** What a rank that it has a step with is told. Not empty. */
  tell(made: T, peer: number): Uint8Array;
  /** What that rank has told. */
  hear(made: T, peer: number, told: Uint8Array): void;
}

/**
 * Collective: all ranks go through it, also one that could not make its part: it tells nothing, and all learn of it.
 * @param channel nothing else goes through it meanwhile
 * @returns what was made; `undefined` if another rank could not make its part
 * Errors: what this rank's `make`, `tell` or `hear` throws, once all ranks have come so far.
 */
export function* meetPeers<T>(
  schedule: BarrierSchedule,
  channel: Channel,
  { make, tell, hear }: Meeting<T>,
): Generator<void, T | undefined> {
  const peers = peersOf(schedule);
  let made: T | undefined;
  const messages = new Map<number, Uint8Array>();
  let failed = false;
  let failure: unknown;
  const attempt = (work: () => void): void => {
    if (failed) return;
    try {
      work();
    } catch (error) {
      failed = true;
      failure = error;
    }
  };
  attempt(() => {
    made = make();
    for (const peer of peers) messages.set(peer, tell(made, peer));
  });
  for (const peer of peers) channel.send(peer, failed ? NOTHING : messages.get(peer)!);
  for (const peer of peers) {
    const told = (yield* receive(channel, peer, -1, 'barrier')).slice();
    if (told.length > 0) attempt(() => hear(made!, peer, told));
  }
  const someFailed = yield* anyOf(channel, failed, () => {});
  if (failed) throw failure;
  return someFailed ? undefined : made;
}
