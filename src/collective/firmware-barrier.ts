/** The barrier that the adapters' firmware carries out (`capabilities.barrier`, verbs/adapter-barrier.ts). */
import type { AdapterBarrier, AdapterBarrierStatistics } from '../verbs/adapter-barrier.ts';
import type { BarrierState } from './word-barrier.ts';

export class FirmwareBarrier implements BarrierState {
  readonly #adapter: AdapterBarrier;
  /** Its adapter goes on without it. */
  readonly owes = false;
  #count = 0;
  #active = false;

  constructor(adapter: AdapterBarrier) {
    this.#adapter = adapter;
  }

  get statistics(): AdapterBarrierStatistics {
    return this.#adapter.statistics;
  }

  begin(): void {
    if (this.#active) return;
    this.#active = true;
    this.#count = (this.#count + 1) | 0;
    this.#adapter.enter();
  }

  advance(): boolean {
    if (((this.#adapter.complete() - this.#count) | 0) < 0) return false;
    this.#active = false;
    return true;
  }

  waitsFor(): string {
    const awaited = this.#adapter.awaited();
    return awaited < 0 ? 'its own adapter' : `rank ${awaited}`;
  }

  askedFor(): readonly number[] {
    const awaited = this.#adapter.awaited();
    return awaited < 0 ? [] : [awaited];
  }
}
