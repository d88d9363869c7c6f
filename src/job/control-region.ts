/**
 * The control memory of a job on one host: a few words a rank, shared by all ranks and the launcher.
 *
 * Processes inherit it as a memory file (`ONESIDED_CONTROL_FD`), worker threads get it as a `SharedArrayBuffer`. It
 * holds who is there, who failed, the fabric's table (bells, descriptors), and the numbers that two ranks need to
 * connect.
 *
 * Writers: a rank's slot is written by that rank, except for FAIL_KIND, FAIL_VALUE and FAILED. The first to learn of
 * its failure (the launcher, or a waiting rank that finds it gone) writes these three, in this order. Then the header's
 * FAILED is set, once, by compare-and-swap, and NEWS rises: a reader that loads NEWS and then the slots has all
 * failures that NEWS counts. Everything is read and written with `Atomics`.
 */
import type { Native } from '../native.ts';
import { ROW_WORDS } from '../providers/emulator/bells.ts';
import { ringBytes } from '../trace/trace-ring.ts';

/** The most ranks of a job. */
export const MAX_RANKS = 4096;

const CONTROL_MAGIC = 0x4f4e4553;
/** Raised whenever a word changes its meaning: ranks of another layout are refused. */
export const CONTROL_LAYOUT = 5;

/** Indices of the header's 32-bit words. */
export const Header = Object.freeze({
  MAGIC: 0,
  LAYOUT: 1,
  SIZE: 2,
  /** 0, or 1 + the rank that failed first. */
  FAILED: 3,
  /** How often a rank was declared failed. */
  NEWS: 4,
  /** Ranks that have joined. */
  JOINED: 5,
  /** Ranks that have finalized. */
  FINALIZED: 6,
  /** Records of each rank's ring, which follow in the file; 0: the job is not traced. */
  TRACE_EVENTS: 7,
  /** 1: ranks are asked to say what they wait in (reports.ts). */
  ASKED: 8,
  /** The process of the launcher, and when it started, as of a rank. */
  LAUNCHER_PID: 9,
  LAUNCHER_START: 10,
  /** What ranks record: bits of {@link Records}. */
  RECORDS: 11,
  /** 1: this copy hears of no failures any more (control-copy.ts). */
  DEAF: 12,
});
/** What ranks record in their rings. Where calls are recorded, supersteps are, too. */
export const Records = Object.freeze({ CALLS: 1, SUPERSTEPS: 2, PROBES: 4 });
const HEADER_WORDS = 64;
/** Pages have at most so many bytes. */
const PAGE = 65536;

/** Words of a rank's slot. */
export const Slot = Object.freeze({
  PID: 0,
  /** One of {@link RankState}. */
  STATE: 1,
  /** When the process started (clock ticks since boot, /proc/PID/stat field 22), to tell a reused PID: two halves. */
  START_LO: 2,
  START_HI: 3,
  /** One of {@link FailKind}. */
  FAIL_KIND: 4,
  /** Exit code or signal number. */
  FAIL_VALUE: 5,
  /** Raised by a peer that published its queue pair for this rank: "look at the connection table". */
  CONNECT_BELL: 6,
  /** Bytes of what the rank has said it waits in; 0: it has not. */
  REPORTED: 7,
  /** 1: it has failed, as FAIL_KIND and FAIL_VALUE say. */
  FAILED: 8,
});
const SLOT_WORDS = 16;
/** Room for what a rank says it waits in. */
export const REPORT_BYTES = 512;

export const RankState = Object.freeze({ ABSENT: 0, JOINED: 1, FINALIZED: 2 });

/** Why a rank counts as failed. */
export const FailKind = Object.freeze({
  NONE: 0,
  /** The process exited with a non-zero code. */
  EXIT_CODE: 1,
  /** The process was killed by a signal. */
  SIGNAL: 2,
  /** It exited with code 0, but others may still wait for it: no `finalize()`. */
  NO_FINALIZE: 3,
  /** A peer found its process gone. */
  VANISHED: 4,
  /** The launcher is gone. */
  LAUNCHER_GONE: 5,
  /** Its `init` ended with an error. */
  GAVE_UP: 6,
  /** A peer's device gets no answer from it; the value is that peer's rank. */
  UNREACHABLE: 7,
  /** It called `abort`; the value is the exit code for all ranks. */
  ABORTED: 8,
});

/** Views of one control memory. */
export interface Control {
  readonly size: number;
  readonly header: Int32Array;
  /** `slots[rank * slotWords + Slot.X]`. */
  readonly slots: Int32Array;
  readonly slotWords: number;
  /** The fabric's table, one row a rank; its contents belong to the fabric. */
  readonly fabric: Int32Array;
  /**
   * `connections[connectionAt(from, to)]`: 0, or `from`'s queue pair for `to`: number × 2 + (1 if ready to receive).
   */
  readonly connections: Int32Array;
  connectionAt(from: number, to: number): number;
  /** What ranks wait in, {@link REPORT_BYTES} a rank; empty where there is no launcher to ask. */
  readonly reports: Uint8Array;
}

