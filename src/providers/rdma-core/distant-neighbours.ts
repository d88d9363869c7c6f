/** Ranks of one host put and get by loads and stores, in a job on several hosts. */
import { RmaError, show } from '../../errors.ts';
import type { Native } from '../../native.ts';
import type { HeapAddress } from '../process-heap.ts';
import { NeighbourHeap } from './neighbours.ts';

/** What stands on a rank's card of its memory. */
interface OnCard {
  readonly heap?: Omit<HeapAddress, 'pid'>;
}

/** `ONESIDED_NEIGHBOURS=device`: no, as with all others. */
function neighboursMap(): boolean {
  const how = process.env['ONESIDED_NEIGHBOURS'] ?? 'memory';
  if (how === 'memory' || how === 'device') return how === 'memory';
  throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `ONESIDED_NEIGHBOURS must be memory or device, not ${show(how)}`);
}

export class DistantNeighbours {
  /** `undefined`: neighbours reach each other by the device. */
  readonly heap: NeighbourHeap | undefined;

  /** @param rank of this process in its job */
  constructor(native: Native, rank: number) {
    this.heap = neighboursMap() ? new NeighbourHeap(native, rank) : undefined;
  }

  get onCard(): OnCard {
    const address = this.heap?.address;
    return address === undefined ? {} : { heap: { fd: address.fd, key: address.key } };
  }

  /**
   * @param cards what all say of themselves, by rank
   * @param processes those of this host, by rank
   */
  setPeers(cards: readonly object[], processes: readonly (number | undefined)[]): void {
    this.heap?.setPeers(
      (cards as readonly OnCard[]).map(({ heap }, other) => {
        const pid = processes[other];
        return pid !== undefined && heap ? { pid, ...heap } : undefined;
      }),
    );
  }
}
