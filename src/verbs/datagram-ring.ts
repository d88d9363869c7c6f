/**
 * The send queue of a queue pair of type UD: it takes sends only, and each must have been given an address.
 */
import { checkInteger } from './checks.ts';
import { refusal, WorkRequestRing, WrField } from './work-request-ring.ts';

/** The greatest number of a queue pair, which has 24 bits. */
const MOST_QPN = 2 ** 24 - 1;
/** The greatest key of a datagram: keys with the highest of 32 bits are the kernel's. */
export const MOST_QKEY = 2 ** 31 - 1;

export class DatagramRing extends WorkRequestRing {
  override rdma(): void {
    this.abort();
    throw refusal('a queue pair of type UD sends datagrams only; RDMA needs one of type RC');
  }

  override atomic(): void {
    this.abort();
    throw refusal('a queue pair of type UD sends datagrams only; atomics need one of type RC');
  }

  override send(opcode: number, wrId: number, flags: number, immData: number): void {
    super.send(opcode, wrId, flags, immData);
    this.u32[this.current + WrField.AH] = 0;
  }

  override setUdAddr(ah: number, remoteQpn: number, remoteQkey: number): void {
    const w = this.current;
    try {
      checkInteger('post send', 'remoteQpn', remoteQpn, 1, MOST_QPN);
      checkInteger('post send', 'remoteQkey', remoteQkey, 0, MOST_QKEY);
    } catch (error) {
      this.abort();
      throw error;
    }
    const { u32 } = this;
    u32[w + WrField.AH] = ah;
    u32[w + WrField.REMOTE_QPN] = remoteQpn;
    u32[w + WrField.REMOTE_QKEY] = remoteQkey;
  }

  override complete(): void {
    for (let count = this.tail; count !== this.next; count = (count + 1) | 0) {
      if (this.u32[this.wordsOf(count) + WrField.AH] !== 0) continue;
      this.abort();
      throw refusal('a datagram needs an address; call wrSetUdAddr() for each request');
    }
    super.complete();
  }
}
