/**
 * What the members of a service share, by name: whoever asks first makes it, and all others get the same. It stays as
 * long as the service.
 *
 * A row is written under the lock of the catalogue, its STATE last. A member that dies in between leaves a row that is
 * FREE, which the next one writes over, and perhaps pages of the file that nobody uses.
 */
import { fstatSync } from 'node:fs';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { Waiting } from '../wait/waiting.ts';
import { PATIENCE_MS, RobustLock } from './robust-lock.ts';
import { asking, mostMemory } from './scarcity.ts';
import type { Members } from './service-members.ts';
import {
  ENTRY_WORDS,
  Entry,
  EntryState,
  Header,
  MOST_FACTS,
  MOST_NAMES,
  NAME_BYTES,
  pagesOf,
  type ServiceMemory,
} from './service-memory.ts';

/** Kinds of things, by their numbers in the catalogue. Numbers are never used again for something else. */
const KINDS = ['', 'counter', 'mutex', 'queue', 'map', 'limiter', 'window'] as const;
export type Kind = Exclude<(typeof KINDS)[number], ''>;

/** A number that a thing was made with, and what it says. */
export interface Fact {
  readonly value: number;
  /** Any number of this fact in words: `capacity 5`, `no ttl`. */
  readonly say: (value: number) => string;
}

/** A fact that a number says by itself. */
export function fact(what: string, value: number): Fact {
  return { value, say: (number) => `${what} ${number}` };
}

/** What a thing was made with: all who ask for its name must give the same. */
export interface Shape {
  readonly kind: Kind;
  readonly bytes: number;
  /** How many of them are mapped at once, from the beginning; default: all. */
  readonly mapped?: number;
  /** In the order of the catalogue; `MOST_FACTS` at most. */
  readonly facts: readonly Fact[];
  /** What has to be done with its memory, which is all zeros, before anybody else sees it. */
  begin?(memory: ArrayBuffer): void;
}

/** The memory of a thing, and where it begins in the service's file. */
export interface Opened {
  readonly memory: ArrayBuffer;
  readonly at: number;
}

export class Catalogue {
  readonly #service: string;
  readonly #members: Members;
  readonly #facts: Float64Array;
  readonly #lock: RobustLock;

  /** @param service its name, for messages */
  constructor(service: string, members: Members) {
    this.#service = service;
    this.#members = members;
    const { buffer, byteOffset, length } = members.memory.catalogue;
    this.#facts = new Float64Array(buffer, byteOffset, length / 2);
    this.#lock = new RobustLock(members.memory.header, Header.CATALOGUE_LOCK, members);
  }

