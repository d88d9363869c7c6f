/**
 * Which members a service has, as one of them sees it, and the names by which words of shared memory tell who holds
 * something.
 *
 * A name is the place, and how many members had had it (20 bits: a million members of one place later, a name would
 * come back). So what a dead member held is never taken for its successor's.
 *
 * A member is dead when its process has not the service's file open any more under the descriptor that the row says:
 * the kernel closes descriptors of a process that ends, by whatever, when no thread of it runs any more, and of a
 * thread that ends. A process that was stopped has its descriptors, and is not dead. A number that another process got
 * since leads to another file.
 *
 * Who writes a row: LIFE becomes that of a new member only under the lock of the notices, by that member, behind the
 * other words of the row, which nobody reads unless LIFE says MEMBER before and after. From MEMBER to LEFT it goes by
 * the member, from MEMBER to DEAD by whoever finds it dead, both by a compare-and-swap of the whole word: so it is one
 * member that is told of, once, and never its successor.
 */
import { fstatSync, readFileSync, statSync } from 'node:fs';
import { RmaError, show } from '../errors.ts';
import { Header, PLACE_WORDS, Place, PlaceState, type ServiceMemory } from './service-memory.ts';

const STATE_BITS = 2;
const STATE_MASK = (1 << STATE_BITS) - 1;
const PLACE_BITS = 10;
const PLACE_MASK = (1 << PLACE_BITS) - 1;
const GENERATION_MASK = (1 << 20) - 1;
/** Set in a word that names its holder: others sleep until it is free. */
export const AWAITED = 1 << 30;

/** A member, as programs see it. */
export interface Member {
  readonly place: number;
  readonly pid: number;
}

/** More sleepers than a word can have. */
const EVERYONE = 0x7fffffff;

export class Members {
  readonly memory: ServiceMemory;
  readonly place: number;
  /** The name of this member: not 0, and without AWAITED. */
  readonly name: number;
  /** This member has left. */
  #isLeft = false;
  readonly #service: string;
  readonly #device: number;
  readonly #inode: number;

  /**
   * @param service its name, for messages
   * @param place this member's, which it has taken
   */
  constructor(service: string, memory: ServiceMemory, place: number) {
    this.#service = service;
    this.memory = memory;
    this.place = place;
    this.name = nameOf(place, lifeOf(memory, place));
    const { dev, ino } = fstatSync(memory.fd);
    this.#device = dev;
    this.#inode = ino;
  }

  /** Those that are members now: by what they have said, and not by a look whether they live. */
  list(): Member[] {
    const { memory } = this;
    const found: Member[] = [];
    for (let place = 0; place < memory.places; place++) {
      const { life, pid } = rowOf(memory, place);
      if (isMember(life)) found.push({ place, pid });
    }
    return found;
  }

  /** Looks whether each member lives. Some microseconds a member. */
  inspect(): void {
    for (let place = 0; place < this.memory.places; place++) {
      if (place === this.place) continue;
      const life = lifeOf(this.memory, place);
      if (isMember(life)) this.#isDead(place, life);
    }
  }

  /**
   * Whether the member that a word names is a member no more.
   * @param word 0 is nobody's; AWAITED does not matter
   */
  isGone(word: number): boolean {
    const place = placeOf(word);
    // Otherwise no member has such a name: something has written over it.
    if (place < 0 || place >= this.memory.places) return true;
    const life = lifeOf(this.memory, place);
    if (nameOf(place, life) !== (word & ~AWAITED) || !isMember(life)) return true;
    return place !== this.place && this.#isDead(place, life);
  }

