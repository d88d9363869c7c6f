/**
 * A bus with CSMA/CD (IEEE 802.3, 4.2): a station that hears no carrier sends at once, one that hears one sends when it
 * has been gone for the gap between frames, and those that have begun before they could hear each other collide.
 *
 * - *Deference.* A station that waits for the gap goes back to waiting if a carrier comes in the first two thirds of
 *   it; one that comes in the last third is not noticed. Without that a station that has just sent would always win:
 *   its own gap begins `propagation` earlier than that of the others.
 * - *Collision.* A station that has noticed another one ends its preamble, sends a jam, and backs off for r slots, r
 *   uniform in 0 … 2^min(k, backoffLimit) − 1 after the k-th collision of the frame. After `attempts` collisions it
 *   gives the frame up. Its next frame begins with k = 0: so whoever has sent beats those that have collided often (the
 *   capture effect).
 * - *Distance.* Any two stations are `propagation` apart; each hears itself at once.
 *
 * **Periods.** All that is in the air belongs to at most two periods: a period is one transmission, or all those that
 * collide with each other. Each member of a collision begins before it has noticed the first one, that is before
 * begin + propagation + interframe / 3, and none is over by then: a fragment takes max(preamble, propagation) + jam at
 * least, and jam ≥ interframe / 3. So all members overlap, what a station that is none of them hears is one carrier
 *
 *     from begin + propagation to lastEnd + propagation,
 *
 * and a member hears the same until the last end of the others, if that is later than its own. Two ends are therefore
 * enough to know what each station hears, however many collide. The next period begins after lastEnd, at the earliest
 * by the station that has sent, a gap later: where propagation is longer than the gap, others hear the earlier period
 * then. Before the one after that can begin, the earlier one has gone everywhere, since no period is shorter than
 * `propagation`. `checkEthernet` refuses numbers for which any of this would not hold, or for which a frame could be
 * over before its station has learnt of a collision.
 *
 * **Cost.** A frame on a bus that nobody else wants is three events: it comes to the adapter, it has been sent, it has
 * come through the receiver's stack. Otherwise each attempt of a station is one more; no station is looked at that does
 * not send.
 */
import { Fifo } from '../../../fifo.ts';
import type { FabricEvent } from '../event-queue.ts';
import { type EthernetNumbers, frameTime } from './ethernet-numbers.ts';
import {
  type Agenda,
  type Draws,
  eachTarget,
  type Frame,
  type Medium,
  MediumStatistics,
  type Reception,
} from './medium.ts';

/** What stands of a transmission: one attempt to send one frame. */
interface Attempt {
  readonly station: Station;
  readonly begin: number;
  end: number;
  hit: boolean;
}

/** One transmission, or all those that collide with each other. */
class Period {
  readonly begin: number;
  /** The one transmission of a period without a collision. */
  readonly first: Attempt;
  /** Transmissions that have not ended. */
  going = 1;
  /** The latest end, whose it is, and the latest end of another member. */
  #lastEnd: number;
  #lastStation: Station;
  #secondEnd = Number.NEGATIVE_INFINITY;
  /** Stations that wait for the end of what they hear. */
  readonly waiting: Station[] = [];

  constructor(first: Attempt) {
    this.first = first;
    this.begin = first.begin;
    this.#lastEnd = first.end;
    this.#lastStation = first.station;
  }

  /** The only transmission ends earlier than it was to. */
  shorten(end: number): void {
    this.#lastEnd = end;
  }

