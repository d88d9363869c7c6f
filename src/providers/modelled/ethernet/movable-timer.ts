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
  #due = Number.POSITIVE_INFINITY;
  /** The times of its entries in the queue, the soonest last. It is the next to leave the queue. */
  readonly #entries: number[] = [];

  constructor(agenda: Agenda, station: number, run: () => void) {
    this.#agenda = agenda;
    this.#station = station;
    this.#run = run;
  }

  /** When it runs out; infinite: it is clear. */
  get due(): number {
    return this.#due;
  }

  get isSet(): boolean {
    return this.#due !== Number.POSITIVE_INFINITY;
  }

  set(time: number): void {
    this.#due = time;
    this.#enter();
  }

  clear(): void {
    this.#due = Number.POSITIVE_INFINITY;
  }

  get isOver(): boolean {
    return !this.isSet;
  }

  dropped(): void {
    this.#entries.pop();
  }

  happen(): void {
    this.#entries.pop();
    if (!this.isSet) return;
    if (this.#due <= this.#agenda.now) {
      this.clear();
      this.#run();
    } else this.#enter();
  }

  /** Has an entry in the queue that comes no later than the timer runs out. */
  #enter(): void {
    const soonest = this.#entries.at(-1);
    if (soonest !== undefined && soonest <= this.#due) return;
    this.#entries.push(this.#due);
    this.#agenda.atDeadline(this.#due, this.#station, this);
  }
}
