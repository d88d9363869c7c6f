/**
 * What each message of a collective says about the call that it belongs to, so that ranks that call different
 * collectives learn of it instead of taking each other's numbers.
 *
 * A signature is 16 bytes in front of the payload: the number of the call on its communicator (32 bits), kind, element
 * type, operation and root (8, 4, 4 and 16 bits), and the number of elements (64 bits). It holds what MPI requires to
 * be the same at all ranks, so two signatures of one call are the same bytes, and one loop compares them. What may
 * differ from rank to rank (the counts of `gatherv`, the color of `split`) is not in it.
 */
import { arrayOf } from '../datatype/base-types.ts';
import { Op } from '../datatype/op.ts';

export const SIGNATURE_BYTES = 16;

/** What a kind of call has besides its name. */
interface Kind {
  readonly root?: true;
  /** The number of elements is the same at all ranks. */
  readonly count?: true;
  /** In the place of a root, a checksum of the number of elements of each rank, where those matter. */
  readonly counts?: true;
  /** Instead of the number of elements: which window of the communicator it is about. */
  readonly window?: true;
}

/** Every collective that exchanges messages. The order gives the numbers. */
const KINDS = {
  init: {},
  finalize: {},
  broadcast: { root: true, count: true },
  reduce: { root: true, count: true },
  allreduce: { count: true },
  reduceScatter: { count: true, counts: true },
  scan: { count: true },
  exscan: { count: true },
  gather: { root: true, count: true },
  gatherv: { root: true },
  scatter: { root: true, count: true },
  scatterv: { root: true },
  allgather: { count: true },
  alltoall: { count: true },
  alltoallv: {},
  split: {},
  splitType: {},
  dup: {},
  'Window.create': {},
  'Window.allocate': {},
  'Window.allocateShared': {},
  'Window.createDynamic': {},
  'win.fence': { window: true },
  'win.free': { window: true },
  'bsp.begin': {},
  'bsp.end': {},
  'sync.create': {},
} as const satisfies Record<string, Kind>;

export type CollectiveName = keyof typeof KINDS;

/** Of all of them; some are no methods of a communicator. */
export const COLLECTIVE_NAMES = Object.keys(KINDS) as readonly CollectiveName[];
const NUMBERS = Object.fromEntries(COLLECTIVE_NAMES.map((name, number) => [name, number])) as Readonly<
  Record<CollectiveName, number>
>;
const OPS = Object.values(Op);
/** In place of an element type or an operation. */
const NONE = 15;
/** In place of kind, element type, operation and root: the sender has given its call up. The payload says why. */
const WITHDRAWN = 0xffffffff;
/** In the same place: the sender waits in a barrier. The number of elements is the number of that barrier. */
const IN_BARRIER = 0xfffffffe;
/** In the same place: the sender waits in a fence. The number of elements is the window; the payload says the rest. */
const IN_FENCE = 0xfffffffd;
/** In the same place: the sender has found fences and other collectives in different orders. The payload says which. */
const OUT_OF_STEP = 0xfffffffc;

/** What MPI requires to be the same at all ranks. */
export interface Agreed {
  readonly name: CollectiveName;
  /** `TypeCode` of the elements. */
  readonly type?: number;
  readonly op?: Op;
  readonly root?: number;
  /** Elements; for calls on windows, the window's number on the communicator, from 1. */
  readonly count?: number;
}

/** The signature of the calls of one communicator, one after the other, in the same bytes. */
export class Signature {
  readonly bytes = new Uint8Array(SIGNATURE_BYTES);
  readonly #words = new Uint32Array(this.bytes.buffer);
  readonly #count = new Float64Array(this.bytes.buffer, 8, 1);

  /**
   * @param sequence the number of the call on its communicator, from 1, or 0 for what sets it up; it may wrap around
   */
  write(agreed: Agreed, sequence: number): void {
    const { type = NONE, op, root = 0, count = 0 } = agreed;
    this.#words[0] = sequence;
    this.#words[1] = (NUMBERS[agreed.name] << 24) | (type << 20) | ((op === undefined ? NONE : op.code) << 16) | root;
    this.#count[0] = count;
  }
}

/**
 * The signature of the message by which a rank says that it has given up the call with this signature.
 * @param barriers that it had called before
 */
export function withdrawalOf(signature: Uint8Array, barriers: number): Uint8Array {
  const bytes = signature.slice();
  new Uint32Array(bytes.buffer)[1] = WITHDRAWN;
  new Float64Array(bytes.buffer, 8, 1)[0] = barriers;
  return bytes;
}

/** A barrier of a rank: what comes before it. */
export interface PlacedBarrier {
  /** Its number among the barriers of the communicator, from 1. */
  readonly number: number;
  /** The number of the last collective that was called before. */
  readonly sequence: number;
}

/** The message by which a rank says that it waits in a barrier. */
export function barrierMessage({ number, sequence }: PlacedBarrier): Uint8Array {
  const bytes = new Uint8Array(SIGNATURE_BYTES);
  new Uint32Array(bytes.buffer, 0, 2).set([sequence, IN_BARRIER]);
  new Float64Array(bytes.buffer, 8, 1)[0] = number;
  return bytes;
}

/** Whether this message belongs to no collective: what it says, the functions below read. */
export function isAside(message: Uint8Array): boolean {
  const what = whatOf(message);
  return what >= OUT_OF_STEP && what < WITHDRAWN;
}

