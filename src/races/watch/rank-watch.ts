/** What watches one rank: its windows, communicators and computations. */
import type { Communicator } from '../../collective/communicator.ts';
import type { RaceWatch } from '../../job/race-watch.ts';
import type { WindowParts } from '../../window/creation/window-parts.ts';
import { RaceEvent } from '../race-events.ts';
import { watchCommunicator, watchSupersteps } from './communicator-watch.ts';
import { RaceTeller } from './race-teller.ts';
import { watchedSchemes } from './scheme-watch.ts';
import { tellWindow, WindowWatch } from './window-watch.ts';

export class RankWatch extends RaceTeller implements RaceWatch {
  readonly #windows = new Map<string, WindowWatch>();

  communicator(communicator: object, key: string): void {
    const { group, name } = communicator as Communicator;
    const title = this.text(name);
    this.begin(key).add(title).addAll(group.worldRanks).tell(RaceEvent.COMMUNICATOR);
    watchCommunicator(this, communicator as Communicator, key);
  }

  made(parts: object): void {
    tellWindow(this, parts as WindowParts);
  }

  schemes<Parts extends object>(parts: Parts): Parts {
    return watchedSchemes(this, parts as unknown as WindowParts) as unknown as Parts;
  }

  accesses(parts: object): WindowWatch {
    const watch = new WindowWatch(this, parts as WindowParts, (key) => this.#windows.delete(key));
    this.#windows.set((parts as WindowParts).trace, watch);
    return watch;
  }

  window(window: object, parts: object): void {
    this.#windows.get((parts as WindowParts).trace)?.watch(window);
  }

  supersteps(bsp: object, key: string, rank: number, size: number): void {
    watchSupersteps(this, bsp, key, rank, size);
  }
}
