import { RmaError } from '../../errors.ts';

/** For an array that the program has taken away before the call was complete. */
export function lostError(name: string, call: string, rank: number): RmaError {
  return new RmaError(
    'ERR_BUFFER',
    `the ${name} of ${call} to rank ${rank} was lost before the operation was complete, ` +
      'because its ArrayBuffer was transferred or has shrunk; keep it until flush, unlock, ' +
      'fence or complete has returned',
  );
}
