/**
 * The closing half of the two fences with finish messages: see immediate-optimized-fence.ts for the steps and why they
 * are enough.
 */
import { FenceByRequests } from './fence-by-requests.ts';

/** What a finish message tells. */
const FINISH = 0;

export abstract class FenceByFinish extends FenceByRequests {
  /** Finish messages that all fences so far have waited for. */
  #expected = 0;

  protected *finish(): Generator<void, void> {
    const targets = this.requests.notifications.sendFinishes(FINISH);
    for (const put of targets) this.statistics.finishes += put;
    yield* this.completeOwn();
    this.#expected += yield* this.count(this.comm.sumForMe(targets));
    const holds = (): boolean => this.requests.notifications.told(FINISH) >= this.#expected;
    yield* this.until(holds, 'waiting for the finish messages of the ranks that have put to this rank');
  }
}
