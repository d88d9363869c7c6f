/**
 * Send gather, receive scatter (dissertation §8.1.1, for one-sided calls §8.3.2): bytes go from the pieces of one side
 * to the pieces of the other without a copy, as messages that the sender's device gathers and the receiver's scatters.
 *
 *   PUT id, layout, lengths   ->   READY id   ->   messages          the target has posted receives
 *   GET id, layout, lengths   ->   messages                          the origin has posted receives before
 *   CONNECT                   ->   CONNECTED                         the second connection (second-connections.ts)
 *
 * The dissertation's receiver knows one layout, and decides how both are cut. Here the origin knows both, so it
 * decides; its requests say how (matching.ts). A put or get is cut into groups of at most `GROUP` messages, of which
 * `UNDER_WAY` may be on their way to a rank.
 *
 * Messages of the second connection fill receives in the order in which both were posted, so each rank keeps the two in
 * step. It posts receives, and at once gives the message (READY, GET) that makes the other side send; the other side
 * sends in the order in which those messages have come. A side that has said that it will send does so: if the origin's
 * buffer is gone by then, it sends empty messages, which fill the receives with nothing.
 *
 * The target's receives are filled when the origin knows that its messages have arrived, so nothing is told. If
 * completions do not mean that data are in memory, a byte is read behind them, on the same connection.
 *
 * One registration covers all of a buffer, gaps and all ("optimistic group registration"). If the device has no room
 * for it, or either side cannot make the connection, or a list has one entry only, or a get's origin is none that the
 * provider receives into, the bytes go packed.
 *
 * Each put or get is a task of the window's requests (request-tasks.ts), as in pack.ts.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { Places } from '../../datatype/copy.ts';
import type { Side } from '../../datatype/sides.ts';
import { Fifo } from '../../fifo.ts';
import { ByRank } from '../requests/by-rank.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import type { LocalPlace, SecondConnection } from '../requests/second-connections.ts';
import { GroupedTransfer, GroupLane, sum, type Turn, takeTurns } from './group-lanes.ts';
import { NO_WORDS, ReceivedLayouts, SentLayouts } from './layout-cache.ts';
import type { MessageMover } from './layout-moves.ts';
import { partOf } from './layout-words.ts';
import { entriesOf, Matching, sameLayout } from './matching.ts';
import { MessageWords } from './message-words.ts';
import type { Moving } from './moving.ts';
import type { PackedTransfers } from './pack.ts';

/** Messages that are asked for at once, and how often more are before the first are through. */
const GROUP = 8;
const UNDER_WAY = 4;

const What = Object.freeze({ CONNECT: 16, CONNECTED: 17, PUT: 18, GET: 19, READY: 20 });
/** What it is, which group, which layout, words of the layout: 32 bits each. */
const HEADER = 16;
/** `at`, `skip`, and how many lengths. */
const NUMBERS = 24;

class Transfer extends GroupedTransfer {
  /** It goes packed. */
  instead: Moving | undefined;

  override get isDone(): boolean {
    return this.instead?.isDone ?? super.isDone;
  }

  override get failure(): unknown {
    return this.error ?? this.instead?.failure;
  }
}

interface Group {
  readonly transfer: Transfer;
  readonly lengths: readonly number[];
}

/** A transfer's layouts, and the bytes of the messages that they were cut into for lists of so many entries. */
interface Cut {
  readonly from: Places;
  readonly to: Places;
  readonly entries: number;
  readonly lengths: readonly number[];
}

/** What this rank has to do with another: its own transfers, and its end of the other's. */
class Lane extends GroupLane<Transfer> {
  /** What of the connection is there: nothing, this rank's end, or both ends, as far as this rank knows; or it cannot
   * be made, and never will be. */
  state: 'none' | 'connected' | 'open' | 'refused' = 'none';
  /** The other side was asked to connect. */
  asked = false;
  /** Groups of puts that the target is not ready for yet, by number. */
  readonly groups = new Map<number, Group>();
  id = 0;
  /** Receives that the other side wants posted, in order; what it wants sent stands among this rank's own `sends`. */
  readonly receives = new Fifo<Turn>();
  readonly sent = new SentLayouts();
  readonly received = new ReceivedLayouts();

  get isStuck(): boolean {
    return this.waiting.length + this.receives.length + this.sends.length > 0;
  }
}

