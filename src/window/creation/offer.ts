/** What a rank brings in when a window is made, and the options that all flavours of windows have. */
import { checkLength } from '../../collective/allocated-memory.ts';
import { barriersOf } from '../../collective/barrier-kinds.ts';
import type { Communicator } from '../../collective/communicator.ts';
import { isTypedArrayConstructor, type TypedArray, type TypedArrayConstructor } from '../../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../../errors.ts';
import type { FenceKind } from '../../sync/fence/fence-kind.ts';
import { defaultFence, fenceNamed } from '../../sync/fence/fence-kinds.ts';
import type { LockKind } from '../../sync/lock/lock-kind.ts';
import { DEFAULT_LOCK, lockNamed } from '../../sync/lock/lock-kinds.ts';
import type { Share } from '../../transfer/served/user-memory.ts';
import type { Memory } from '../../verbs/memory.ts';
import { readWait } from '../../wait/operation.ts';
import { type Hints, readInfo } from './window-info.ts';
import type { WindowOptions } from './window-parts.ts';

export interface Offer {
  /** This rank's part; where the first rank allocates for all, an empty array of the right type until it has. */
  readonly local: TypedArray;
  readonly given?: TypedArray;
  readonly memory: Memory | undefined;
  /** Its part is memory of its own, which no other rank can map. */
  readonly share?: Share;
  /** Elements of a part that the first rank allocates. */
  readonly wanted?: number;
  readonly dispUnit: number;
  readonly hints: Hints;
  /** Gives back what was made for the window. */
  readonly discard: () => void;
}

/** The options, read once. */
export function readOptions(call: string, options: WindowOptions | undefined): WindowOptions {
  if (options === undefined) return {};
  const wait = readWait(call, options, ['info', 'dispUnit', 'name']);
  const { info, dispUnit, name } = reading(call, 'the options', () => ({
    info: options.info,
    dispUnit: options.dispUnit,
    name: options.name,
  }));
  if (name !== undefined && typeof name !== 'string') {
    throw argumentTypeError(`${call}: name must be a string, not ${show(name)}`);
  }
  return {
    ...wait,
    ...(info !== undefined && { info }),
    ...(dispUnit !== undefined && { dispUnit }),
    ...(name && { name }),
  };
}

export function checkOptions(
  comm: Communicator,
  call: string,
  options: WindowOptions,
  elementSize: number,
): { dispUnit: number; hints: Hints } {
  const { dispUnit = elementSize } = options;
  if (typeof dispUnit !== 'number')
    throw argumentTypeError(`${call}: dispUnit must be a number, not ${show(dispUnit)}`, 'ERR_DISP');
  if (!Number.isInteger(dispUnit) || dispUnit < 0 || dispUnit > 2 ** 31 - 1) {
    throw argumentRangeError(`${call}: dispUnit must be 0 … 2^31 − 1 bytes, not ${show(dispUnit)}`, 'ERR_DISP');
  }
  return {
    dispUnit,
    hints: readInfo(call, options.info, {
      immediateCompletion: comm.job.context.capabilities.immediateCompletion,
      size: comm.size,
      virtualTime: comm.job.tasks !== undefined,
      barriers: barriersOf(comm.job.context.capabilities),
    }),
  };
}

/**
 * The hints in force where a flavour of windows cannot follow some: those have no effect, as all hints about what a
 * window does not do. All ranks come to the same result, from the same hints.
 */
export function inForce(
  comm: Communicator,
  hints: Hints,
  can: { fence?(kind: FenceKind): boolean; lock?(kind: LockKind): boolean },
): Hints {
  const { immediateCompletion } = comm.job.context.capabilities;
  const { fence, lock } = hints;
  return {
    ...hints,
    fence: can.fence?.(fenceNamed(fence)) === false ? defaultFence({ immediateCompletion, size: comm.size }) : fence,
    lock: can.lock?.(lockNamed(lock)) === false ? DEFAULT_LOCK : lock,
  };
}

/** Memory from the library. Errors: `ERR_SIZE`. */
export function allocate(comm: Communicator, call: string, bytes: number): Memory {
  try {
    return comm.job.allocateMemory(bytes);
  } catch (cause) {
    throw new RmaError(
      'ERR_SIZE',
      `${call}: cannot allocate ${bytes} bytes of shared memory: ${(cause as Error).message}`,
      { cause },
    );
  }
}

export function giveBack(comm: Communicator, memory: Memory): void {
  comm.job.libraryMemory.delete(memory.buffer);
  memory.free();
}

/** An offer of the right type and options, without memory. Errors: `TypeError`, `RangeError`, those of options. */
export function offerNothingYet(
  comm: Communicator,
  call: string,
  type: TypedArrayConstructor,
  length: number,
  given: WindowOptions,
): Offer {
  if (!isTypedArrayConstructor(type)) {
    throw argumentTypeError(
      `${call}: the element type must be a typed-array constructor, not ${show(type)}`,
      'ERR_TYPE',
    );
  }
  checkLength(call, length);
  const common = checkOptions(comm, call, given, type.BYTES_PER_ELEMENT);
  if (!Number.isSafeInteger(length * type.BYTES_PER_ELEMENT))
    throw argumentRangeError(`${call}: ${length} elements exceed the limit of 2^53 − 1 bytes`, 'ERR_SIZE');
  return { ...common, local: new type(new ArrayBuffer(0)), memory: undefined, discard: () => {} };
}

/** The same with memory of its own for the part. */
export function withMemory(
  comm: Communicator,
  call: string,
  type: TypedArrayConstructor,
  length: number,
  offer: Offer,
): Offer {
  const bytes = length * type.BYTES_PER_ELEMENT;
  if (bytes === 0) return offer;
  const memory = allocate(comm, call, bytes);
  return { ...offer, local: new type(memory.buffer, 0, length), memory, discard: () => giveBack(comm, memory) };
}
