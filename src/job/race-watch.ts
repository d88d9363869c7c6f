/**
 * What sees the calls of a rank whose program is searched for races (docs/decisions/050-races.md). It is there in jobs
 * that are, and what it is made of is not even loaded in others. It knows windows and communicators, which stand above
 * this layer, so its interface does not name their types.
 */
export interface RaceWatch {
  /** @param key the same at all its ranks, and no other's */
  communicator(communicator: object, key: string): void;
  /** What a window is made of is there; no other rank has the window yet. */
  made(parts: object): void;
  /** The schemes of a window, watched. */
  schemes<Parts extends object>(parts: Parts): Parts;
  /** The log that the calls of a window tell of their accesses: an `Accesses` (window/epochs/accesses.ts). */
  accesses(parts: object): object;
  window(window: object, parts: object): void;
  /**
   * A BSP computation: its supersteps order its ranks.
   * @param key the same at all its ranks, and no other's
   */
  supersteps(bsp: object, key: string, rank: number, size: number): void;
  /** The rank's part in the job has ended. */
  close(): void;
}