  /** @param life of a member, as it was seen */
  #isDead(place: number, life: number): boolean {
    const { memory } = this;
    if (isOpen(memory, place, this.#device, this.#inode)) return false;
    // Meanwhile it may have left, and another one may have come: then the compare-and-swap changes nothing.
    declareDead(memory, place, life);
    return true;
  }

  /** The process of the member that a word names, for messages. */
  describe(word: number): string {
    const place = placeOf(word);
    if (place < 0 || place >= this.memory.places) return 'which is none';
    const { pid } = rowOf(this.memory, place);
    return `process ${pid}${isProcessStopped(pid) ? ', which is stopped' : ''}`;
  }

  /** Whether the process of the member that a word names is stopped: by a signal, or by a debugger. */
  isStopped(word: number): boolean {
    const place = placeOf(word);
    if (place < 0 || place >= this.memory.places) return false;
    const { pid } = rowOf(this.memory, place);
    return pid !== process.pid && isProcessStopped(pid);
  }

  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** Throws if this member has left: what it does then would be no member's. */
  checkIn(call: string): void {
    if (!this.#isLeft) return;
    const who = `this member (place ${this.place}) has left the service ${show(this.#service)}`;
    throw new RmaError('ERR_SERVICE_LEFT', `${call}: ${who}; join again, and ask for it anew`);
  }

  /** This member is none any more. */
  leave(): void {
    this.#isLeft = true;
    end(this.memory, this.place, lifeOf(this.memory, this.place), PlaceState.LEFT);
  }
}

/** By the kernel: state T or t. A process that was frozen (docker pause) does not show it. */
function isProcessStopped(pid: number): boolean {
  try {
    // The name before the state is in parentheses, and may have some itself.
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return /^[Tt]/.test(text.slice(text.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

/** Of the member that a word names. */
export function placeOf(word: number): number {
  return (word & PLACE_MASK) - 1;
}

export function isMember(life: number): boolean {
  return (life & STATE_MASK) === PlaceState.MEMBER;
}

function nameOf(place: number, life: number): number {
  return (place + 1) | (((life >>> STATE_BITS) & GENERATION_MASK) << PLACE_BITS);
}

function lifeOf({ members }: ServiceMemory, place: number): number {
  return Atomics.load(members, place * PLACE_WORDS + Place.LIFE);
}

/** The words of a row, all of one member if it has one. */
export function rowOf(memory: ServiceMemory, place: number): { life: number; pid: number; last: number } {
  const row = place * PLACE_WORDS;
  for (;;) {
    const life = lifeOf(memory, place);
    const pid = Atomics.load(memory.members, row + Place.PID);
    const last = Atomics.load(memory.members, row + Place.LAST);
    if (lifeOf(memory, place) === life) return { life, pid, last };
  }
}

function isOpen({ members }: ServiceMemory, place: number, device: number, inode: number): boolean {
  const row = place * PLACE_WORDS;
  const pid = Atomics.load(members, row + Place.PID);
  const fd = Atomics.load(members, row + Place.FD);
  try {
    const { dev, ino } = statSync(`/proc/${pid}/fd/${fd}`);
    return dev === device && ino === inode;
  } catch (error) {
    // Members are processes of this user. If the file may not be looked at, the number is another user's by now.
    const { code } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(code ?? '')) return false;
    throw error;
  }
}

function declareDead(memory: ServiceMemory, place: number, life: number): void {
  end(memory, place, life, PlaceState.DEAD);
}

/** @param life of the member whose end it is */
function end(memory: ServiceMemory, place: number, life: number, state: number): void {
  const word = place * PLACE_WORDS + Place.LIFE;
  const ended = (life & ~STATE_MASK) | state;
  if (isMember(life) && Atomics.compareExchange(memory.members, word, life, ended) === life) tell(memory);
}

/** All that sleep on NEWS look again. */
function tell({ native, header }: ServiceMemory): void {
  Atomics.add(header, Header.NEWS, 1);
  native.futexWake(header, Header.NEWS, EVERYONE);
}

/**
 * Takes the first place that has no living member, for this process. Under the lock of the notices.
 * @returns the place; `undefined` if all have living members
 */
export function takePlace(memory: ServiceMemory): number | undefined {
  const { members, places, fd } = memory;
  const { dev, ino } = fstatSync(fd);
  for (let place = 0; place < places; place++) {
    const row = place * PLACE_WORDS;
    const before = lifeOf(memory, place);
    if (isMember(before)) {
      // A thread of this process that ended has left its descriptor's number to this one.
      const isOwn = members[row + Place.PID] === process.pid && members[row + Place.FD] === fd;
      if (!isOwn && isOpen(memory, place, dev, ino)) continue;
      declareDead(memory, place, before);
    }
    // No other process makes a member of it meanwhile.
    const life = lifeOf(memory, place);
    Atomics.store(members, row + Place.LAST, life & STATE_MASK);
    Atomics.store(members, row + Place.PID, process.pid);
    Atomics.store(members, row + Place.FD, fd);
    Atomics.store(members, row + Place.LIFE, ((life & ~STATE_MASK) + (1 << STATE_BITS)) | PlaceState.MEMBER);
    tell(memory);
    return place;
  }
  return undefined;
}
