/** `Window.create`: each rank's part is memory that the program has. */
import type { Communicator } from '../../collective/communicator.ts';
import { arrayOver, type RawMemory, refuseLost, type TypedArray, typeCodeOf } from '../../datatype/base-types.ts';
import { beginWindow, type WindowInTheMaking } from './begin-window.ts';
import { checkOptions } from './offer.ts';
import { offerOwnMemory } from './own-memory.ts';
import type { WindowOptions } from './window-parts.ts';

export function beginCreate(
  comm: Communicator,
  given: TypedArray | RawMemory | null,
  options: WindowOptions | undefined,
): WindowInTheMaking {
  const call = 'Window.create';
  return beginWindow(comm, call, 'create', options, (options) => {
    const memory = given === null ? new Uint8Array(0) : arrayOver(call, given);
    const { length } = memory;
    const array = typeCodeOf(given) < 0 ? {} : { given: given as TypedArray };
    const common = { ...checkOptions(comm, call, options, memory.BYTES_PER_ELEMENT), ...array };
    refuseLost(call, 'memory', memory, length);
    if (memory.byteLength === 0) return { ...common, local: memory, memory: undefined, discard: () => {} };
    const owner = comm.job.libraryMemory.get(memory.buffer);
    if (owner !== undefined) return { ...common, local: memory, memory: owner, discard: () => {} };
    return { ...common, local: memory, ...offerOwnMemory(comm, call, memory, common.hints) };
  });
}
