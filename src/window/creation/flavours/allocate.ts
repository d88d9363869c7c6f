/** `Window.allocate`: each rank's part is memory from the library, registered for the window. */
import { checkLength } from '../../../comm/allocated-memory.ts';
import type { Communicator } from '../../../comm/communicator.ts';
import { isTypedArrayConstructor, type TypedArrayConstructor } from '../../../datatype/base.ts';
import { argumentRangeError, argumentTypeError, show } from '../../../errors.ts';
import { beginWindow, type WindowInTheMaking } from '../begin.ts';
import { allocate, checkOptions, giveBack, type Offer } from '../offer.ts';
import type { WindowOptions } from '../parts.ts';

/** Throws only for what is wrong with the communicator: a refused argument ends the collective at all ranks. */
export function beginAllocate(
  comm: Communicator,
  type: TypedArrayConstructor,
  length: number,
  options: WindowOptions | undefined,
): WindowInTheMaking {
  const call = 'Window.allocate';
  return beginWindow(comm, call, 'allocate', options, (given) => {
    const offer = offerNothingYet(comm, call, type, length, given);
    return withMemory(comm, call, type, length, offer);
  });
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
