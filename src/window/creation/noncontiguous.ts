/** What moves layouts of several pieces in a window with the hint `noncontiguous`; its target's end serves others. */
import type { Communicator, OwnChannel } from '../../comm/communicator.ts';
import { lookInWaits } from '../../comm/looks.ts';
import { loadNative } from '../../native.ts';
import type { HelperConnections } from '../../transfer/helper-connections.ts';
import { HelpedTransfers } from '../../transfer/noncontiguous/helped.ts';
import { hasHelper, serveBeside } from '../../transfer/noncontiguous/host-assisted.ts';
import { type NoncontiguousName, needsSecond, needsTarget } from '../../transfer/noncontiguous/kinds.ts';
import { PackedTransfers } from '../../transfer/noncontiguous/pack.ts';
import { SgrsTransfers } from '../../transfer/noncontiguous/sgrs.ts';
import { type LayoutStatistics, noMessages } from '../../transfer/noncontiguous/statistics.ts';
import { NoncontiguousTransfers } from '../../transfer/noncontiguous/transfers.ts';
import type { RemotePart } from '../../transfer/remote-part.ts';
import type { RequestTransfer } from '../../transfer/requests.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import type { Undo } from './undo.ts';

/**
 * @param channel nothing else goes through it
 * @param part this rank's part, or an error if it is gone
 * @param region the same for the device; a part of no bytes has none, and nobody asks for it
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
    return helpers && new NoncontiguousTransfers(name, { sgrs: new HelpedTransfers(helpers) }, () => {});
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
  if (!needsTarget(name) && sgrs !== undefined) undo.add(serveBeside(processor!, messenger, requests, sgrs));
  return transfers;
}
