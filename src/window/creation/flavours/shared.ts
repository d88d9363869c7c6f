/**
 * `Window.allocateShared`: parts that all ranks load and store. Without the hint `alloc_shared_noncontig` they lie
 * right behind each other in memory that the first rank allocates.
 */
import type { Communicator } from '../../../comm/communicator.ts';
import type { TypedArrayConstructor } from '../../../datatype/base.ts';
import { RmaError } from '../../../errors.ts';
import { fenceNamed } from '../../../sync/fence/kinds.ts';
import { beginWindow, type WindowInTheMaking } from '../begin.ts';
import type { WindowOptions } from '../parts.ts';
import { offerNothingYet, withMemory } from './allocate.ts';

export function beginAllocateShared(
  comm: Communicator,
  type: TypedArrayConstructor,
  length: number,
  options: WindowOptions | undefined,
): WindowInTheMaking {
  const call = 'Window.allocateShared';
  return beginWindow(comm, call, 'shared', options, (given) => {
    const { loadStore } = comm.job.context.capabilities;
    if (!loadStore) {
      refuseStrangers(comm, call);
      // Each part lies in its own rank's memory, which that rank's device knows.
      given = { ...given, info: { ...given.info, alloc_shared_noncontig: true } };
    }
    const offer = offerNothingYet(comm, call, type, length, given);
    if (loadStore && fenceNamed(offer.hints.fence).moves !== 'immediately') {
      throw new RmaError(
        'ERR_INFO_VALUE',
        `${call}: fence "${offer.hints.fence}" requires a window that is accessed by requests, ` +
          'but ranks access a shared window by loads and stores; use fence "immediate" or Window.allocate',
      );
    }
    return offer.hints.alloc_shared_noncontig
      ? withMemory(comm, call, type, length, offer)
      : { ...offer, wanted: length };
  });
}

/** Throws unless this rank can load and store the memory of all ranks. */
function refuseStrangers(comm: Communicator, call: string): void {
  const stranger = comm.group.worldRanks.findIndex((_, rank) => !comm.shares(rank));
  if (stranger < 0) return;
  throw new RmaError(
    'ERR_RMA_SHARED',
    `${call}: rank ${comm.rank} reaches rank ${stranger} through a device and cannot load and store its memory; ` +
      "use comm.splitType('shared') to select ranks that can, or use Window.allocate",
  );
}
