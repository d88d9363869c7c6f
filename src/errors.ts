/**
 * Every error the library throws on purpose, in one file.
 *
 * A wrong JavaScript argument (not a typed array, a fractional rank) is a `TypeError` or `RangeError`; everything else
 * is an {@link RmaError}. Both carry a `code`. The message names the call, the window, the target rank, the byte range
 * or the epoch it is about, and what to do.
 */
import { types } from 'node:util';
import { bytesSeen } from './intrinsics.ts';
import { beginAtProgram } from './program-line.ts';

/**
 * The code of an error: MPI's error classes that apply (MPI 4.1, section 9.4), and the library's own.
 * docs/guide/errors.md explains each.
 */
export type ErrorCode =
  | 'ERR_ARG'
  | 'ERR_ASSERT'
  | 'ERR_BUFFER'
  | 'ERR_COLLECTIVE'
  | 'ERR_COMM'
  | 'ERR_DAMAGED'
  | 'ERR_DISP'
  | 'ERR_GROUP'
  | 'ERR_INFO_KEY'
  | 'ERR_INFO_VALUE'
  | 'ERR_LOCKTYPE'
  | 'ERR_OP'
  | 'ERR_PROVIDER_UNAVAILABLE'
  | 'ERR_RANK'
  | 'ERR_RMA_ATTACH'
  | 'ERR_RMA_CONFLICT'
  | 'ERR_RMA_RACE'
  | 'ERR_RMA_FLAVOR'
  | 'ERR_RMA_RANGE'
  | 'ERR_RMA_RANK_FAILED'
  | 'ERR_RMA_SHARED'
  | 'ERR_RMA_SYNC'
  | 'ERR_RMA_TIMEOUT'
  | 'ERR_RMA_WOULD_DEADLOCK'
  | 'ERR_SERVICE'
  | 'ERR_SERVICE_FULL'
  | 'ERR_SERVICE_LEFT'
  | 'ERR_SERVICE_MISMATCH'
  | 'ERR_SIZE'
  | 'ERR_TRUNCATE'
  | 'ERR_TYPE'
  | 'ERR_VERBS'
  | 'ERR_VERSION'
  | 'ERR_WIN';

/** An error of the library: for example, a broken rule of MPI, a failed rank, or an expired timeout. */
export class RmaError extends Error {
  /** `RmaError`, also of subclasses. */
  override readonly name = 'RmaError';
  /** What kind of error it is: `ERR_RMA_SYNC`, … */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    beginAtProgram(this);
  }
}

/** A rank that this rank waits for has failed. */
export class RankFailedError extends RmaError {
  /** The failed rank, in the job's world. */
  readonly rank: number;

  constructor(rank: number, message: string, options?: ErrorOptions) {
    super('ERR_RMA_RANK_FAILED', message, options);
    this.rank = rank;
  }

  /** The same, for another caller: with a stack of its own. */
  again(): RankFailedError {
    return new RankFailedError(this.rank, this.message, 'cause' in this ? { cause: this.cause } : undefined);
  }
}

/**
 * A connection with a rank of the job's world is lost: a request completed with an error, after which a queue pair
 * carries nothing any more. The cause may be the rank's end, which is then reported instead.
 */
export class LostConnectionError extends RmaError {
  readonly rank: number;
  /** Whether the device has no answer from the rank, or cannot send: then nothing says that the rank still lives. */
  readonly unreachable: boolean;

  constructor(rank: number, unreachable: boolean, message: string) {
    super('ERR_VERBS', message);
    this.rank = rank;
    this.unreachable = unreachable;
  }

  /** The same, for another caller: with a stack of its own. */
  again(): LostConnectionError {
    return new LostConnectionError(this.rank, this.unreachable, this.message);
  }
}

/**
 * A completion queue of this rank has lost completions, or its device has failed: of what goes by it nothing is known
 * any more.
 */
export class LostQueueError extends RmaError {
  constructor(message: string, options?: ErrorOptions) {
    super('ERR_VERBS', message, options);
  }

  /** The same, for another caller: with a stack of its own. */
  again(): LostQueueError {
    return new LostQueueError(this.message, { cause: this.cause });
  }
}

/** A `TypeError` with a code: the argument is of the wrong kind. */
export function argumentTypeError(
  message: string,
  code: ErrorCode = 'ERR_ARG',
  options?: ErrorOptions,
): TypeError & { code: ErrorCode } {
  return beginAtProgram(Object.assign(new TypeError(message, options), { code }));
}

/** A `RangeError` with a code: the argument is of the right kind, its value is out of range. */
export function argumentRangeError(
  message: string,
  code: ErrorCode = 'ERR_ARG',
  options?: ErrorOptions,
): RangeError & { code: ErrorCode } {
  return beginAtProgram(Object.assign(new RangeError(message, options), { code }));
}

/**
 * Reads from an object of the caller's, which may run the caller's code (getters, proxies); if that throws, the
 * argument is wrong.
 * @param what the argument, for the message
 */
export function reading<T>(call: string, what: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw argumentTypeError(`${call}: ${what} cannot be read`, 'ERR_ARG', { cause });
  }
}

/** A copy of an array argument, read once. `what` names it in the message. */
export function readList(call: string, what: string, list: unknown): unknown[] {
  if (!isArray(list)) throw argumentTypeError(`${call}: ${what} must be an array, not ${show(list)}`);
  const array = list as readonly unknown[];
  return reading(call, what, () => Array.from({ length: array.length }, (_, i) => array[i]));
}

/** Shows a value in an error message: short, and never by calling the value's own code. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case 'bigint':
      return `${value}n`;
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'function':
      return 'a function';
    case 'symbol':
      return 'a symbol';
    default:
      if (value === null) return 'null';
      if (types.isDataView(value)) return `a DataView of ${bytesSeen(value)} bytes`;
      if (ArrayBuffer.isView(value)) return `a typed array of ${bytesSeen(value)} bytes`;
      return isArray(value) ? 'an array' : 'an object';
  }
}

/** `Array.isArray` throws for one kind of value: a proxy that was revoked. */
function isArray(value: unknown): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
