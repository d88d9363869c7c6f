/** Assertions of synchronization calls (MPI 4.1, 12.5.5), to be or-ed. */
import { argumentTypeError, RmaError, show } from '../../errors.ts';

/** The assertions of synchronization calls (MPI 4.1, 12.5.5). Combine them with `|`. */
export const Assert = Object.freeze({
  /**
   * `lock`, `lockAll`: no rank holds or requests a conflicting lock, so the call takes no lock. `start`, `post`: all
   * targets post before their origins start.
   */
  NO_CHECK: 1,
  /** `fence`, `post`: this rank has not stored into its part since the last synchronization. */
  NO_STORE: 2,
  /** `fence`, `post`: no rank puts or accumulates into this rank's part until the next synchronization. */
  NO_PUT: 4,
  /** `fence`: this rank has issued no operations since the last fence. Either all ranks pass it or none. */
  NO_PRECEDE: 8,
  /**
   * `fence`: no rank issues operations before the next fence, so the fence opens no epoch. Either all ranks pass it or
   * none.
   */
  NO_SUCCEED: 16,
});

const NAMES = Object.entries(Assert);

/** @param allowed the bits that this call knows */
export function checkAssert(call: string, assert: number, allowed: number): void {
  if (typeof assert !== 'number')
    throw argumentTypeError(
      `${call}: the assertions must be a number that combines Assert's bits, not ${show(assert)}` +
        (typeof assert === 'object' ? '; options come behind them, so give 0 first' : ''),
      'ERR_ASSERT',
    );
  if (Number.isInteger(assert) && assert >= 0 && (assert & ~allowed) === 0 && assert <= 31) return;
  const known = NAMES.filter(([, bit]) => (bit & allowed) !== 0).map(([name]) => name);
  throw new RmaError(
    'ERR_ASSERT',
    `${call}: the assertions must be a combination of ${known.join(' | ')}, not ${show(assert)}`,
  );
}
