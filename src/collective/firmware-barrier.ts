/** The barrier of the adapters' own protocol (`capabilities.barrier`, verbs/adapter-barrier.ts). */
import { RmaError } from '../errors.ts';
import type { Channel } from '../message/message-channel.ts';
import type {
  AdapterBarrier,
  AdapterBarrierAddress,
  AdapterBarrierStatistics,
  BarrierSchedule,
} from '../verbs/adapter-barrier.ts';
import { peersOf } from './barrier-algorithms.ts';
import { anyOf } from './collectives.ts';
import { receive } from './receive.ts';
import type { BarrierState } from './word-barrier.ts';

const NOTHING = new Uint8Array(0);
/** Numbers of an address. */
const TOLD = 3;

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
   * Errors: `ERR_VERBS`, at all ranks, if one has no room.
   */
  static *setUp(
    make: () => AdapterBarrier,
    schedule: BarrierSchedule,
    channel: Channel,
  ): Generator<void, FirmwareBarrier> {
    let adapter: AdapterBarrier | undefined;
    let failure: unknown;
    try {
      adapter = make();
    } catch (error) {
      failure = error;
    }
    if (adapter !== undefined && adapter.address === undefined) return new FirmwareBarrier(adapter);
    const peers = peersOf(schedule);
    const mine = adapter?.address === undefined ? NOTHING : bytesOf(adapter.address);
    for (const peer of peers) channel.send(peer, mine);
    for (const peer of peers) {
      const message = (yield* receive(channel, peer, -1, 'barrier')).slice();
      if (adapter === undefined || message.length !== 4 * TOLD) continue;
      try {
        adapter.connect!(peer, addressOf(message));
      } catch (error) {
        failure ??= error;
      }
    }
    if (yield* anyOf(channel, failure !== undefined, () => {}))
      throw failure ?? new RmaError('ERR_VERBS', 'barrier: the adapter of another rank has no room for it (ENOMEM)');
    return new FirmwareBarrier(adapter!);
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

function bytesOf({ queuePair, qkey, group }: AdapterBarrierAddress): Uint8Array {
  return new Uint8Array(Uint32Array.of(queuePair, qkey, group).buffer);
}

function addressOf(message: Uint8Array): AdapterBarrierAddress {
  const [queuePair, qkey, group] = new Uint32Array(message.buffer);
  return { queuePair, qkey, group };
}
