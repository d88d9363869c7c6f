/**
 * The schemes of a window that is watched: what its locks and its start, complete, post and wait give and take, at the
 * moment when they do. What gives is told before, and what takes afterwards.
 */
import type { Attempt, TargetLock } from '../../sync/lock/lock-scheme.ts';
import type { Folds, GeneralActiveTarget } from '../../sync/pscw/pscw-scheme.ts';
import type { Operation } from '../../wait/operation.ts';
import type { WindowParts } from '../../window/creation/window-parts.ts';
import { RaceEvent } from '../race-events.ts';
import type { RaceTeller } from './race-teller.ts';

export function watchedSchemes(watch: RaceTeller, parts: WindowParts): WindowParts {
  const key = parts.trace;
  return {
    ...parts,
    general: new WatchedSync(watch, key, parts.general),
    // Locks are watched rank by rank.
    allLock: undefined,
    makeLock(rank) {
      const lock = parts.makeLock(rank);
      return lock && new WatchedLock(watch, key, rank, lock);
    },
  };
}

class WatchedLock implements TargetLock {
  readonly #watch: RaceTeller;
  readonly #key: string;
  readonly #owner: number;
  readonly #lock: TargetLock;
  readonly attempt?: (exclusive: boolean, joins?: boolean) => Attempt;

  constructor(watch: RaceTeller, key: string, owner: number, lock: TargetLock) {
    this.#watch = watch;
    this.#key = key;
    this.#owner = owner;
    this.#lock = lock;
    if (lock.attempt === undefined) return;
    this.attempt = (exclusive, joins) => {
      const attempt = lock.attempt!(exclusive, joins);
      return {
        get acquired() {
          return attempt.acquired;
        },
        advance: () => {
          if (!attempt.advance()) return false;
          if (attempt.acquired === true) this.#acquired(exclusive);
          return true;
        },
        describe: () => attempt.describe(),
        abandon: () => attempt.abandon?.(),
        isPolling: () => attempt.isPolling?.() ?? false,
      };
    };
  }

  get isGivenBack(): boolean {
    return this.#lock.isGivenBack === true;
  }

  #acquired(exclusive: boolean): true {
    const watch = this.#watch.begin(this.#key);
    watch
      .add(this.#owner)
      .add(exclusive ? 1 : 0)
      .tell(RaceEvent.LOCKED);
    return true;
  }

  tryAcquire(exclusive: boolean): boolean {
    return this.#lock.tryAcquire(exclusive) && this.#acquired(exclusive);
  }

  tryJoin(): boolean {
    return this.#lock.tryJoin!() && this.#acquired(false);
  }

  acquire(exclusive: boolean): Operation {
    const operation = this.#lock.acquire(exclusive);
    return {
      advance: () => operation.advance() && this.#acquired(exclusive),
      describe: () => operation.describe(),
      abandon: () => operation.abandon?.(),
      isPolling: () => operation.isPolling?.() ?? false,
    };
  }

  release(exclusive: boolean): void {
    const watch = this.#watch.begin(this.#key);
    watch
      .add(this.#owner)
      .add(exclusive ? 1 : 0)
      .tell(RaceEvent.UNLOCKED);
    this.#lock.release(exclusive);
  }
}

class WatchedSync implements GeneralActiveTarget {
  readonly #watch: RaceTeller;
  readonly #key: string;
  readonly #scheme: GeneralActiveTarget;
  readonly folds: Folds | undefined;
  readonly completing?: (targets: readonly number[]) => Operation;
  /** Targets of which it was told that they are, or are about to be, told. */
  #completing: readonly number[] | undefined;

  constructor(watch: RaceTeller, key: string, scheme: GeneralActiveTarget) {
    this.#watch = watch;
    this.#key = key;
    this.#scheme = scheme;
    const { folds } = scheme;
    if (folds !== undefined) {
      this.folds = {
        takes: folds.takes,
        send: (operations, targets) => {
          this.#tells(targets);
          folds.send(operations, targets);
        },
      };
    }
    if (scheme.completing === undefined) return;
    this.completing = (targets) => {
      this.#tells(targets);
      return scheme.completing!(targets);
    };
  }

  get seesPostsAtOnce(): boolean {
    return this.#scheme.seesPostsAtOnce;
  }

  #tell(kind: number, ranks: readonly number[]): true {
    this.#watch.begin(this.#key).addAll(ranks).tell(kind);
    return true;
  }

  #tells(targets: readonly number[]): void {
    if (this.#completing === targets) return;
    this.#completing = targets;
    this.#tell(RaceEvent.TOLD, targets);
  }

  #seen(operation: Operation, kind: number, ranks: readonly number[]): Operation {
    return {
      advance: () => operation.advance() && this.#tell(kind, ranks),
      describe: () => operation.describe(),
      abandon: () => operation.abandon?.(),
      isPolling: () => operation.isPolling?.() ?? false,
    };
  }

  post(origins: readonly number[]): void {
    this.#tell(RaceEvent.POSTED, origins);
    this.#scheme.post(origins);
  }

  tryStart(targets: readonly number[]): boolean {
    return this.#scheme.tryStart(targets) && this.#tell(RaceEvent.STARTED, targets);
  }

  start(targets: readonly number[]): Operation {
    return this.#seen(this.#scheme.start(targets), RaceEvent.STARTED, targets);
  }

  complete(targets: readonly number[]): void {
    this.#tells(targets);
    this.#completing = undefined;
    this.#scheme.complete(targets);
  }

  tryWait(origins: readonly number[]): boolean {
    return this.#scheme.tryWait(origins) && this.#tell(RaceEvent.WAITED, origins);
  }

  wait(origins: readonly number[]): Operation {
    return this.#seen(this.#scheme.wait(origins), RaceEvent.WAITED, origins);
  }
}
