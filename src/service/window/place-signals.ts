/**
 * The notifications of a place: who raises them adds to ARRIVED, behind the data; who waits at the place counts in
 * TAKEN what it has taken. Both lie in the window, so what a dead member has not taken its successor finds.
 *
 * A member that may sleep stores SLEEPS and then loads ARRIVED; who raises adds to ARRIVED and then loads SLEEPS: one
 * of them sees the other. (One that dies while it sleeps leaves SLEEPS, and costs the others a system call each time.)
 */
import { argumentRangeError, argumentTypeError, show } from '../../errors.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import { Waiting } from '../../wait/waiting.ts';
import { PATIENCE_MS } from '../robust-lock.ts';
import type { Members } from '../service-members.ts';
import { WordSleeper } from '../word-sleeper.ts';
import { ARRIVED, SLEEPS, signalLine, TAKEN, type WindowPlan } from './window-shape.ts';

const EVERYONE = 0x7fffffff;
/** Milliseconds after which one that waits looks again. */
const LOOK_MS = 250;

export class PlaceSignals {
  readonly #members: Members;
  readonly #words: Int32Array;
  readonly #plan: WindowPlan;
  readonly #what: string;
  readonly #line: number;
  readonly #sleeper: WordSleeper;
  /** Calls of this member that wait. */
  #waiters = 0;

  /** @param what the window, for messages */
  constructor(members: Members, words: Int32Array, plan: WindowPlan, what: string) {
    this.#members = members;
    this.#words = words;
    this.#plan = plan;
    this.#what = what;
    this.#line = signalLine(plan, members.place);
    this.#sleeper = new WordSleeper(members.memory.native, words, this.#line + ARRIVED);
  }

  raise(place: number): void {
    const line = signalLine(this.#plan, place);
    Atomics.add(this.#words, line + ARRIVED, 1);
    if (Atomics.load(this.#words, line + SLEEPS) !== 0)
      this.#members.memory.native.futexWake(this.#words, line + ARRIVED, EVERYONE);
  }

  async wait(call: string, count: number, options: WaitOptions | undefined): Promise<void> {
    const waiting = new Waiting(call, options);
    this.#check(call, count);
    this.#begin();
    try {
      for (;;) {
        this.#members.checkIn(call);
        const seen = Atomics.load(this.#words, this.#line + ARRIVED);
        if (this.#take(count)) return;
        await this.#sleeper.sleep(
          seen,
          Math.min(
            waiting.left(() => this.#describe(count)),
            LOOK_MS,
          ),
          waiting.signal,
        );
      }
    } finally {
      this.#end();
    }
  }

  waitSync(call: string, count: number, options: WaitOptions | undefined): void {
    const waiting = new Waiting(call, options, PATIENCE_MS);
    this.#check(call, count);
    this.#begin();
    try {
      for (;;) {
        const seen = Atomics.load(this.#words, this.#line + ARRIVED);
        if (this.#take(count)) return;
        const left = waiting.left(() => this.#describe(count));
        this.#members.memory.native.futexWait(this.#words, this.#line + ARRIVED, seen, Math.min(left, LOOK_MS));
      }
    } finally {
      this.#end();
    }
  }

  test(call: string, count: number): boolean {
    this.#check(call, count);
    return this.#take(count);
  }

  close(): void {
    this.#sleeper.close();
  }

  /** Only this place takes, and its member does so in one thread. */
  #take(count: number): boolean {
    const taken = Atomics.load(this.#words, this.#line + TAKEN);
    if (this.#arrived() < count) return false;
    Atomics.store(this.#words, this.#line + TAKEN, (taken + count) | 0);
    return true;
  }

  #arrived(): number {
    return (Atomics.load(this.#words, this.#line + ARRIVED) - Atomics.load(this.#words, this.#line + TAKEN)) | 0;
  }

  #begin(): void {
    this.#waiters++;
    Atomics.store(this.#words, this.#line + SLEEPS, 1);
  }

  #end(): void {
    // After it has left, the word is another member's.
    if (--this.#waiters === 0 && !this.#members.isLeft) Atomics.store(this.#words, this.#line + SLEEPS, 0);
  }

  #describe(count: number): string {
    const there = this.#arrived();
    return `${count} notifications of ${this.#what} at place ${this.#members.place}, of which ${there} are there`;
  }

  #check(call: string, count: number): void {
    this.#members.checkIn(call);
    const rule = `${call}: the count of notifications of ${this.#what} must be`;
    if (typeof count !== 'number') throw argumentTypeError(`${rule} a number, not ${show(count)}`);
    if (!Number.isInteger(count) || count < 1 || count > 2 ** 30)
      throw argumentRangeError(`${rule} 1 to 2^30, not ${show(count)}`);
  }
}
