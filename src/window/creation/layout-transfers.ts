/** What moves layouts of several pieces in a window with the hint `noncontiguous`; its target's end serves others. */
import type { Communicator, OwnChannel } from '../../collective/communicator.ts';
import { lookInWaits } from '../../job/looks.ts';
import { loadNative } from '../../native.ts';
import { HelpedTransfers } from '../../transfer/layouts/helped.ts';
import type { HelperConnections } from '../../transfer/layouts/helper-connections.ts';
import { hasHelper, serveBeside } from '../../transfer/layouts/host-assisted.ts';
import { type NoncontiguousName, needsSecond, needsTarget } from '../../transfer/layouts/layout-kinds.ts';
import { NoncontiguousTransfers } from '../../transfer/layouts/layout-moves.ts';
import { PackedTransfers } from '../../transfer/layouts/pack.ts';
import { SgrsTransfers } from '../../transfer/layouts/sgrs.ts';
import type { RemotePart } from '../../transfer/loads/remote-part.ts';
import { type LayoutStatistics, noMessages } from '../../transfer/requests/layout-statistics.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import type { Undo } from './undo.ts';

/**
 * @param channel nothing else goes through it
 * @param part this rank's part, or an error if it is gone
 * @param region the same for the device; a part of no bytes has none, and it is never asked for
 * @param helpers the connections to the helpers, if the provider has any and all ranks could be connected
 * @returns undefined if each piece is a request
 */
export function noncontiguousTransfers(
  comm: Communicator,
  name: NoncontiguousName,
  channel: OwnChannel,
  part: () => RemotePart,
  region: MemoryRegion | undefined,
  requests: RequestTransfer,
  helpers: HelperConnections | undefined,
  undo: Undo,
): NoncontiguousTransfers | undefined {
  const { messenger, processor, context } = comm.job;
  if (hasHelper(name, context)) {
    // No program of a target's has to look at anything.
    return helpers && new NoncontiguousTransfers(name, { sgrs: new HelpedTransfers(helpers) });
  }
  const packed = new PackedTransfers(channel, requests, part, loadNative());
  const sgrs = needsSecond(name)
    ? new SgrsTransfers(channel, requests, packed, region ?? { lkey: 0, address: 0 })
    : undefined;
  const movers = { pack: packed, ...(sgrs && { sgrs }) };
  const counts = (): LayoutStatistics => ({
    packed: packed.issued,
    layoutsSaid: sgrs?.said ?? 0,
    layoutsNamed: sgrs?.named ?? 0,
    ...(sgrs === undefined ? noMessages() : requests.second.counts),
  });
  const transfers = new NoncontiguousTransfers(name, movers, () => messenger.poll(), counts);
  undo.add(channel.listen((source, message) => transfers.take(source, message), true));
  undo.add(lookInWaits(comm.members, () => messenger.poll(), true));
  // Without a helper, a scheme that wants one has no messages (`availableHere`).
  if (!needsTarget(name) && sgrs !== undefined) undo.add(serveBeside(processor, messenger, requests, sgrs));
  return transfers;
}
