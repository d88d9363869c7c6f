/**
 * `Window.allocateShared`: parts that all ranks load and store. Without the hint `alloc_shared_noncontig` they lie
 * right behind each other in memory that the first rank allocates.
 */
import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArrayConstructor } from '../../datatype/base-types.ts';
import { RmaError } from '../../errors.ts';
import type { FenceKind } from '../../sync/fence/fence-kind.ts';
import { beginWindow, type WindowInTheMaking } from './begin-window.ts';
import { inForce, offerNothingYet, withMemory } from './offer.ts';
import type { WindowOptions } from './window-parts.ts';

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
    const asked = offerNothingYet(comm, call, type, length, given);
    // Memory that is loaded and stored needs no request, and no fence that waits for one.
    const fence = loadStore ? ({ moves }: FenceKind) => moves === 'immediately' : undefined;
    const offer = { ...asked, hints: inForce(comm, asked.hints, fence ? { fence } : {}) };
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