export class SgrsTransfers implements MessageMover {
  readonly family = 1;
  readonly #channel: OwnChannel;
  readonly #requests: RequestTransfer;
  readonly #packed: PackedTransfers;
  readonly #part: LocalPlace;
  readonly #lanes = new ByRank((rank): Lane => {
    const lane: Lane = new Lane(
      this.#requests,
      () => this.#takeTurns(rank, lane),
      () => this.#noteStuck(rank, lane),
    );
    return lane;
  });
  /** Ranks whose last look has left something that waits for room. */
  readonly #stuck = new Set<number>();
  readonly #words = new MessageWords();
  /** How the last transfer of one group was cut: programs move the same layouts again and again. */
  #lastCut: Cut | undefined;
  /** Requests that said a layout with its words, or by its number. */
  said = 0;
  named = 0;

  /** @param part this rank's part as requests name it */
  constructor(channel: OwnChannel, requests: RequestTransfer, packed: PackedTransfers, part: LocalPlace) {
    this.#channel = channel;
    this.#requests = requests;
    this.#packed = packed;
    this.#part = part;
  }

  /** The arguments are those of `RequestTransfer.put` and `get`. */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): void {
    const lane = this.#lanes.of(rank);
    lane.begin(new Transfer(puts, origin, from, rank, at, to), () => {
      this.#channel.poll();
      lane.advance();
    });
  }

  #noteStuck(rank: number, lane: Lane): void {
    if (lane.isStuck) {
      this.#stuck.add(rank);
      this.#requests.second.whenRoom(this.#advanceStuck);
    } else this.#stuck.delete(rank);
  }

  /** What a lane waits for may be held by another one's transfers, whose end says nothing to it. */
  readonly #advanceStuck = (): void => {
    for (const rank of [...this.#stuck]) this.#lanes.of(rank).advance();
  };

  /** Whether something here leaves only when what is under way is complete. */
  get isStuck(): boolean {
    return this.#stuck.size > 0;
  }

  #takeTurns(rank: number, lane: Lane): void {
    if (lane.waiting.length > 0 && !lane.asked) this.#askToConnect(rank, lane);
    if (lane.state === 'refused') while (lane.waiting.length > 0) this.#pack(lane.waiting.shift()!);
    if (lane.state !== 'open') return;
    takeTurns(lane.receives);
    while (lane.waiting.length > 0 && lane.underWay < UNDER_WAY && this.#ask(rank, lane, lane.waiting.first!));
    takeTurns(lane.sends);
  }

  // ---- the connection -----------------------------------------------------------------------------------------------

  // A rank that sends a wish must know that both ends are connected: the other side could not serve it without its own,
  // and would leave it standing for ever. The rank learns that the other end is connected from the answer to CONNECT,
  // or from a wish of the other side, which sends none before it knows the same of this end. An end that could not be
  // made or connected stays refused. So if one end is refused, neither side ever takes the connection for open, and
  // everything goes packed.

  #askToConnect(rank: number, lane: Lane): void {
    lane.asked = true;
    this.#make(rank, lane);
    if (lane.state === 'none' || lane.state === 'connected') this.#tellNumber(rank, What.CONNECT, lane.connection);
  }

  /** This rank's end. */
  #make(rank: number, lane: Lane): void {
    if (lane.state !== 'none') return;
    const { second } = this.#requests;
    try {
      if (second.entries > 1) lane.connection ??= second.make(rank);
    } catch {
      // The device has no room; there is another way.
    }
    if (lane.connection === undefined) lane.state = 'refused';
  }

  #tellNumber(rank: number, what: number, connection: SecondConnection | undefined): void {
    this.#tell(rank, what, connection?.queuePair.number ?? -1, this.#requests.second.entries);
  }

  /** A message of a header alone. */
  #tell(rank: number, what: number, number: number, entries = 0): void {
    this.#channel.compose(rank, HEADER, (memory, at) => this.#writeHeader(memory, at, what, number, entries, 0));
  }

  #writeHeader(memory: Uint8Array, at: number, what: number, id: number, number: number, words: number): Float64Array {
    const { i32, f64 } = this.#words.of(memory.buffer);
    i32[at / 4] = what;
    i32[at / 4 + 1] = id;
    i32[at / 4 + 2] = number;
    i32[at / 4 + 3] = words;
    return f64;
  }

  /** The other end has said its number, or that it cannot be made. */
  #takeNumber(lane: Lane, qpNumber: number, entries: number): void {
    if (lane.state !== 'none') {
      if (qpNumber < 0) lane.state = 'refused';
      return;
    }
    const { second } = this.#requests;
    const { connection } = lane;
    if (connection === undefined || qpNumber < 0) {
      lane.state = 'refused';
      return;
    }
    try {
      connection.entries = Math.min(entries, second.entries);
      second.connect(connection, qpNumber);
      lane.state = 'connected';
    } catch {
      // The queue pair cannot be connected; there is another way.
      lane.state = 'refused';
    }
  }

  // ---- the origin ---------------------------------------------------------------------------------------------------

  #pack(transfer: Transfer): void {
    const { puts, origin, from, rank, at, to } = transfer;
    transfer.instead = this.#packed.issue(puts, origin, from, rank, at, to);
  }

  /** Asks for the next group of a transfer, the first of its lane. @returns false if that has to wait */
  #ask(rank: number, lane: Lane, transfer: Transfer): boolean {
    const { second } = this.#requests;
    const connection = lane.connection!;
    const { puts, origin } = transfer;
    if (!puts && !second.mayReceive(connection, GROUP)) return false;
    try {
      if (!transfer.isThere) throw transfer.lost();
      if (!second.hold(origin.buffer)) return false;
    } catch (error) {
      lane.waiting.shift();
      if (transfer.begun === 0 && transfer.isThere) this.#pack(transfer);
      else transfer.giveUp(error);
      return true;
    }
    if (!puts && !second.mayReceiveInto(origin.buffer)) {
      second.release();
      lane.waiting.shift();
      this.#pack(transfer);
      return true;
    }
    const lengths = this.#cut(transfer, connection.entries);
    const skip = transfer.begun;
    const bytes = lane.noteAsked(transfer, lengths);
    const id = lane.id++ & 0x7fffffff;
    if (puts) lane.groups.set(id, { transfer, lengths });
    else second.receive(connection, second.placeOf(origin), transfer.entries, lengths, () => lane.end(transfer));
    this.#wish(rank, lane, transfer, id, lengths, skip, bytes);
    return true;
  }

  /** Bytes of the messages of a transfer's next group. */
  #cut(transfer: Transfer, entries: number): readonly number[] {
    const { from, to, begun } = transfer;
    const last = this.#lastCut;
    const isFirst = begun === 0;
    if (isFirst && last?.entries === entries && sameLayout(last.from, from) && sameLayout(last.to, to))
      return last.lengths;
    transfer.matching ??= new Matching(from, to, entries, this.#requests.maxMsgSize);
    const lengths = transfer.matching.next(GROUP);
    if (isFirst && sum(lengths) === from.bytes) this.#lastCut = { from, to, entries, lengths };
    return lengths;
  }

  #wish(
    rank: number,
    lane: Lane,
    { puts, at, to }: Transfer,
    id: number,
    lengths: readonly number[],
    skip: number,
    bytes: number,
  ): void {
    const said = lane.sent.say(to);
    const words = said?.words ?? partOf(to, skip, bytes);
    if (words.length > 0) this.said++;
    else this.named++;
    const size = HEADER + NUMBERS + 8 * (lengths.length + words.length);
    this.#channel.compose(rank, size, (memory, start) => {
      const f64 = this.#writeHeader(memory, start, puts ? What.PUT : What.GET, id, said?.number ?? -1, words.length);
      const numbers = (start + HEADER) / 8;
      f64[numbers] = at;
      f64[numbers + 1] = said === undefined ? 0 : skip;
      f64[numbers + 2] = lengths.length;
      for (let i = 0; i < lengths.length; i++) f64[numbers + 3 + i] = lengths[i];
      if (words.length > 0) f64.set(words, numbers + 3 + lengths.length);
    });
  }

  /** The target has posted receives for a group. */
  #takeReady(lane: Lane, id: number): void {
    const { transfer, lengths } = lane.groups.get(id)!;
    lane.groups.delete(id);
    lane.ready(transfer, lengths);
  }

  // ---- the target ---------------------------------------------------------------------------------------------------

  /** What the other side wants this one's part to do: to take a put's messages, or to send a get's. */
  #takeWish(
    rank: number,
    lane: Lane,
    what: number,
    id: number,
    number: number,
    words: number,
    f64: Float64Array,
    numbers: number,
  ): void {
    const at = f64[numbers];
    const skip = f64[numbers + 1];
    const count = f64[numbers + 2];
    const lengths: number[] = [];
    for (let i = 0; i < count; i++) lengths.push(f64[numbers + 3 + i]);
    const first = numbers + 3 + count;
    const layout = lane.received.hear({ number, words: words === 0 ? NO_WORDS : f64.subarray(first, first + words) });
    const entries = entriesOf(layout, skip);
    const place = { lkey: this.#part.lkey, address: this.#part.address + at };
    const connection = lane.connection!;
    const { second } = this.#requests;
    const advance = (): void => lane.advance();
    if (what === What.GET) {
      lane.sends.push(() => {
        if (!second.maySend(connection, lengths.length)) return false;
        second.send(connection, place, entries, lengths, undefined, advance);
        return true;
      });
      return;
    }
    lane.receives.push(() => {
      if (!second.mayReceive(connection, lengths.length)) return false;
      second.receive(connection, place, entries, lengths, advance);
      this.#tell(rank, What.READY, id);
      return true;
    });
  }

  /** Takes a message that has come by the channel; it begins at a multiple of 8, and nothing of it is kept. */
  take(rank: number, { buffer, byteOffset }: Uint8Array): void {
    const { i32, f64 } = this.#words.of(buffer);
    const header = byteOffset / 4;
    const what = i32[header];
    const id = i32[header + 1];
    const number = i32[header + 2];
    const words = i32[header + 3];
    const lane = this.#lanes.of(rank);
    if (what === What.CONNECT) {
      this.#make(rank, lane);
      this.#takeNumber(lane, id, number);
      this.#tellNumber(rank, What.CONNECTED, lane.state === 'refused' ? undefined : lane.connection);
    } else if (what === What.CONNECTED) {
      this.#takeNumber(lane, id, number);
      if (lane.state === 'connected') lane.state = 'open';
    } else if (what === What.READY) this.#takeReady(lane, id);
    else {
      lane.state = 'open';
      this.#takeWish(rank, lane, what, id, number, words, f64, (byteOffset + HEADER) / 8);
    }
    // Receives that have been filled make room.
    this.#requests.collect();
    lane.advance();
  }
}
