/**
 * Multicast groups of a modelled fabric: which queue pairs are attached to which.
 *
 * Tasks attach and detach, events look. What tasks do at one time is done before the next event, and a group is kept in
 * the order of members and queue pairs: so what an event finds does not depend on the order of the tasks.
 */
import { checkRoom } from '../../verbs/checks.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import { MOST_ATTACHED, MOST_GROUPS } from './modelled-limits.ts';

/** A queue pair that is attached. */
export interface Attached {
  readonly member: number;
  readonly number: number;
}

const NOBODY: readonly Attached[] = [];

export class Groups {
  readonly #all = new Map<string, Attached[]>();
  /** Groups that each member has queue pairs in. */
  readonly #groupsOf = new Map<number, number>();

  /** The queue pairs that are attached to the group of a GID, in order. */
  of(words: ArrayLike<number>): readonly Attached[] {
    return this.#all.get(key(words)) ?? NOBODY;
  }

  join(call: string, { address }: QueuePair, words: ArrayLike<number>): void {
    const { member, qpNumber: number } = address;
    const group = this.#all.get(key(words)) ?? [];
    const own = group.filter((one) => one.member === member).length;
    const groups = this.#groupsOf.get(member) ?? 0;
    if (own === 0) checkRoom(call, 'multicast groups', groups, MOST_GROUPS);
    checkRoom(call, 'attachments to one multicast group', own, MOST_ATTACHED);
    const after = group.findIndex((one) => one.member > member || (one.member === member && one.number > number));
    group.splice(after < 0 ? group.length : after, 0, { member, number });
    this.#all.set(key(words), group);
    if (own === 0) this.#groupsOf.set(member, groups + 1);
  }

  leave({ address }: QueuePair, words: ArrayLike<number>): void {
    this.#remove(key(words), address.member, address.qpNumber);
  }

  /** The queue pair is attached to nothing any more. */
  forget({ address }: QueuePair): void {
    for (const name of [...this.#all.keys()]) this.#remove(name, address.member, address.qpNumber);
  }

  #remove(name: string, member: number, number: number): void {
    const group = this.#all.get(name) ?? [];
    const at = group.findIndex((one) => one.member === member && one.number === number);
    if (at < 0) return;
    group.splice(at, 1);
    if (group.length === 0) this.#all.delete(name);
    if (!group.some((one) => one.member === member)) this.#groupsOf.set(member, this.#groupsOf.get(member)! - 1);
  }
}

function key(words: ArrayLike<number>): string {
  return Array.from(words).join();
}
