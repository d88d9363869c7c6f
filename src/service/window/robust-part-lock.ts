/**
 * The lock of a part, exclusive or shared, which dead members do not keep.
 *
 *   LOCK            a robust lock (robust-lock.ts)
 *   SHARED[place]   0, or the name of the member that holds a shared lock; only that place stores its name here
 *
 *   shared:      takes LOCK, stores its name, gives LOCK back. To release: stores 0, and rings DRAINED if DRAINS.
 *   exclusive:   takes LOCK, stores DRAINS, waits until SHARED has no name of a living member. It keeps LOCK, so no new
 *                name comes. To release: gives LOCK back.
 *
 * A writer stores DRAINS and then loads SHARED; a reader that leaves stores SHARED and then loads DRAINS. All are
 * sequentially consistent, so one of them sees the other, and no wake-up is lost; a reader that dies rings nothing, and
 * the writer looks each LOOK_MS whether those that it waits for live. A writer that dies while it waits leaves DRAINS:
 * at worst a reader rings for nobody.
 *
 * Who is told of a death, once: of a dead exclusive holder whoever takes LOCK over; of a dead shared one the next
 * exclusive holder, which takes the name away by a compare-and-swap, or the next member at the same place, which
 * overwrites it. Whoever has learned it and then gives up leaves it in UNTOLD, which the next holder takes.
 */

import { Pauses } from '../../wait/pauses.ts';
import type { Waiting } from '../../wait/waiting.ts';
import { LOOK_MS, NOBODY, RobustLock } from '../robust-lock.ts';
import { type Members, placeOf } from '../service-members.ts';
import { DRAINED, DRAINS, LOCK, lockLine, UNTOLD, type WindowPlan } from './window-shape.ts';

const EVERYONE = 0x7fffffff;

export class RobustPartLock {
  readonly #members: Members;
  readonly #words: Int32Array;
  readonly #line: number;
  /** Where SHARED of this part begins. */
  readonly #shared: number;
  readonly #places: number;
  readonly #lock: RobustLock;
  readonly #what: string;

  /** @param what the part, for messages */
  constructor(members: Members, words: Int32Array, plan: WindowPlan, target: number, what: string) {
    this.#members = members;
    this.#words = words;
    this.#line = lockLine(target);
    this.#shared = plan.shared + target * plan.places;
    this.#places = plan.places;
    this.#lock = new RobustLock(words, this.#line + LOCK, members);
    this.#what = what;
  }

  /**
   * Blocks the thread.
   * @param prompt gives up if the holder of an exclusive lock is stopped
   * @returns the place of a dead member that held it, or `NOBODY`
   */
  acquire(exclusive: boolean, waiting: Waiting, prompt: boolean): number {
    this.#members.checkIn(waiting.call);
    const dead = this.#lock.tryAcquire() ?? this.#lock.acquireWithin(waiting, this.#what, prompt);
    if (!exclusive) return this.#enter(dead);
    try {
      const { native } = this.#members.memory;
      for (let looks = false; ; looks = true) {
        const seen = Atomics.load(this.#words, this.#line + DRAINED);
        const name = this.#findShared(looks);
        if (name === 0) return this.#tell(dead, this.#clearShared());
        const left = waiting.left(() => this.#describe(name));
        native.futexWait(this.#words, this.#line + DRAINED, seen, Math.min(left, LOOK_MS));
      }
    } catch (error) {
      this.#giveUp(dead);
      throw error;
    }
  }

  /** The same, while the event loop goes on. */
  async acquireLater(exclusive: boolean, waiting: Waiting): Promise<number> {
    this.#members.checkIn(waiting.call);
    const dead = this.#lock.tryAcquire() ?? (await this.#lock.acquireLater(waiting, this.#what));
    if (!exclusive) return this.#enter(dead);
    try {
      const pauses = new Pauses();
      for (let looks = false; ; looks = true) {
        this.#members.checkIn(waiting.call);
        const name = this.#findShared(looks);
        if (name === 0) return this.#tell(dead, this.#clearShared());
        await pauses.next(waiting.left(() => this.#describe(name)));
      }
    } catch (error) {
      this.#giveUp(dead);
      throw error;
    }
  }

  release(exclusive: boolean): void {
    if (exclusive) {
      this.#lock.release();
      return;
    }
    const own = this.#shared + this.#members.place;
    // Another name is that of the next member at this place: this one has left.
    Atomics.compareExchange(this.#words, own, this.#members.name, 0);
    if (Atomics.load(this.#words, this.#line + DRAINS) === 0) return;
    Atomics.add(this.#words, this.#line + DRAINED, 1);
    this.#members.memory.native.futexWake(this.#words, this.#line + DRAINED, EVERYONE);
  }

  /** This member will not say that a dead one held the lock: whoever has it next does. */
  leaveUntold(dead: number): void {
    if (dead !== NOBODY) Atomics.store(this.#words, this.#line + UNTOLD, dead + 1);
  }

  #giveUp(dead: number): void {
    this.leaveUntold(dead);
    Atomics.store(this.#words, this.#line + DRAINS, 0);
    this.#lock.release();
  }

  /** Under LOCK. @returns the place of one dead holder, of those that were found and one that nobody was told of */
  #tell(...found: number[]): number {
    const untold = Atomics.exchange(this.#words, this.#line + UNTOLD, 0) - 1;
    return [...found, untold].find((place) => place !== NOBODY) ?? NOBODY;
  }

  /** Under LOCK, which it gives back: this member has a shared lock. */
  #enter(dead: number): number {
    const before = Atomics.exchange(this.#words, this.#shared + this.#members.place, this.#members.name);
    const told = this.#tell(dead, before === 0 ? NOBODY : placeOf(before));
    this.#lock.release();
    return told;
  }

  /**
   * A living member that holds a shared lock, or 0. Under LOCK.
   * @param looks whether those that have names there live; else all do but the one before at this place
   */
  #findShared(looks: boolean): number {
    const words = this.#words;
    Atomics.store(words, this.#line + DRAINS, 1);
    for (let place = 0; place < this.#places; place++) {
      const name = Atomics.load(words, this.#shared + place);
      // A name at this place is that of a member before this one, which has no shared lock.
      if (name !== 0 && place !== this.#members.place && !(looks && this.#members.isGone(name))) return name;
    }
    Atomics.store(words, this.#line + DRAINS, 0);
    return 0;
  }

  /** Takes away the names of the dead, where nobody else has a shared lock. Under LOCK. @returns place or `NOBODY` */
  #clearShared(): number {
    let gone = NOBODY;
    for (let at = this.#shared; at < this.#shared + this.#places; at++) {
      const name = Atomics.load(this.#words, at);
      if (name !== 0 && Atomics.compareExchange(this.#words, at, name, 0) === name) gone = placeOf(name);
    }
    return gone;
  }

  #describe(name: number): string {
    return `${this.#what}: place ${placeOf(name)} holds it, shared (${this.#members.describe(name)})`;
  }
}
