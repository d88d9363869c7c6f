/** What moves layouts of several pieces in a window with the hint `noncontiguous`; its target's end serves others. */
import type { Communicator, OwnChannel } from '../../comm/communicator.ts';
import { loadNative } from '../../native.ts';
import type { NoncontiguousName } from '../../transfer/noncontiguous/kinds.ts';
import { PackedTransfers } from '../../transfer/noncontiguous/pack.ts';
import { NoncontiguousTransfers } from '../../transfer/noncontiguous/transfers.ts';
import type { RemotePart } from '../../transfer/remote-part.ts';
import type { RequestTransfer } from '../../transfer/requests.ts';
import type { Undo } from './undo.ts';

/**
 * @param channel nothing else goes through it
 * @param part this rank's part, or an error if it is gone
 */
export function noncontiguousTransfers(
  comm: Communicator,
  name: NoncontiguousName,
  channel: OwnChannel,
  part: () => RemotePart,
  requests: RequestTransfer,
  undo: Undo,
): NoncontiguousTransfers {
  const { messenger, progress } = comm.job;
  const packed = new PackedTransfers(channel, requests, part, loadNative());
  undo.add(channel.listen((source, message) => packed.take(source, message)));
  const look = (): number => {
    messenger.poll();
    return Number.POSITIVE_INFINITY;
  };
  undo.add(progress.serve(look, true));
  return new NoncontiguousTransfers(name, packed, () => messenger.poll());
}
