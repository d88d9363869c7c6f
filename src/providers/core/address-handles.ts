/** Address handles: whose they are, how long they live, and what is refused for them. */
import { RmaError, show } from '../../errors.ts';
import type { AddressHandle, AhAttributes } from '../../verbs/address-handle.ts';
import { checkInteger } from '../../verbs/checks.ts';
import { gidText, isMulticast, parseGid, parseGroup } from '../../verbs/gid.ts';

/** What an address handle leads to. */
export interface AddressWay {
  /** The GID's words. */
  readonly words: Uint32Array;
  readonly lid: number;
  /** The context with this number; −1 if it is a group, or not known to be one of the fabric's. */
  readonly member: number;
}

export class AddressHandleCore<Pd extends { children: number } = { children: number }> implements AddressHandle {
  readonly pd: Pd;
  /** Names it in requests; not 0. */
  readonly number: number;
  readonly gid: string;
  readonly lid: number;
  readonly member: number;
  /** The GID's words. */
  readonly words: Uint32Array;
  readonly isMulticast: boolean;
  live = true;
  readonly #release: () => void;

  constructor(pd: Pd, number: number, way: AddressWay, release: () => void) {
    this.pd = pd;
    this.number = number;
    this.words = way.words;
    this.isMulticast = isMulticast(way.words);
    this.gid = gidText(way.words);
    this.lid = way.lid;
    this.member = way.member;
    this.#release = release;
    pd.children++;
  }

  destroy(): void {
    if (!this.live) return;
    this.#release();
    this.live = false;
    this.pd.children--;
  }
}

/** The address handles of a context, by number. */
export class AddressHandles<Pd extends { children: number }> {
  readonly #all = new Map<number, AddressHandleCore<Pd>>();
  #last = 0;

  get size(): number {
    return this.#all.size;
  }

  get(number: number): AddressHandleCore<Pd> | undefined {
    return this.#all.get(number);
  }

  make(pd: Pd, way: AddressWay): AddressHandleCore<Pd> {
    do this.#last = (this.#last % (2 ** 31 - 1)) + 1;
    while (this.#all.has(this.#last));
    const number = this.#last;
    const handle = new AddressHandleCore(pd, number, way, () => this.#all.delete(number));
    this.#all.set(number, handle);
    return handle;
  }
}

/** What `createAh` calls itself in messages. */
export const CREATE_AH = 'create an address handle';

/**
 * Where attributes lead to.
 * @param members contexts of the fabric
 * @param addressOf the address of a member
 * Errors: `ERR_VERBS`.
 */
export function wayOf(
  attributes: AhAttributes,
  members: number,
  addressOf: (member: number) => { readonly gid: string; readonly lid: number },
): AddressWay {
  const call = CREATE_AH;
  if (typeof attributes !== 'object' || attributes === null) {
    throw new RmaError('ERR_VERBS', `${call}: the attributes must be an object, not ${show(attributes)} (EINVAL)`);
  }
  if ('member' in attributes) {
    const { member } = attributes;
    checkInteger(call, 'member', member, 0, members - 1);
    const { gid, lid } = addressOf(member);
    return { words: parseGid(call, gid), lid, member };
  }
  const { gid, lid = 0 } = attributes;
  const words = parseGid(call, gid);
  if (isMulticast(words)) parseGroup(call, gid, lid);
  else checkInteger(call, 'lid', lid, 0, 0xffff);
  return { words, lid, member: -1 };
}

/** The first words of the GIDs of devices that are memory: link-local addresses, with the member behind them. */
const PREFIX = [0xfe800000, 0, 0x020000ff];

/** The GID of a member of a fabric that is memory. */
export function memberGid(member: number): string {
  return gidText([...PREFIX, 0xfe000000 + member]);
}

/**
 * As `wayOf`, on a fabric that is memory.
 * Errors: `ERR_VERBS`, also for a GID that is neither a member's nor a group's.
 */
export function wayInMemory(attributes: AhAttributes, members: number): AddressWay {
  const way = wayOf(attributes, members, (member) => ({ gid: memberGid(member), lid: 0 }));
  if (way.member >= 0 || isMulticast(way.words)) return way;
  const member = way.words[3] - 0xfe000000;
  if (PREFIX.every((word, i) => word === way.words[i]) && member >= 0 && member < members) return { ...way, member };
  throw new RmaError('ERR_VERBS', `${CREATE_AH}: there is no port with GID ${gidText(way.words)} (EHOSTUNREACH)`);
}

/** The group of a number on a fabric that is memory: transient, of the site (RFC 4291, 2.7). */
export function groupInMemory(number: number): { readonly gid: string; readonly lid: number } {
  checkInteger('multicast group', 'the number', number, 0, 0xffff);
  return Object.freeze({ gid: gidText([0xff150000, 0, 0, number]), lid: 0 });
}
