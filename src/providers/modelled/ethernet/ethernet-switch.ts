/**
 * A switch with a full-duplex link to each station: nothing collides. It stores a frame as a whole, and forwards it by
 * the port of its receiver, where it waits behind those that have come before. A port has room for so many frames, with
 * the one that it sends; what comes when it is full is lost. A station's own queue has no end: that is its host's
 * memory.
 *
 * The time at which a frame reaches the switch is known when its station is given it, and the time at which it leaves
 * the port when it reaches the switch. So a frame is two events: it has come to the switch, it has come through the
 * receiver's stack; and a third where somebody wants to know that it has left.
 */
import { Fifo } from '../../../fifo.ts';
import { type EthernetNumbers, frameTime } from './ethernet-numbers.ts';
import { type Agenda, eachTarget, type Frame, type Medium, MediumStatistics, type Reception } from './medium.ts';

export class EthernetSwitch implements Medium {
  readonly statistics = new MediumStatistics();
  readonly #agenda: Agenda;
  readonly #numbers: Required<EthernetNumbers>;
  readonly #reception: Reception;
  /** By station, from when on its link to the switch, and the port to it, are free. */
  readonly #up: Float64Array;
  readonly #down: Float64Array;
  /** By station, when each frame that its port holds will have left. */
  readonly #held: (Fifo<number> | undefined)[];

  constructor(agenda: Agenda, numbers: EthernetNumbers, reception: Reception, stations: number) {
    this.#agenda = agenda;
    this.#numbers = numbers as Required<EthernetNumbers>;
    this.#reception = reception;
    this.#up = new Float64Array(stations);
    this.#down = new Float64Array(stations);
    this.#held = new Array<undefined>(stations).fill(undefined);
  }

  carry(frame: Frame): void {
    const { driver, interframe, propagation, forward } = this.#numbers;
    const time = frameTime(this.#numbers, frame.bytes);
    const { from } = frame;
    const gone = Math.max(this.#agenda.now + driver, this.#up[from]) + time;
    this.#up[from] = gone + interframe;
    this.statistics.frames++;
    this.statistics.busy += time;
    if (frame.left !== undefined) this.#agenda.at(gone, from, { happen: () => frame.left?.() });
    this.#agenda.at(gone + propagation + forward, from, {
      happen: () => eachTarget(frame, (to) => this.#forward(frame, to, time)),
    });
  }

  /** A frame is to leave by the port of a station. */
  #forward(frame: Frame, to: number, time: number): void {
    const { interframe, propagation, room } = this.#numbers;
    const { now } = this.#agenda;
    const held = (this.#held[to] ??= new Fifo<number>());
    while (held.length > 0 && held.first! <= now) held.shift();
    if (held.length >= room) {
      this.statistics.overflowed++;
      frame.lost(to);
      return;
    }
    const gone = Math.max(now, this.#down[to]) + time;
    this.#down[to] = gone + interframe;
    held.push(gone);
    this.#reception.receive(frame, to, gone + propagation);
  }
}
