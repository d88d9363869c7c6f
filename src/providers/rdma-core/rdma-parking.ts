/**
 * Where a rank on a device sleeps: until a completion queue that was asked to, or the device itself, has something to
 * say.
 *
 * Completion queues are asked for a notification when a sleep begins, or while one lasts, not before: a rank that finds
 * what it waits for by polling makes no system call for it. The question itself finds what has come before it.
 *
 * Notifications are counted when they are fetched; `arm` gives the count, and a sleep ends at once if it has changed
 * since, or if the descriptors have something to read, which is what the kernel waits for. So a notification between
 * `arm` and the sleep ends it, and none is lost.
 *
 * A thread of the addon that carries out barriers counts in `announced`, and then writes to the descriptor that ends
 * waits. A rank that has read that descriptor looks at `announced` behind it, and finds what it was about.
 */
import type { RdmaContext } from '../../native.ts';
import type { Parking } from '../../verbs/device.ts';

interface Sleeper {
  readonly token: number;
  readonly wake: () => void;
  readonly deadline: number;
}

/** Between two looks of a rank that serves others in the background. */
const BACKGROUND_MS = 2;

export class RdmaParking implements Parking {
  readonly seesPlainStores = false;
  received = 0;
  /** What a thread of the addon counts up when it has something to tell. */
  readonly announced = new Int32Array(new SharedArrayBuffer(4));
  #told = 0;
  readonly #device: RdmaContext;
  readonly #takeAsync: () => void;
  readonly #notify: () => void;
  readonly #asleep = new Set<Sleeper>();
  #events = 0;
  #waiting = false;

  /**
   * @param takeAsync fetches the asynchronous events that are there: they would end every sleep
   * @param notify asks the completion queues for the notifications that are wanted of them
   */
  constructor(device: RdmaContext, takeAsync: () => void, notify: () => void) {
    this.#device = device;
    this.#takeAsync = takeAsync;
    this.#notify = notify;
  }

  /** Whether something sleeps by a promise: completion queues are then asked for notifications at once. */
  get isAsleep(): boolean {
    return this.#asleep.size > 0;
  }

  /** Something has happened that all sleepers must look at. */
  note(): void {
    this.#events = (this.#events + 1) | 0;
    if (this.#waiting) this.#device.interrupt(false);
  }

  /**
   * Completions were fetched. They may belong to another operation than the one that looked: an operation that has
   * armed before looks again instead of sleeping, since no notification of them will come. (One that sleeps already had
   * asked for a notification.)
   */
  taken(): void {
    this.#events = (this.#events + 1) | 0;
  }

  arm(): number {
    return this.#events;
  }

  disarm(): void {}

  sleepSync(token: number, timeoutMs: number): void {
    // What has come already ends the sleep at once.
    if (token !== this.#events || timeoutMs <= 0) return;
    this.#notify();
    if (token === this.#events) this.#took(this.#device.wait(timeoutMs));
  }

  /** In the background it looks again after some milliseconds: the device's thread keeps the event loop alive. */
  sleep(token: number, timeoutMs: number, background = false): Promise<void> {
    if (!this.#maySleep(token, timeoutMs)) return Promise.resolve();
    if (background) {
      return new Promise((resolve) => void setTimeout(resolve, Math.min(timeoutMs, BACKGROUND_MS)).unref());
    }
    return new Promise((resolve) => {
      this.#asleep.add({ token, wake: resolve, deadline: performance.now() + timeoutMs });
      this.#wait();
    });
  }

  /** The device's thread says that there is something, or that the time is over. */
  woken(): void {
    this.#waiting = false;
    this.#take();
    const now = performance.now();
    for (const sleeper of this.#asleep) {
      if (sleeper.token === this.#events && sleeper.deadline > now) continue;
      this.#asleep.delete(sleeper);
      sleeper.wake();
    }
    if (this.#asleep.size > 0) this.#wait();
    else this.#device.interrupt(true);
  }

  /** Wakes all: the context is being closed. */
  close(): void {
    for (const { wake } of this.#asleep) wake();
    this.#asleep.clear();
  }

  #wait(): void {
    if (this.#waiting) {
      this.#device.interrupt(false); // a nearer deadline, perhaps
      return;
    }
    this.#waiting = true;
    const deadline = Math.min(...Array.from(this.#asleep, (sleeper) => sleeper.deadline));
    this.#device.beginWait(Math.max(1, deadline - performance.now()));
  }

  #maySleep(token: number, timeoutMs: number): boolean {
    if (this.#take() || token !== this.#events || timeoutMs <= 0) return false;
    this.#notify();
    return token === this.#events;
  }

  /** Fetches what has come. @returns whether there was anything */
  #take(): boolean {
    return this.#took(this.#device.takeEvents());
  }

  #took(taken: number): boolean {
    const told = Atomics.load(this.announced, 0);
    if (taken === 0 && told === this.#told) return false;
    this.#told = told;
    if (taken >= 65536) this.#takeAsync();
    this.#events = (this.#events + 1) | 0;
    // What woke the device's thread may be gone by the time it looks; calls that await something look again all the
    // same.
    if (this.#waiting) this.#device.interrupt(false);
    return true;
  }
}
