/** The barrier of the adapters' own protocol (`capabilities.barrier`, verbs/adapter-barrier.ts). */
import type { Channel } from '../message/message-channel.ts';
import type {
  AdapterBarrier,
  AdapterBarrierAddress,
  AdapterBarrierStatistics,
  BarrierSchedule,
} from '../verbs/adapter-barrier.ts';
import { meetPeers } from './barrier-peers.ts';
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

  /**
   * Collective: the ranks that tell each other something learn where they are reached, if their fabric does not know.
   * @param make makes this rank's
   * @param channel nothing else goes through it meanwhile
   * @param fabricKnows nothing need be told: members are numbers of their fabric
   * @returns `undefined` if another rank could not make its own
   * Errors: `ERR_VERBS`.
   */
  static *setUp(
    make: () => AdapterBarrier,
    schedule: BarrierSchedule,
    channel: Channel,
    fabricKnows: boolean,
  ): Generator<void, FirmwareBarrier | undefined> {
    if (fabricKnows) return new FirmwareBarrier(make());
    const adapter = yield* meetPeers(schedule, channel, {
      make,
      tell: ({ address }) => bytesOf(address!),
      hear: (made, peer, told) => made.connect!(peer, addressOf(told)),
    });
    return adapter && new FirmwareBarrier(adapter);
  }

  get statistics(): AdapterBarrierStatistics {
    return this.#adapter.statistics;
  }

  begin(): void {
    if (this.#active) return;
    this.#adapter.enter();
    this.#active = true;
    this.#count = (this.#count + 1) | 0;
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

function bytesOf({ queuePair, qkey, group }: AdapterBarrierAddress): Uint8Array {
  return new Uint8Array(Uint32Array.of(queuePair, qkey, group).buffer);
}

function addressOf(message: Uint8Array): AdapterBarrierAddress {
  const [queuePair, qkey, group] = new Uint32Array(message.buffer);
  return { queuePair, qkey, group };
}
