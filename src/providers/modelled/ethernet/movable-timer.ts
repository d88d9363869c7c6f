/**
 * A timer that is set, moved and cleared often, and seldom runs out, as those of TCP.
 *
 * Nothing can be taken out of the simulator's queue. So an entry stays there when the timer is moved: if it comes
 * before the timer's time, it goes into the queue again, and if the timer is clear it is dropped, without moving the
 * time on. A timer that is moved later, as by each acknowledgement, has one entry however often that is.
 */
import type { DeadlineEvent } from '../simulator.ts';
import type { Agenda } from './medium.ts';

export class MovableTimer implements DeadlineEvent {
  readonly #agenda: Agenda;
  readonly #station: number;
  readonly #run: () => void;
  /** When it runs out; infinite: it is clear. */
  #due = Number.POSITIVE_INFINITY;
  /** Entries in the queue, and the time of the soonest of them. */
  #entries = 0;
  #soonest = Number.POSITIVE_INFINITY;

  constructor(agenda: Agenda, station: number, run: () => void) {
    this.#agenda = agenda;
    this.#station = station;
    this.#run = run;
  }

  get isSet(): boolean {
    return this.#due !== Number.POSITIVE_INFINITY;
  }

  set(time: number): void {
    this.#due = time;
    if (this.#entries === 0 || time < this.#soonest) this.#enter(time);
  }

  clear(): void {
    this.#due = Number.POSITIVE_INFINITY;
  }

  get isOver(): boolean {
    return !this.isSet;
  }

  dropped(): void {
    this.#entries--;
  }

  happen(): void {
    this.#entries--;
    if (!this.isSet) return;
    if (this.#due <= this.#agenda.now) {
      this.clear();
      this.#run();
    } else if (this.#entries === 0) this.#enter(this.#due);
  }

  #enter(time: number): void {
    this.#entries++;
    this.#soonest = time;
    this.#agenda.atDeadline(time, this.#station, this);
  }
}
