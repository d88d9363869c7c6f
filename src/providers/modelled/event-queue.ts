/**
 * The coming events of a modelled fabric, soonest first: a heap of four children a node. It is ordered by time, and for
 * one time by a number that says which rank made the event and which of that rank's events it is. Neither depends on
 * the order in which events were put in, so the order in which they come out does not, either.
 */

/** Something that happens at a time. An event is in the queue at most once at a time. */
export interface FabricEvent {
  happen(): void;
}

export class EventQueue {
  #times = new Float64Array(1024);
  #orders = new Float64Array(1024);
  readonly #events: FabricEvent[] = [];

  get size(): number {
    return this.#events.length;
  }

  /** The time of the next event; there is one. */
  get time(): number {
    return this.#times[0];
  }

  /** And its number among those of that time. */
  get order(): number {
    return this.#orders[0];
  }

  /** The next event itself, which stays. */
  get first(): FabricEvent {
    return this.#events[0];
  }

  push(time: number, order: number, event: FabricEvent): void {
    const events = this.#events;
    let i = events.length;
    if (i === this.#times.length) this.#grow();
    const times = this.#times;
    const orders = this.#orders;
    events.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 2;
      const t = times[parent];
      if (t < time || (t === time && orders[parent] < order)) break;
      times[i] = t;
      orders[i] = orders[parent];
      events[i] = events[parent];
      i = parent;
    }
    times[i] = time;
    orders[i] = order;
    events[i] = event;
  }

  pop(): FabricEvent {
    const events = this.#events;
    const times = this.#times;
    const orders = this.#orders;
    const first = events[0];
    const last = events.pop()!;
    const n = events.length;
    if (n === 0) return first;
    const time = times[n];
    const order = orders[n];
    let i = 0;
    for (;;) {
      let child = 4 * i + 1;
      if (child >= n) break;
      const end = Math.min(child + 4, n);
      for (let c = child + 1; c < end; c++) {
        if (times[c] < times[child] || (times[c] === times[child] && orders[c] < orders[child])) child = c;
      }
      if (time < times[child] || (time === times[child] && order < orders[child])) break;
      times[i] = times[child];
      orders[i] = orders[child];
      events[i] = events[child];
      i = child;
    }
    times[i] = time;
    orders[i] = order;
    events[i] = last;
    return first;
  }

  #grow(): void {
    const times = new Float64Array(2 * this.#times.length);
    const orders = new Float64Array(times.length);
    times.set(this.#times);
    orders.set(this.#orders);
    this.#times = times;
    this.#orders = orders;
  }
}
