/**
 * The memory of a service: one file (memfd) that every member has open and mapped. The kernel keeps it as long as one
 * of them lives, and frees it with the last one, whatever ended it.
 *
 *   header      what the file is, and news of members
 *   members     a row for each place
 *   catalogue   a row for each thing that members share, by name, and where its memory is in the file
 *   …           that memory, in whole pages, in the order in which things were made
 *
 * All words are changed by `Atomics`, the names in the catalogue by plain stores before the row's STATE says READY.
 */
import { fstatSync } from 'node:fs';
import type { Native } from '../native.ts';

export const Header = Object.freeze({
  MAGIC: 0,
  LAYOUT: 1,
  PLACES: 2,
  /** Rises with each member that comes, leaves or is found dead. Members sleep on it. */
  NEWS: 16,
  /** The lock of the catalogue, and of the end of the file. */
  CATALOGUE_LOCK: 32,
  /** Pages of the file that are given away. */
  PAGES: 33,
});

/** Words of the row of a place: a cache line, so that a member's words are its own. */
export const Place = Object.freeze({
  /**
   * Lowest two bits: a `PlaceState`; above: how many members have had the place, which with the number of the place
   * names a member for good. In one word, so that a compare-and-swap means one member.
   */
  LIFE: 0,
  PID: 1,
  /** The descriptor of this file in that process. */
  FD: 2,
  /** How the member before this one ended: its `PlaceState`. */
  LAST: 3,
});

export const PlaceState = Object.freeze({
  /** Nobody has had it. */
  FREE: 0,
  MEMBER: 1,
  LEFT: 2,
  DEAD: 3,
});

/** Words of the row of a name. */
export const Entry = Object.freeze({
  /** An `EntryState`. */
  STATE: 0,
  /** Which kind of thing it is: `KINDS` of catalogue.ts. */
  KIND: 1,
  PAGE: 2,
  PAGES: 3,
  NAME_BYTES: 4,
  /** What the thing was made with: doubles. */
  FACTS: 8,
  NAME: 24,
});

export const EntryState = Object.freeze({ FREE: 0, READY: 1 });

const MAGIC = 0x6f737631;
const LAYOUT = 2;

export const MOST_PLACES = 1000;
export const MOST_NAMES = 1024;
/** ASCII, so as many characters. */
export const NAME_BYTES = 100;
/** Facts that a thing can have been made with. */
export const MOST_FACTS = 8;
const HEADER_WORDS = 64;
export const PLACE_WORDS = 16;
export const ENTRY_WORDS = 64;

export interface ServiceMemory {
  readonly native: Native;
  /** The file, open as long as this process is a member. */
  readonly fd: number;
  readonly places: number;
  readonly header: Int32Array;
  readonly members: Int32Array;
  readonly catalogue: Int32Array;
  /** The bytes of the catalogue. */
  readonly names: Uint8Array;
}

function bytesOf(places: number): number {
  return 4 * (HEADER_WORDS + places * PLACE_WORDS + MOST_NAMES * ENTRY_WORDS);
}

export function pagesOf(native: Native, bytes: number): number {
  return Math.ceil(bytes / native.pageBytes);
}

/** Makes the memory of a new service. */
export function createMemory(native: Native, places: number): ServiceMemory {
  const fd = native.memoryCreate('onesided-service');
  const pages = pagesOf(native, bytesOf(places));
  native.memoryResize(fd, pages * native.pageBytes);
  const memory = viewMemory(native, fd, places);
  Atomics.store(memory.header, Header.PLACES, places);
  Atomics.store(memory.header, Header.PAGES, pages);
  Atomics.store(memory.header, Header.LAYOUT, LAYOUT);
  Atomics.store(memory.header, Header.MAGIC, MAGIC);
  return memory;
}

/** The memory behind a descriptor of its file; `undefined` if it is something else, or was written over. */
export function openMemory(native: Native, fd: number, places: number): ServiceMemory | undefined {
  // What is mapped beyond the end of a file must not be touched.
  if (!(places >= 1 && places <= MOST_PLACES) || fstatSync(fd).size < bytesOf(places)) return undefined;
  const memory = viewMemory(native, fd, places);
  const { header } = memory;
  const fits = header[Header.MAGIC] === MAGIC && header[Header.LAYOUT] === LAYOUT && header[Header.PLACES] === places;
  return fits ? memory : undefined;
}

function viewMemory(native: Native, fd: number, places: number): ServiceMemory {
  const bytes = bytesOf(places);
  const buffer = native.memoryMap(fd, 0, bytes);
  const catalogueAt = 4 * (HEADER_WORDS + places * PLACE_WORDS);
  return {
    native,
    fd,
    places,
    header: new Int32Array(buffer, 0, HEADER_WORDS),
    members: new Int32Array(buffer, 4 * HEADER_WORDS, places * PLACE_WORDS),
    catalogue: new Int32Array(buffer, catalogueAt, MOST_NAMES * ENTRY_WORDS),
    names: new Uint8Array(buffer, catalogueAt, 4 * MOST_NAMES * ENTRY_WORDS),
  };
}
