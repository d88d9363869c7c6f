/**
 * What carries frames: a bus (collision-bus.ts) or a switch (ethernet-switch.ts).
 *
 * `Network.depart` says at once when a message will come. That cannot be said of a frame on a bus: what becomes of it
 * is decided by frames that come later. So a medium is given frames, and tells them what happens to them, in events.
 *
 * Everything here changes in events only, and an event's place is its time, then its station, then its number among
 * those of that station (simulator.ts); random numbers are drawn in events, too. So a seed repeats.
 */
import type { FabricEvent } from '../event-queue.ts';
import type { DeadlineEvent } from '../simulator.ts';
import type { EthernetNumbers } from './ethernet-numbers.ts';

/** What happens when: the simulator, as an Ethernet sees it. */
export interface Agenda {
  /** Microseconds. */
  readonly now: number;
  at(time: number, station: number, event: FabricEvent): void;
  atDeadline(time: number, station: number, deadline: DeadlineEvent): void;
  /** A frame was lost. */
  lost(): void;
}

/** A frame on its way, and what it is told. */
export interface Frame {
  readonly from: number;
  /** The station that it is for, or the stations of a group. */
  readonly to: number | readonly number[];
  /** Of its IP packet. */
  readonly bytes: number;
  /** Nobody sends it again; absent of segments of TCP. */
  readonly isDatagram?: boolean;
  /** It has left its station, or was given up there; absent if nobody wants to know. */
  left?(): void;
  /** It has come through the protocol stack of a station. */
  arrived(station: number): void;
  /** It will not come to a station. */
  lost(station: number): void;
}

export interface Medium {
  readonly statistics: MediumStatistics;
  /** Takes a frame from the protocol stack of its station. Frames of one station leave in the order of this. */
  carry(frame: Frame): void;
}

export class MediumStatistics {
  /** Frames that were sent to the end, and how long they took altogether. */
  frames = 0;
  busy = 0;
  /** Times that a station has collided. */
  collisions = 0;
  /** Frames that were given up after too many collisions. */
  givenUp = 0;
  /** Copies for which a port had no room. */
  overflowed = 0;
}

/** Chance and mischief of a run. */
export interface MediumFaults {
  /** Whether the next copy of a frame is lost. */
  drawLoss(): boolean;
  /** The same of a frame that is a datagram. */
  drawDatagramLoss(): boolean;
  /** How much longer the next one takes. */
  drawDelay(): number;
}

/** From 0 up to, but not including, 1. */
export interface Draws {
  fraction(): number;
}

/**
 * The receiving ends of all stations: a copy of a frame is lost there by chance, or comes through the stack after
 * `driver`. `faults.delay` is drawn there, too: on a bus, what one station receives keeps its order, as a bus keeps
 * that of all frames; behind a switch one frame can overtake another.
 */
export class Reception {
  readonly #agenda: Agenda;
  readonly #faults: MediumFaults;
  readonly #driver: number;
  /** By station, when the last one was there; undefined where they overtake. */
  readonly #last: Float64Array | undefined;

  constructor(agenda: Agenda, faults: MediumFaults, { driver }: EthernetNumbers, stations: number, ordered: boolean) {
    this.#agenda = agenda;
    this.#faults = faults;
    this.#driver = driver;
    this.#last = ordered ? new Float64Array(stations) : undefined;
  }

  /** A copy of a frame comes to the adapter of a station at `time`. */
  receive(frame: Frame, station: number, time: number): void {
    if (frame.isDatagram === true ? this.#faults.drawDatagramLoss() : this.#faults.drawLoss()) {
      frame.lost(station);
      return;
    }
    let when = time + this.#driver + this.#faults.drawDelay();
    if (this.#last !== undefined) {
      when = Math.max(when, this.#last[station]);
      this.#last[station] = when;
    }
    this.#agenda.at(when, station, new Arrival(frame, station));
  }
}

class Arrival implements FabricEvent {
  readonly #frame: Frame;
  readonly #station: number;

  constructor(frame: Frame, station: number) {
    this.#frame = frame;
    this.#station = station;
  }

  happen(): void {
    this.#frame.arrived(this.#station);
  }
}

/** Calls `use` with each station that a frame is for. */
export function eachTarget({ to }: Frame, use: (station: number) => void): void {
  if (typeof to === 'number') use(to);
  else for (const station of to) use(station);
}