/** The barrier that the sender waits in, if that is what this message says. */
export function readBarrier(message: Uint8Array): PlacedBarrier | undefined {
  if (whatOf(message) !== IN_BARRIER) return undefined;
  return { number: countOf(message), sequence: sequenceOf(message) };
}

/** A fence of a rank, and what it has called so far, that fence included. */
export interface PlacedFence {
  /** Which window of the communicator, from 1. */
  readonly window: number;
  /** Its number among the fences of that window, from 1. */
  readonly number: number;
  /** Fences of all windows. */
  readonly fences: number;
  readonly barriers: number;
  /** The number of the last collective. */
  readonly sequence: number;
}

/** The message by which a rank says that it waits in a fence. */
export function fenceMessage({ window, number, fences, barriers, sequence }: PlacedFence): Uint8Array {
  const bytes = new Uint8Array(SIGNATURE_BYTES + 24);
  new Uint32Array(bytes.buffer, 0, 2).set([sequence, IN_FENCE]);
  new Float64Array(bytes.buffer, 8).set([window, number, fences, barriers]);
  return bytes;
}

/** The fence that the sender waits in, if that is what this message says. */
export function readFence(message: Uint8Array): PlacedFence | undefined {
  if (whatOf(message) !== IN_FENCE) return undefined;
  const [window, number, fences, barriers] = new Float64Array(message.slice(8).buffer);
  return { window, number, fences, barriers, sequence: sequenceOf(message) };
}

/**
 * The message by which a rank says that it has found calls in different orders, and why.
 * @param fences fences are among them
 */
export function outOfStepMessage(reason: string, fences: boolean): Uint8Array {
  const payload = Buffer.from(reason);
  const bytes = new Uint8Array(SIGNATURE_BYTES + payload.length);
  new Uint32Array(bytes.buffer, 0, 2).set([fences ? 1 : 0, OUT_OF_STEP]);
  bytes.set(payload, SIGNATURE_BYTES);
  return bytes;
}

/** What such a message says. */
export function readOutOfStep(message: Uint8Array): { readonly reason: string; readonly fences: boolean } {
  return { reason: Buffer.from(message.subarray(SIGNATURE_BYTES)).toString(), fences: sequenceOf(message) === 1 };
}

/** The barriers that the sender had called before the call that it gives up, if this message says that. */
export function readWithdrawn(message: Uint8Array): number | undefined {
  return whatOf(message) === WITHDRAWN ? countOf(message) : undefined;
}

/** Kind, element type, operation and root. */
function whatOf(message: Uint8Array): number {
  return (message[4] | (message[5] << 8) | (message[6] << 16) | (message[7] << 24)) >>> 0;
}

function countOf(message: Uint8Array): number {
  return new Float64Array(message.slice(8, SIGNATURE_BYTES).buffer)[0];
}

/** Why a rank has given its call up, if that is what this message says. */
export function readWithdrawal(message: Uint8Array): string | undefined {
  return whatOf(message) === WITHDRAWN ? Buffer.from(message.subarray(SIGNATURE_BYTES)).toString() : undefined;
}

/** Whether a message begins with this signature. */
export function isSigned(message: Uint8Array, signature: Uint8Array): boolean {
  for (let i = 0; i < SIGNATURE_BYTES; i++) if (message[i] !== signature[i]) return false;
  return true;
}

/** The number of a message's call on its communicator. */
export function sequenceOf(message: Uint8Array): number {
  return message[0] | (message[1] << 8) | (message[2] << 16) | (message[3] << 24);
}

/** The call, as a program would write it: `allreduce(Float64Array of 4, SUM)`. */
export function describeSignature(message: Uint8Array): string {
  const copy = message.slice(0, SIGNATURE_BYTES).buffer;
  const [, what] = new Uint32Array(copy);
  const [count] = new Float64Array(copy, 8);
  const name = COLLECTIVE_NAMES[what >>> 24];
  const kind: Kind = KINDS[name];
  const type = (what >>> 20) & 15;
  const op = (what >>> 16) & 15;
  const parts: string[] = [];
  if (type !== NONE) parts.push(`${arrayOf(type).name}${kind.count ? ` of ${count}` : ''}`);
  if (op !== NONE) parts.push(OPS.find(({ code }) => code === op)!.name);
  if (kind.root) parts.push(`root ${what & 0xffff}`);
  if (kind.counts && (what & 0xffff) !== 0) parts.push(`counts with checksum ${(what & 0xffff).toString(16)}`);
  const call = `${name}(${parts.join(', ')})`;
  return kind.window ? `${call} of the ${ordinal(count)} window` : call;
}

/** `1st`, `2nd`, `3rd`, `4th`, `11th`, … */
export function ordinal(n: number): string {
  const tens = n % 100;
  const suffix = tens > 10 && tens < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
  return `${n}${suffix}`;
}

/** A checksum of counts, from 1 to 2^16 − 1. */
export function checksumOf(counts: readonly number[]): number {
  let sum = 0;
  for (const count of counts) sum = (Math.imul(sum ^ (count | 0), 0x9e3779b1) + Math.floor(count / 2 ** 32)) | 0;
  return (sum >>> 16) ^ (sum & 0xffff) || 1;
}