/**
 * How much of a job's fabric and connections a control memory holds: all of it, where all ranks share the memory; in
 * one rank's own copy, the fabric and the connections that this rank has to know, so that the size grows with the
 * number of ranks and not with its square; or nothing.
 */
export type ControlContents = 'all' | 'none' | { readonly rank: number };

export function controlBytes(size: number, contents: ControlContents = 'all'): number {
  const words = HEADER_WORDS + size * SLOT_WORDS + fabricWords(size, contents) + connectionWords(size, contents);
  return 4 * words + reportBytes(size, contents);
}

function reportBytes(size: number, contents: ControlContents): number {
  return contents === 'all' ? size * REPORT_BYTES : 0;
}

function fabricWords(size: number, contents: ControlContents): number {
  return contents === 'none' ? 0 : size * ROW_WORDS;
}

function connectionWords(size: number, contents: ControlContents): number {
  return contents === 'none' ? 0 : contents === 'all' ? size * size : 2 * size;
}

export function viewControl(buffer: ArrayBufferLike, size: number, contents: ControlContents = 'all'): Control {
  let at = 0;
  const take = (words: number): Int32Array => {
    const view = new Int32Array(buffer, at, words);
    at += 4 * words;
    return view;
  };
  return {
    size,
    header: take(HEADER_WORDS),
    // Rows of 128 bytes stay on cache lines of their own: HEADER_WORDS and SLOT_WORDS are multiples of 16 words.
    slots: take(size * SLOT_WORDS),
    slotWords: SLOT_WORDS,
    fabric: take(fabricWords(size, contents)),
    connections: take(connectionWords(size, contents)),
    connectionAt: typeof contents === 'string' ? (from, to) => from * size + to : placesOf(contents.rank, size),
    reports: new Uint8Array(buffer, at, reportBytes(size, contents)),
  };
}

/** First what `rank` says to each of the others, then what each of them says to it. */
function placesOf(rank: number, size: number): Control['connectionAt'] {
  return (from, to) => (from === rank ? to : size + from);
}

/**
 * Where a rank's ring begins in the file of the control memory, in a job that is traced; with `rank` = `size`, where
 * the last one ends.
 */
export function ringPlace(rank: number, size: number, events: number): number {
  return Math.ceil(controlBytes(size) / PAGE) * PAGE + rank * ringBytes(events);
}

/** Whether this is control memory, of whatever version and number of ranks. */
export function isControl(buffer: ArrayBufferLike): boolean {
  return buffer.byteLength >= 4 * HEADER_WORDS && new Int32Array(buffer, 0, 1)[Header.MAGIC] === CONTROL_MAGIC;
}

/**
 * Control memory in a file of this process, which ranks inherit or open.
 * @param events records of each of the rings behind it, in which the ranks record; 0: none
 * @param records what they record: bits of `Records`
 */
export function createControl(
  native: Native,
  size: number,
  { events, records }: { readonly events: number; readonly records: number },
): { control: Control; fd: number } {
  const fd = native.memoryCreate('onesided-control');
  native.memoryResize(fd, events === 0 ? controlBytes(size) : ringPlace(size, size, events));
  const control = viewControl(native.memoryMap(fd, 0, controlBytes(size)), size);
  Atomics.store(control.header, Header.TRACE_EVENTS, events);
  Atomics.store(control.header, Header.RECORDS, records);
  formatControl(control);
  return { control, fd };
}

/** Writes the header of fresh (zeroed) control memory. */
export function formatControl(control: Control): void {
  Atomics.store(control.header, Header.LAYOUT, CONTROL_LAYOUT);
  Atomics.store(control.header, Header.SIZE, control.size);
  Atomics.store(control.header, Header.MAGIC, CONTROL_MAGIC);
}

/**
 * Declares a rank failed. Only the first failure of a rank is kept, and the first of a job as *the* failure.
 * @returns whether this was the first of the rank
 */
export function declareFailed(control: Control, rank: number, kind: number, value: number): boolean {
  const { header, slots } = control;
  const slot = rank * control.slotWords;
  if (Atomics.compareExchange(slots, slot + Slot.FAIL_KIND, FailKind.NONE, kind) === FailKind.NONE) {
    Atomics.store(slots, slot + Slot.FAIL_VALUE, value);
  }
  const isFirst = Atomics.compareExchange(slots, slot + Slot.FAILED, 0, 1) === 0;
  Atomics.compareExchange(header, Header.FAILED, 0, rank + 1);
  // The second one to come does this, too: the first may have been killed before it got here.
  Atomics.add(header, Header.NEWS, 1);
  return isFirst;
}
