/**
 * Puts and gets of layouts that a helper beside the other rank's program serves (hint `host-assisted`, on devices;
 * src/verbs/helper.ts): as in sgrs.ts, with lists in the place of layouts, and nothing that the target's program does.
 *
 *   PUT lists   ->   READY   ->   messages      the helper has posted receives
 *   GET lists   ->   messages                   the origin has posted receives before
 *
 * This rank knows both layouts, so it cuts both into lists of the same lengths (matching.ts), and says the target's. Of
 * the groups of a put or get, `HELPER_GROUPS` may be under way to a rank, each with its own place in memory for the
 * request. Answers of a helper come in the order of the requests, and so do messages: nothing is numbered.
 *
 * Order. A helper posts receives, and then its answer. The origin sends when the answer has come, so messages find
 * their receives. When its sends are complete, the device has written the target's part. As with RDMA writes, the
 * target's program finds the bytes after the origin's flush and whatever the two synchronize with. The helper reads and
 * writes nothing of the part itself.
 *
 * What cannot go this way (the device does not register the origin) goes by a request for each piece. That way does not
 * need the target's program either.
 */
import type { Side } from '../../datatype/sides.ts';
import { HELPER_GROUP, HELPER_GROUPS, HelperRequest, HelperRequestWriter } from '../../verbs/helper.ts';
import { ByRank } from '../requests/by-rank.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import type { Entries, LocalPlace, SecondConnection } from '../requests/second-connections.ts';
import { GroupedTransfer, GroupLane, takeTurns } from './group-lanes.ts';
import type { HelperConnections } from './helper-connections.ts';
import type { Mover } from './layout-moves.ts';
import { entriesOf, Matching } from './matching.ts';

const NOWHERE: LocalPlace = { lkey: 0, address: 0 };
const NO_BYTES: readonly number[] = [0];
const noEntries: Entries = () => {};

class Transfer extends GroupedTransfer {
  /** The target's pieces, in the order in which they are moved. */
  readonly targets: Entries = entriesOf(this.to, 0);
}

/** What this rank has to do with another's helper. */
class Lane extends GroupLane<Transfer> {
  /** By which the helper is asked, and answers. */
  readonly control: SecondConnection;
  /** Where a request is written, and as requests name it; those that are free. */
  readonly slots: { readonly writer: HelperRequestWriter; readonly place: LocalPlace }[] = [];
  readonly free: number[] = [];

  constructor(connections: HelperConnections, rank: number, takeTurns: () => void) {
    super(connections.requests, takeTurns);
    const { control, data } = connections.endTo(rank);
    this.control = control;
    this.connection = data;
    const { memory, region } = connections.memoryFor(rank);
    for (let slot = 0; slot < HELPER_GROUPS; slot++) {
      const at = slot * connections.requestBytes;
      const writer = new HelperRequestWriter(memory.buffer, at, connections.entries);
      this.slots.push({ writer, place: { lkey: region.lkey, address: region.address + at } });
      this.free.push(slot);
    }
  }
}

export class HelpedTransfers implements Mover {
  readonly #requests: RequestTransfer;
  readonly #entries: number;
  readonly #lanes: ByRank<Lane>;

  constructor(connections: HelperConnections) {
    this.#requests = connections.requests;
    this.#entries = connections.entries;
    this.#lanes = new ByRank((rank) => {
      const lane: Lane = new Lane(connections, rank, () => this.#takeTurns(lane));
      return lane;
    });
  }

  /** The arguments are those of `RequestTransfer.put` and `get`. */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): void {
    const lane = this.#lanes.of(rank);
    lane.begin(new Transfer(puts, origin, from, rank, at, to), () => lane.advance());
  }

  #takeTurns(lane: Lane): void {
    takeTurns(lane.sends);
    while (lane.waiting.length > 0 && lane.underWay < HELPER_GROUPS && this.#ask(lane, lane.waiting.first!));
  }

  /** Asks for the next group of a transfer, the first of its lane. @returns false if that has to wait */
  #ask(lane: Lane, transfer: Transfer): boolean {
    const { second } = this.#requests;
    const { control } = lane;
    const data = lane.connection!;
    const { puts, origin, from, to, at } = transfer;
    const mayReceive = puts ? second.mayReceive(control, 1) : second.mayReceive(data, HELPER_GROUP);
    if (lane.free.length === 0 || !mayReceive || !second.maySend(control, 1)) return false;
    if (!this.#hold(lane, transfer)) return lane.waiting.first !== transfer;
    transfer.matching ??= new Matching(from, to, this.#entries, this.#requests.maxMsgSize);
    const lengths = transfer.matching.next(HELPER_GROUP);
    const slot = lane.free.pop()!;
    const { writer, place } = lane.slots[slot];
    writer.begin(puts ? HelperRequest.PUT : HelperRequest.GET);
    for (const length of lengths) {
      transfer.targets(length, (offset, bytes) => writer.piece(at + offset, bytes));
      writer.endMessage();
    }
    lane.noteAsked(transfer, lengths);
    const ready = (): void => {
      lane.ready(transfer, lengths);
      lane.advance();
    };
    if (puts) second.receive(control, NOWHERE, noEntries, NO_BYTES, ready);
    else second.receive(data, second.placeOf(origin), transfer.entries, lengths, () => lane.end(transfer));
    const whole: Entries = (bytes, each) => each(0, bytes);
    second.send(control, place, whole, [writer.bytes], undefined, () => lane.free.push(slot));
    return true;
  }

  /** Holds the origin's registration. @returns false if it has to wait, or moves another way, and waits no more */
  #hold(lane: Lane, transfer: Transfer): boolean {
    const { puts, origin, from, rank, at, to } = transfer;
    try {
      if (!transfer.isThere) throw transfer.lost();
      return this.#requests.second.hold(origin.buffer);
    } catch (error) {
      lane.waiting.shift();
      const whole = transfer.begun === 0 && transfer.isThere;
      transfer.giveUp(whole ? undefined : error);
      if (!whole) return false;
      try {
        if (puts) this.#requests.put(origin, from, rank, at, to, false);
        else this.#requests.get(origin, from, rank, at, to);
      } catch (refusal) {
        transfer.giveUp(refusal);
      }
      return false;
    }
  }
}
