/**
 * The receiving half of an end of a TCP connection: what has come in order, and when that is acknowledged.
 *
 * An acknowledgement is delayed, so that one covers several segments, or goes with data that are sent anyway. It goes
 * at once when too much waits for it (`segments`), when a segment is out of order, came before, or fills a gap (RFC
 * 2581, 4.2), and otherwise after `delay`, or at the next tick of the clock where one serves all connections (BSD).
 *
 * What comes is read at once, so the window that a receiver offers is always the whole.
 */
import type { TcpNumbers } from './ethernet-numbers.ts';
import type { Agenda } from './medium.ts';
import { MovableTimer } from './movable-timer.ts';
import { ReceivedRanges } from './received-ranges.ts';

export class TcpReceiver {
  readonly #agenda: Agenda;
  readonly #numbers: TcpNumbers;
  readonly #deliver: (expected: number) => void;
  readonly #acknowledge: () => void;
  readonly #timer: MovableTimer;
  readonly #ranges = new ReceivedRanges();
  /** Bytes and segments that have come in order and were not acknowledged. */
  #bytes = 0;
  #segments = 0;

  /**
   * @param deliver all bytes before `expected` have come
   * @param acknowledge sends an acknowledgement without data
   */
  constructor(
    agenda: Agenda,
    numbers: TcpNumbers,
    station: number,
    deliver: (expected: number) => void,
    acknowledge: () => void,
  ) {
    this.#agenda = agenda;
    this.#numbers = numbers;
    this.#deliver = deliver;
    this.#acknowledge = acknowledge;
    this.#timer = new MovableTimer(agenda, station, () => {
      if (this.#segments > 0) this.#acknowledge();
    });
  }

  /** The first byte that has not come. */
  get expected(): number {
    return this.#ranges.expected;
  }

  /** A segment with data has come. */
  take(sequence: number, length: number): void {
    const ranges = this.#ranges;
    const before = ranges.expected;
    const had = ranges.hasGap;
    if (!ranges.add(sequence, sequence + length)) {
      this.#acknowledge();
      return;
    }
    this.#bytes += ranges.expected - before;
    this.#segments++;
    // What is delivered may send data, and the acknowledgement with them.
    this.#deliver(ranges.expected);
    if (this.#segments === 0) return;
    if (had || this.#isEnough()) this.#acknowledge();
    else if (!this.#timer.isSet) this.#timer.set(this.#timeOfDelayed());
  }

  /** An acknowledgement of all that has come in order goes, alone or with data. */
  acknowledged(): void {
    this.#bytes = 0;
    this.#segments = 0;
    this.#timer.clear();
  }

  #isEnough(): boolean {
    const { segments, mss, counted } = this.#numbers;
    return counted === 1 ? this.#segments >= segments : this.#bytes >= segments * mss;
  }

  #timeOfDelayed(): number {
    const { delay, tick } = this.#numbers;
    const { now } = this.#agenda;
    // A clock without a period ticks all the time.
    return tick === 1 && delay > 0 ? (Math.floor(now / delay) + 1) * delay : now + delay;
  }
}
