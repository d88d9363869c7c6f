/** `Window.allocate`: each rank's part is memory from the library, registered for the window. */
import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArrayConstructor } from '../../datatype/base-types.ts';
import { beginWindow, type WindowInTheMaking } from './begin-window.ts';
import { offerNothingYet, withMemory } from './offer.ts';
import type { WindowOptions } from './window-parts.ts';

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
