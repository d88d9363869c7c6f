/**
 * The program's line in the errors of promises.
 *
 * What ends a wait early is found in the loop that serves all waits of a rank, long after the call has returned: an
 * error made there shows the library's frames only. So a promise that waits is handed out through an asynchronous
 * function. When it is rejected, that function goes on, and from there V8 walks back through whatever awaits it to the
 * line of the program, and writes it into the stack as `at async main (file:///…/program.js:12:3)`. Nothing is recorded
 * in advance: a call that succeeds costs what it did.
 */

import { beginAtProgram, showsProgram } from '../program-line.ts';
import { isAborted, reasonOf } from './abort-signals.ts';

/** The errors whose stack says nothing yet: those that the library throws on purpose, by their code. */
function isOurs(error: unknown): error is Error {
  return error instanceof Error && /^ERR_/.test(String((error as { code?: unknown }).code));
}

/**
 * What a wait of tasks is resolved with that will never end, when that is found out: an error takes the stack of its
 * caller, to whom nothing happens.
 */
export class SeenWaiting {
  readonly #error: Error;
  readonly #told: (isSeen: boolean) => void;

  /** @param told whether the stack shows a line of the program now */
  constructor(error: Error, told: (isSeen: boolean) => void) {
    this.#error = error;
    this.#told = told;
  }

  /** @param below the function whose caller waits */
  take(below: (...args: never) => unknown): void {
    Error.captureStackTrace(this.#error, below);
    beginAtProgram(this.#error);
    this.#told(showsProgram(this.#error));
  }
}

/**
 * The same promise, but for the stack of an error of the library, which begins at what awaits the promise.
 * @param signal its reason is the caller's, and left as it is
 */
export async function seenByCaller<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    const value: unknown = await promise;
    if (!(value instanceof SeenWaiting)) return value as T;
    value.take(seenByCaller);
    return await new Promise<never>(() => {});
  } catch (error) {
    if (isOurs(error) && !(signal !== undefined && isAborted(signal) && error === reasonOf(signal))) {
      Error.captureStackTrace(error, seenByCaller);
      beginAtProgram(error);
    }
    throw error;
  }
}