  join({ station, end }: Attempt): void {
    this.going++;
    if (end > this.#lastEnd) {
      this.#secondEnd = this.#lastEnd;
      this.#lastEnd = end;
      this.#lastStation = station;
    } else if (end > this.#secondEnd) this.#secondEnd = end;
  }

  /** When a station hears nothing of it any more; all transmissions have ended. */
  silentAt(station: Station, propagation: number): number {
    return station === this.#lastStation
      ? Math.max(this.#lastEnd, this.#secondEnd + propagation)
      : this.#lastEnd + propagation;
  }
}

/** A station of the bus. It is in the queue of events while it waits for a gap, or backs off. */
class Station implements FabricEvent {
  readonly number: number;
  readonly frames = new Fifo<Frame>();
  /** Collisions of the frame that it wants to send. */
  collisions = 0;
  /** Carriers that come to it later than this are not noticed, when it has waited for a gap. */
  notices = Number.NaN;
  readonly #bus: { attempt(station: Station, notices: number): void };

  constructor(bus: { attempt(station: Station, notices: number): void }, number: number) {
    this.#bus = bus;
    this.number = number;
  }

  happen(): void {
    this.#bus.attempt(this, this.notices);
  }
}

export class CollisionBus implements Medium {
  readonly statistics = new MediumStatistics();
  readonly #agenda: Agenda;
  readonly #numbers: Required<EthernetNumbers>;
  readonly #random: Draws;
  readonly #reception: Reception;
  readonly #stations: Station[];
  #current: Period | undefined;
  #earlier: Period | undefined;

  /** @param random draws back-offs */
  constructor(agenda: Agenda, numbers: EthernetNumbers, random: Draws, reception: Reception, stations: number) {
    this.#agenda = agenda;
    this.#numbers = numbers as Required<EthernetNumbers>;
    this.#random = random;
    this.#reception = reception;
    this.#stations = Array.from({ length: stations }, (_, number) => new Station(this, number));
  }

  carry(frame: Frame): void {
    const happen = (): void => {
      const station = this.#stations[frame.from];
      station.frames.push(frame);
      if (station.frames.length === 1) this.attempt(station, this.#agenda.now);
    };
    this.#agenda.at(this.#agenda.now + this.#numbers.driver, frame.from, { happen });
  }

  /**
   * Sends the first frame of a station, or has it wait for what it hears.
   * @param notices it has not noticed carriers that have come to it later than this
   */
  attempt(station: Station, notices: number): void {
    const agenda = this.#agenda;
    const { propagation, interframe } = this.#numbers;
    let silent = Number.NEGATIVE_INFINITY;
    for (const period of [this.#earlier, this.#current]) {
      if (period === undefined || period.begin + propagation > notices) continue;
      if (period.going > 0) {
        period.waiting.push(station);
        return;
      }
      silent = Math.max(silent, period.silentAt(station, propagation));
    }
    if (silent + interframe > agenda.now) this.#awaitGap(station, silent);
    else this.#send(station);
  }

  /** @param silent from then on the station hears nothing of what it has noticed */
  #awaitGap(station: Station, silent: number): void {
    const { interframe } = this.#numbers;
    station.notices = silent + (2 * interframe) / 3;
    this.#agenda.at(silent + interframe, station.number, station);
  }

  #send(station: Station): void {
    const { now } = this.#agenda;
    const end = now + frameTime(this.#numbers, station.frames.first!.bytes);
    const attempt: Attempt = { station, begin: now, end, hit: false };
    const current = this.#current;
    if (current !== undefined && current.going > 0) {
      this.#collide(current, attempt);
      return;
    }
    this.#earlier = current;
    this.#current = new Period(attempt);
    this.#agenda.at(end, station.number, {
      happen: () => {
        if (!attempt.hit) this.#sent(attempt);
      },
    });
  }

  /** A transmission begins in a period that its station has not noticed. */
  #collide(period: Period, attempt: Attempt): void {
    const { propagation } = this.#numbers;
    const { first } = period;
    if (!first.hit) {
      this.#jam(first, attempt.begin + propagation);
      period.shorten(first.end);
    }
    this.#jam(attempt, first.begin + propagation);
    period.join(attempt);
  }

  /** @param seen when the station can see that it has collided, if its preamble is over */
  #jam(attempt: Attempt, seen: number): void {
    const { preamble, jam } = this.#numbers;
    attempt.hit = true;
    attempt.end = Math.max(attempt.begin + preamble, seen) + jam;
    this.#agenda.at(attempt.end, attempt.station.number, { happen: () => this.#collided(attempt) });
  }

  #sent({ station, begin, end }: Attempt): void {
    const { propagation } = this.#numbers;
    this.statistics.frames++;
    this.statistics.busy += end - begin;
    const frame = station.frames.shift()!;
    station.collisions = 0;
    this.#over();
    eachTarget(frame, (to) => this.#reception.receive(frame, to, end + propagation));
    frame.left?.();
    this.#next(station);
  }

  #collided({ station, end }: Attempt): void {
    const { attempts, backoffLimit, slot } = this.#numbers;
    this.statistics.collisions++;
    station.collisions++;
    this.#over();
    if (station.collisions >= attempts) {
      this.statistics.givenUp++;
      station.collisions = 0;
      const frame = station.frames.shift()!;
      eachTarget(frame, (to) => frame.lost(to));
      frame.left?.();
      this.#next(station);
      return;
    }
    const slots = Math.floor(this.#random.fraction() * 2 ** Math.min(station.collisions, backoffLimit));
    // When the back-off is over, it notices whatever it hears.
    const again = end + slots * slot;
    station.notices = again;
    if (slots === 0) this.attempt(station, again);
    else this.#agenda.at(again, station.number, station);
  }

  /** The next frame of a station begins as if it had not sent any. */
  #next(station: Station): void {
    if (station.frames.length > 0) this.attempt(station, this.#agenda.now);
  }

  /** A transmission of the current period has ended; with the last, those that wait learn since when it is quiet. */
  #over(): void {
    const period = this.#current!;
    if (--period.going > 0) return;
    const { propagation } = this.#numbers;
    for (const station of period.waiting) this.#awaitGap(station, period.silentAt(station, propagation));
    period.waiting.length = 0;
  }
}
