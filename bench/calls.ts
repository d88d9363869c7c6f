/**
 * The calls that wait, in one of their two forms, so that a program can be written once: it awaits them, and awaiting
 * nothing costs next to nothing. Blocking forms have the lowest latency between ranks that are processes or threads; a
 * modelled fabric has promise forms only.
 */
import type { Communicator, Lock, Window } from 'onesided';

export type Form = 'sync' | 'promise';

export interface Calls {
  barrier(): void | Promise<void>;
  fence(window: Window): void | Promise<void>;
  lock(window: Window, target: number, type: Lock, assert?: number): void | Promise<void>;
  unlock(window: Window, target: number): void | Promise<void>;
}

export function callsOf(world: Communicator, form: Form): Calls {
  return form === 'sync'
    ? {
        barrier: () => world.barrierSync(),
        fence: (window) => window.fenceSync(),
        lock: (window, target, type, assert) => window.lockSync(target, type, assert),
        unlock: (window, target) => window.unlockSync(target),
      }
    : {
        barrier: () => world.barrier(),
        fence: (window) => window.fence(),
        lock: (window, target, type, assert) => window.lock(target, type, assert),
        unlock: (window, target) => window.unlock(target),
      };
}
