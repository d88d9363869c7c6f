/** The exposure epoch of a window at this rank: which origins may access its part, and the calls that end it. */
import type { WindowScope } from './window-scope.ts';

export class Exposure {
  readonly #scope: WindowScope;
  #origins: readonly number[] | undefined;
  /** A promise waits for the end of the epoch. */
  #waiting = false;

  constructor(scope: WindowScope) {
    this.#scope = scope;
  }

  /** `undefined` if no such epoch is open. */
  get origins(): readonly number[] | undefined {
    return this.#origins;
  }

  /** `post` was checked, and has told the origins. */
  begun(origins: readonly number[]): void {
    this.#origins = origins;
  }

  /** @param call `wait` or `test` @returns the origins of the epoch */
  checkWait(call: string): readonly number[] {
    this.#scope.checkAlive(call);
    if (this.#waiting) throw this.#scope.refused(`${call} on`, 'a wait is in progress; await it first');
    if (this.#origins !== undefined) return this.#origins;
    throw this.#scope.refused(`${call} of`, 'no exposure epoch is open; call post() first');
  }

  waitBegun(): void {
    this.#waiting = true;
  }

  /** The epoch has ended, or the wait did without it. */
  waitEnded(): void {
    this.#waiting = false;
  }

  ended(): void {
    this.#origins = undefined;
  }
}
