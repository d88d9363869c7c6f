/** Calls of the library: their errors in the words of the verbs. */
import { RmaError } from '../../errors.ts';

/**
 * Runs a call of libibverbs. What it refuses is `ERR_VERBS`, with the errno's name in the message and the error as its
 * cause.
 */
export function verb<T>(call: string, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    const { code, message } = cause as Error & { code?: string };
    const name = code === undefined || message.endsWith(`(${code})`) ? '' : ` (${code})`;
    throw new RmaError('ERR_VERBS', `${call}: ${message}${name}`, { cause });
  }
}