  /**
   * The memory of a thing, zeroed if this call has made it. A row that is READY does not change, so only who makes one
   * needs the lock. While another member has it, the event loop goes on.
   * @param call for messages
   */
  async open(call: string, name: unknown, shape: Shape): Promise<Opened> {
    if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name)) {
      const rule = `1 to ${NAME_BYTES} letters, digits, dots, dashes or underscores`;
      throw argumentTypeError(`${call}: a name must be ${rule}, not ${show(name)}`);
    }
    this.#refuseUnmappable(call, name, shape);
    let row = this.#find(name);
    if (row === undefined) {
      const waiting = new Waiting(call, undefined, PATIENCE_MS);
      await this.#lock.acquireLater(waiting, `the catalogue of the service ${show(this.#service)}`);
      try {
        row = this.#find(name) ?? asking(call, this.#cannot('make', name, shape), () => this.#make(call, name, shape));
      } finally {
        this.#lock.release();
      }
    }
    this.#refuseOther(call, name, row, shape);
    const { memory } = this.#members;
    const at = memory.catalogue[row + Entry.PAGE] * memory.native.pageBytes;
    // What is mapped beyond the end of a file must not be touched.
    if (at <= 0 || at + shape.bytes > fstatSync(memory.fd).size) throw this.#damaged(call, name);
    const map = (): ArrayBuffer => memory.native.memoryMap(memory.fd, at, shape.mapped ?? shape.bytes);
    return { memory: asking(call, this.#cannot('map', name, shape), map), at };
  }

  /** Before it is made: a name of which nobody can use what is behind it would stay. */
  #refuseUnmappable(call: string, name: string, shape: Shape): void {
    const { maxMapBytes } = this.#members.memory.native;
    if ((shape.mapped ?? shape.bytes) <= maxMapBytes) return;
    const why = `Node ${process.versions.node} can have ${maxMapBytes} in one piece; use Node 22 or later`;
    throw argumentRangeError(`${call}: ${this.#cannot('make', name, shape)}: ${why}, or ask for less`, 'ERR_SIZE');
  }

  #cannot(does: string, name: string, { kind, bytes }: Shape): string {
    return `cannot ${does} the ${kind} ${show(name)} of the service ${show(this.#service)}, of ${bytes} bytes`;
  }

  #damaged(call: string, name: string): RmaError {
    const what = `the catalogue of the service ${show(this.#service)} says nonsense of ${show(name)}`;
    const cure = `end its members, or take its name away: onesided service remove ${this.#service}`;
    return new RmaError('ERR_DAMAGED', `${call}: ${what}: a member has written over it; ${cure}`);
  }

  #find(name: string): number | undefined {
    for (let i = 0; i < MOST_NAMES; i++) {
      const row = i * ENTRY_WORDS;
      if (Atomics.load(this.#members.memory.catalogue, row + Entry.STATE) !== EntryState.READY) return undefined;
      if (nameAt(this.#members.memory, row) === name) return row;
    }
    return undefined;
  }

  #make(call: string, name: string, shape: Shape): number {
    const { kind, bytes, facts, begin } = shape;
    // Of windows, only the parts are used whose places have members.
    if (kind !== 'window' && bytes > mostMemory()) {
      const most = `this process can have ${mostMemory()} at most: its limit, or the memory of the machine`;
      throw new RmaError('ERR_SERVICE', `${call}: ${this.#cannot('make', name, shape)}: ${most}; ask for less`);
    }
    const { native, fd, header, catalogue, names } = this.#members.memory;
    let i = 0;
    while (i < MOST_NAMES && Atomics.load(catalogue, i * ENTRY_WORDS + Entry.STATE) === EntryState.READY) i++;
    if (i === MOST_NAMES) {
      throw new RmaError(
        'ERR_SERVICE',
        `${call}: the service ${show(this.#service)} has ${MOST_NAMES} names, which is all it can have`,
      );
    }
    const row = i * ENTRY_WORDS;
    const page = Atomics.load(header, Header.PAGES);
    const pages = pagesOf(native, bytes);
    // The end of the file, or less if the last one to make something died before it said so.
    if (page <= 0 || page * native.pageBytes > fstatSync(fd).size) throw this.#damaged(call, name);
    native.memoryResize(fd, (page + pages) * native.pageBytes);
    Atomics.store(header, Header.PAGES, page + pages);
    begin?.(native.memoryMap(fd, page * native.pageBytes, bytes));
    catalogue.set([KINDS.indexOf(kind), page, pages, name.length], row + Entry.KIND);
    for (let k = 0; k < MOST_FACTS; k++) this.#facts[factAt(row, k)] = facts[k]?.value ?? 0;
    for (let k = 0; k < name.length; k++) names[4 * (row + Entry.NAME) + k] = name.charCodeAt(k);
    Atomics.store(catalogue, row + Entry.STATE, EntryState.READY);
    return row;
  }

  /** Throws if the name stands for something else. */
  #refuseOther(call: string, name: string, row: number, shape: Shape): void {
    const { catalogue } = this.#members.memory;
    const kind = KINDS[catalogue[row + Entry.KIND]] ?? 'thing of an unknown kind';
    const refused = (theirs: string, ours: string): RmaError =>
      new RmaError(
        'ERR_SERVICE_MISMATCH',
        `${call}: ${show(name)} of the service ${show(this.#service)} was made as a ${kind}${theirs}, and this call ` +
          `asks for ${ours}; give the same, or another name`,
      );
    if (kind !== shape.kind) throw refused('', `a ${shape.kind}`);
    for (const [i, { value, say }] of shape.facts.entries()) {
      const theirs = this.#facts[factAt(row, i)];
      if (theirs !== value) throw refused(` with ${say(theirs)}`, say(value));
    }
  }
}

/** Where a fact of a row is, in doubles of the catalogue. */
function factAt(row: number, number: number): number {
  return (row + Entry.FACTS) / 2 + number;
}

/** Of a row that is READY. */
function nameAt({ catalogue, names }: ServiceMemory, row: number): string {
  const from = 4 * (row + Entry.NAME);
  return String.fromCharCode(...names.subarray(from, from + Math.min(NAME_BYTES, catalogue[row + Entry.NAME_BYTES])));
}

/** All that the members of a service share. */
export function namesIn(memory: ServiceMemory): { name: string; kind: string; bytes: number }[] {
  const found: { name: string; kind: string; bytes: number }[] = [];
  const { catalogue, native } = memory;
  for (let row = 0; row < MOST_NAMES * ENTRY_WORDS; row += ENTRY_WORDS) {
    if (Atomics.load(catalogue, row + Entry.STATE) !== EntryState.READY) break;
    const kind = KINDS[catalogue[row + Entry.KIND]] ?? 'unknown';
    found.push({ name: nameAt(memory, row), kind, bytes: catalogue[row + Entry.PAGES] * native.pageBytes });
  }
  return found;
}
