/** Memory of ranks that requests reach. */

/** Memory at a target: its part, or what is attached to a dynamic window. */
export interface RemoteRegion {
  readonly rkey: number;
  /** What is added to the places that requests name to make them addresses of the device. */
  readonly address: number;
}

/** The parts of all ranks of a window, each looked up when it is first asked for: most ranks talk to few. */
export class Regions {
  readonly #known: (RemoteRegion | undefined)[] = [];
  readonly #lookUp: (rank: number) => RemoteRegion;

  constructor(lookUp: (rank: number) => RemoteRegion) {
    this.#lookUp = lookUp;
  }

  of(rank: number): RemoteRegion {
    this.#known[rank] ??= this.#lookUp(rank);
    return this.#known[rank];
  }
}
