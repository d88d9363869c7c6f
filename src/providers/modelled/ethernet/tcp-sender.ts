/**
 * The sending half of an end of a TCP connection: what may be sent when, and what is sent again.
 *
 * - *Writes.* A write is sent at once, as a segment of its own, if the window allows (no Nagle algorithm). What has
 *   gathered while the window was closed is sent in segments of `mss`, whatever the writes were.
 * - *Window.* No more is under way than the receiver's window and the congestion window. A segment is not cut to fit
 *   into the rest of a window (RFC 1122, 4.2.3.4).
 * - *Congestion window.* Slow start and congestion avoidance; a third acknowledgement of the same byte sends the
 *   segment there again; until what was under way then is acknowledged, each acknowledgement of a part of it sends the
 *   next segment that is missing (RFC 2001; RFC 2582 for several losses in a window). An acknowledgement that comes
 *   with data says nothing of a loss, as the receiver sends data anyway.
 * - *Timeout.* `firstTimeout`, and as soon as a round trip was measured, its mean + 4 deviations (Jacobson, 1988), at
 *   least `timeout`; twice that after each timeout, at most 64 times. Nothing that was sent twice is measured (Karn). A
 *   timeout sends again from the first byte on that was not acknowledged, from a congestion window of one segment.
 */
import { Fifo } from '../../../fifo.ts';
import type { FabricEvent } from '../event-queue.ts';
import { MOST_WINDOW, type TcpNumbers } from './ethernet-numbers.ts';
import type { Agenda } from './medium.ts';
import { MovableTimer } from './movable-timer.ts';

/** Acknowledgements of one byte, after the first, that say that the segment there is lost (RFC 2001). */
const DUPLICATES = 3;
/** Times that the timeout doubles. */
const MOST_BACK_OFF = 64;
const NOTHING: FabricEvent = { happen: () => {} };

/** What a write is told. */
export interface Written {
  /** All of it has come, in order. */
  delivered(): void;
  /** The sender knows. */
  acknowledged(): void;
  /** The connection was given up before it was acknowledged. */
  failed(): void;
}

interface Write {
  /** The first byte behind it. */
  readonly end: number;
  readonly written: Written;
}

export class TcpSender {
  /** Segments sent again after duplicate acknowledgements, and timeouts. */
  retransmissions = 0;
  timeouts = 0;
  readonly #agenda: Agenda;
  readonly #numbers: TcpNumbers;
  readonly #station: number;
  readonly #emit: (sequence: number, length: number) => void;
  readonly #giveUp: () => void;
  readonly #timer: MovableTimer;
  /** Bytes of the stream that were written, sent, and acknowledged. */
  #written = 0;
  #next = 0;
  #acknowledged = 0;
  /** The byte behind all that were ever sent. */
  #highest = 0;
  #congestion: number;
  #threshold = MOST_WINDOW;
  #duplicates = 0;
  /** While what was lost is sent again: what was under way when the loss was seen. */
  #recover = -1;
  /** Of the round trip. */
  #mean = 0;
  #deviation = 0;
  /** The byte whose acknowledgement ends the measurement of a round trip, and when that began. */
  #timed = -1;
  #timedSince = 0;
  #backOff = 1;
  /** Timeouts since anything was acknowledged. */
  #tries = 0;
  readonly #undelivered = new Fifo<Write>();
  readonly #unacknowledged = new Fifo<Write>();
  /** Something was lost, and not all is acknowledged yet. */
  #recovering = false;

  /** @param giveUp the connection is of no use any more */
  constructor(
    agenda: Agenda,
    numbers: TcpNumbers,
    station: number,
    emit: (sequence: number, length: number) => void,
    giveUp: () => void,
  ) {
    this.#agenda = agenda;
    this.#numbers = numbers;
    this.#station = station;
    this.#emit = emit;
    this.#giveUp = giveUp;
    this.#congestion = numbers.window0;
    this.#timer = new MovableTimer(agenda, station, () => this.#timeOut());
  }

