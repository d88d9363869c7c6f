/**
 * What an abort signal of the program really is, whatever it says of itself: a signal can have an `aborted` or an
 * `addEventListener` of its own that lies or throws, in the midst of a wait. Its state is asked by the getters of the
 * language, and it is listened to by the engine's own functions.
 */
import { argumentTypeError } from '../errors.ts';

const abortedOf = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')!.get!;
const reasonIn = Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'reason')!.get!;
const { addEventListener, removeEventListener } = EventTarget.prototype;

/** Errors: `TypeError` for what is no signal. */
export function isAborted(signal: AbortSignal): boolean {
  return abortedOf.call(signal) as boolean;
}

export function reasonOf(signal: AbortSignal): unknown {
  return reasonIn.call(signal);
}

const nothing = (): void => {};

/**
 * Calls `listener` once, when the signal is aborted after this.
 * @returns ends it
 * Errors: `ERR_ARG`, if the signal takes no listener; to be called before anything is begun that would have to be
 * called off.
 */
export function whenAborted(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return nothing;
  try {
    addEventListener.call(signal, 'abort', listener, { once: true });
  } catch (cause) {
    throw argumentTypeError(
      `signal must be an AbortSignal, and this one takes no listener: ${(cause as Error).message}`,
    );
  }
  return () => removeEventListener.call(signal, 'abort', listener);
}
