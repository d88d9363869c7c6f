/**
 * Puts and gets that go as groups of messages of a second connection (second-connections.ts). Either the other rank's
 * program serves them (sgrs.ts) or a helper beside it (helped.ts). For a group of a put, the other side posts receives
 * and says so; then this rank sends the group. For a group of a get, this rank posts receives and then asks for it.
 *
 * Whatever may let something go on calls `advance`: an answer, messages that are through, a task that waits. What
 * `advance` does may complete something or bring a message in, and so call it again. Then it looks once more, and does
 * not nest.
 */
import { Fifo } from '../../fifo.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import type { Entries, SecondConnection } from '../requests/second-connections.ts';
import { entriesOf, type Matching } from './matching.ts';
import { Moving, steps } from './moving.ts';

export class GroupedTransfer extends Moving {
  /** How it is cut, once its first group is. */
  matching: Matching | undefined;
  /** The origin's pieces, in the order in which they are sent or received. */
  readonly entries: Entries = entriesOf(this.from, 0);

  override get isThere(): boolean {
    return this.error === undefined && super.isThere;
  }
}

/** Something that the other side waits for, in its turn. @returns false if there is no room yet */
export type Turn = () => boolean;

export function takeTurns(turns: Fifo<Turn>): void {
  while (turns.first?.()) turns.shift();
}

/** What this rank has to do with another: its own puts and gets, and those of the other that need it. */
export class GroupLane<T extends GroupedTransfer> {
  /** By which groups go; absent before it is made. */
  connection: SecondConnection | undefined;
  /** Transfers of which not everything was asked for. */
  readonly waiting = new Fifo<T>();
  /** Messages for which the other side has posted receives. */
  readonly sends = new Fifo<Turn>();
  /** Groups of this rank's that are not through. */
  underWay = 0;
  readonly #requests: RequestTransfer;
  readonly #takeTurns: () => void;
  readonly #turnsTaken: (() => void) | undefined;
  /** `advance` is at work, and has to look once more. */
  #busy = false;
  #again = false;

  /**
   * @param takeTurns does what can be done. Never throws: a transfer's task does
   * @param turnsTaken is called when that need not look once more
   */
  constructor(requests: RequestTransfer, takeTurns: () => void, turnsTaken?: () => void) {
    this.#requests = requests;
    this.#takeTurns = takeTurns;
    this.#turnsTaken = turnsTaken;
  }

  /** @param look brings answers in */
  begin(transfer: T, look: () => void): void {
    this.waiting.push(transfer);
    this.advance();
    this.#requests.begin(transfer.rank, steps(transfer, look));
  }

  advance(): void {
    this.#again = true;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#again) {
        this.#again = false;
        this.#takeTurns();
      }
    } finally {
      this.#busy = false;
    }
    this.#turnsTaken?.();
  }

  /** A group of the first transfer that waits is asked for: messages of so many bytes. @returns all of its bytes */
  noteAsked(transfer: T, lengths: readonly number[]): number {
    const bytes = sum(lengths);
    transfer.begun += bytes;
    transfer.left++;
    this.underWay++;
    if (transfer.isBegun) this.waiting.shift();
    return bytes;
  }

  /** The other side has posted receives for a group of a put: that is sent in its turn. */
  ready(transfer: T, lengths: readonly number[]): void {
    this.sends.push(() => {
      const { second } = this.#requests;
      const connection = this.connection!;
      if (!second.maySend(connection, lengths.length)) return false;
      if (!transfer.isThere) transfer.giveUp(transfer.lost());
      // The receives are filled in any case: with nothing, if the program has taken the origin away.
      const place = transfer.isThere ? second.placeOf(transfer.origin) : undefined;
      const confirmation = this.#requests.confirmationAt(transfer.rank, transfer.at + transfer.to.low);
      second.send(connection, place, transfer.entries, lengths, confirmation, () => this.end(transfer));
      return true;
    });
  }

  /** All messages of a group have arrived. */
  end(transfer: T): void {
    this.underWay--;
    transfer.left--;
    this.#requests.second.release();
    this.advance();
  }
}

export function sum(lengths: readonly number[]): number {
  let bytes = 0;
  for (let i = 0; i < lengths.length; i++) bytes += lengths[i];
  return bytes;
}