  write(bytes: number, written: Written): void {
    this.#written += bytes;
    const write: Write = { end: this.#written, written };
    this.#undelivered.push(write);
    this.#unacknowledged.push(write);
    this.#push();
  }

  /** All bytes before this one have come to the other end. */
  deliver(expected: number): void {
    const writes = this.#undelivered;
    while (writes.length > 0 && writes.first!.end <= expected) writes.shift()!.written.delivered();
  }

  /**
   * An acknowledgement of all bytes before this one.
   * @param alone it came without data
   */
  acknowledge(byte: number, alone: boolean): void {
    if (byte > this.#acknowledged) this.#advance(byte);
    else if (byte === this.#acknowledged && this.#next > byte && alone) this.#duplicate();
  }

  /** A segment with data was lost, or an acknowledgement for this end: that much is known to the model only. */
  noteLoss(): void {
    this.#agenda.lost();
    if (this.#acknowledged === this.#next) return;
    this.#recovering = true;
    this.#announce();
  }

  /** Nothing goes any more. */
  end(): void {
    this.#timer.clear();
    this.#recovering = false;
    this.#next = this.#acknowledged = this.#written;
    while (this.#undelivered.length > 0) this.#undelivered.shift();
    while (this.#unacknowledged.length > 0) this.#unacknowledged.shift()!.written.failed();
  }

  /**
   * What was lost is sent again when the timer runs out, at the latest. Deadlines do not count where ranks ask again
   * and again whether something has changed (`Simulator.askedInVain`); this will happen, and counts.
   */
  #announce(): void {
    this.#agenda.at(this.#timer.due, this.#station, NOTHING);
  }

  #push(): void {
    const { mss, window } = this.#numbers;
    for (;;) {
      const left = this.#written - this.#next;
      const length = Math.min(mss, left);
      const room = Math.min(window, this.#congestion) - (this.#next - this.#acknowledged);
      if (left === 0 || room < length) return;
      this.#send(this.#next, length);
      this.#next += length;
    }
  }

  #send(sequence: number, length: number): void {
    const end = sequence + length;
    if (sequence < this.#highest) {
      // Nobody can tell which of the two will be acknowledged.
      this.#timed = -1;
    } else if (this.#timed < 0) {
      this.#timed = end;
      this.#timedSince = this.#agenda.now;
    }
    this.#highest = Math.max(this.#highest, end);
    if (!this.#timer.isSet) this.#setTimer();
    this.#emit(sequence, length);
  }

  #resendFirst(): void {
    this.#send(this.#acknowledged, Math.min(this.#numbers.mss, this.#next - this.#acknowledged));
  }

  #setTimer(): void {
    const { timeout, firstTimeout } = this.#numbers;
    const measured = this.#mean === 0 ? firstTimeout : this.#mean + 4 * this.#deviation;
    this.#timer.set(this.#agenda.now + Math.max(timeout, measured) * this.#backOff);
    if (this.#recovering) this.#announce();
  }

  /** Bytes that were not acknowledged before are. */
  #advance(byte: number): void {
    this.#measure(byte);
    this.#backOff = 1;
    this.#tries = 0;
    const acknowledged = byte - this.#acknowledged;
    this.#acknowledged = byte;
    // After a timeout it goes back; what the receiver had kept need not be sent again.
    this.#next = Math.max(this.#next, byte);
    this.#duplicates = 0;
    const { mss } = this.#numbers;
    if (this.#recover >= 0 && byte < this.#recover) {
      // A part: the next segment is missing, too.
      this.#congestion = Math.max(mss, this.#congestion - acknowledged + mss);
      this.#resendFirst();
    } else {
      if (this.#recover >= 0) {
        this.#recover = -1;
        this.#congestion = this.#threshold;
      } else this.#congestion += this.#congestion < this.#threshold ? mss : (mss * mss) / this.#congestion;
      this.#congestion = Math.min(this.#congestion, MOST_WINDOW);
    }
    if (this.#acknowledged < this.#next) this.#setTimer();
    else this.#timer.clear();
    const writes = this.#unacknowledged;
    while (writes.length > 0 && writes.first!.end <= byte) writes.shift()!.written.acknowledged();
    this.#push();
    if (this.#acknowledged === this.#next) this.#recovering = false;
  }

  #measure(byte: number): void {
    if (this.#timed < 0 || byte < this.#timed) return;
    const time = this.#agenda.now - this.#timedSince;
    this.#timed = -1;
    if (this.#mean === 0) {
      this.#mean = time;
      this.#deviation = time / 2;
      return;
    }
    this.#deviation += (Math.abs(time - this.#mean) - this.#deviation) / 4;
    this.#mean += (time - this.#mean) / 8;
  }

  #duplicate(): void {
    const { mss } = this.#numbers;
    if (this.#recover >= 0) {
      // A segment has left the network: another one may go.
      this.#congestion += mss;
      this.#push();
      return;
    }
    if (++this.#duplicates < DUPLICATES) return;
    this.#threshold = this.#half();
    this.#congestion = this.#threshold + DUPLICATES * mss;
    this.#recover = this.#next;
    this.retransmissions++;
    this.#resendFirst();
    this.#push();
  }

  #half(): number {
    return Math.max(2 * this.#numbers.mss, (this.#next - this.#acknowledged) / 2);
  }

  #timeOut(): void {
    this.timeouts++;
    if (++this.#tries > this.#numbers.retries) {
      this.#giveUp();
      return;
    }
    this.#threshold = this.#half();
    this.#congestion = this.#numbers.mss;
    this.#next = this.#acknowledged;
    this.#duplicates = 0;
    this.#recover = -1;
    this.#backOff = Math.min(MOST_BACK_OFF, 2 * this.#backOff);
    this.#push();
  }
}
