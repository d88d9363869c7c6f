/** Assertions of synchronization calls (MPI 4.1, 12.5.5), to be or-ed. */
import { argumentTypeError, RmaError, show } from '../errors.ts';

export const Assert = Object.freeze({
  /** `lock`, `lockAll`, `start`, `post`: no conflicting lock is held or tried; the lock itself is not taken. */
  NO_CHECK: 1,
  /** `fence`, `post`: this rank has not stored into its own part since the last synchronization. */
  NO_STORE: 2,
  /** `fence`, `post`: nobody puts or accumulates into this rank's part until the next one. */
  NO_PUT: 4,
  /** `fence`: this rank has issued nothing since the last fence. All ranks must say so or none. */
  NO_PRECEDE: 8,
  /** `fence`: nothing is issued before the next fence; the epoch is not opened. All ranks must say so or none. */
  NO_SUCCEED: 16,
});

const NAMES = Object.entries(Assert);

/** @param allowed the bits that this call knows */
export function checkAssert(call: string, assert: number, allowed: number): void {
  if (typeof assert !== 'number')
    throw argumentTypeError(
      `${call}: the assertions must be a number that combines Assert's bits, not ${show(assert)}`,
      'ERR_ASSERT',
    );
  if (Number.isInteger(assert) && assert >= 0 && (assert & ~allowed) === 0 && assert <= 31) return;
  const known = NAMES.filter(([, bit]) => (bit & allowed) !== 0).map(([name]) => name);
  throw new RmaError(
    'ERR_ASSERT',
    `${call}: the assertions must be a combination of ${known.join(' | ')}, not ${show(assert)}`,
  );
}
