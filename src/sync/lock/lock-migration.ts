/**
 * When a hybrid lock changes its mode (dissertation §5.2, and §5.3.7 for what it leaves open). The manager at the
 * target decides, with what it knows: requests that come to it, what ranks of its node have counted in words that they
 * share with it, and what ranks of other nodes tell with their next request.
 *
 *   every-request   a request from the other side changes it, as in the dissertation's measurements
 *   threshold:N     the N-th request from the other side that is not outweighed by those of this side
 *   history         the same, with an N that learns: it doubles after a stay that was not worth the change, and halves
 *                   after one that was
 *   never
 */

export const MIGRATIONS = ['every-request', 'threshold:N', 'history', 'never'] as const;

/** `history`: where N begins, its bounds, and how many locks make a stay worth the change. */
const FIRST = 4;
const LEAST = 2;
const MOST = 64;
const WORTH = 8;
/** The limit of `never`. */
const NEVER = 2 ** 30;

export class MigrationPolicy {
  /** Requests from the other side after which the mode changes. */
  limit: number;
  readonly #learns: boolean;
  #stays = 0;

  /** @param hint one of `MIGRATIONS`, with a number for N */
  constructor(hint: string) {
    this.#learns = hint === 'history';
    if (hint === 'every-request') this.limit = 1;
    else if (hint === 'never') this.limit = NEVER;
    else this.limit = this.#learns ? FIRST : Number(hint.slice(hint.indexOf(':') + 1));
  }

  get migrates(): boolean {
    return this.limit < NEVER;
  }

  /**
   * A stay in one mode is over, or is known in full now.
   * @param locks what was locked meanwhile by those whom the mode favours
   */
  judge(locks: number): void {
    // The first stay did not come of a decision.
    if (!this.#learns || this.#stays++ === 0) return;
    this.limit = locks < WORTH ? Math.min(MOST, 2 * this.limit) : Math.max(LEAST, this.limit / 2);
  }
}

/** Whether a value of the hint `lock_migration` is one. */
export function isMigration(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  return (
    value === 'every-request' || value === 'history' || value === 'never' || /^threshold:[1-9]\d{0,8}$/.test(value)
  );
}
