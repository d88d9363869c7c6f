/** What writers of a map exclude each other by. */
export interface ShardLock {
  /**
   * Takes a lock if nobody has it.
   * @param word of the map's memory: the first of the 16 words of a cache line that the lock has for itself. All are 0
   * when the map is made
   * @returns -1, or `undefined` if somebody has it
   */
  tryAcquire(word: number): number | undefined;
  /** Looks some more times, also whether the holder lives. Never sleeps. @returns as `acquire`, or `undefined` */
  tryBriefly(word: number): number | undefined;
  /**
   * Takes a lock, blocking this thread while another member holds it.
   * @param what for messages
   * @param timeout milliseconds; `undefined`: a while, and not for a holder that is stopped
   * @returns the place of a member that died while it held the lock, or -1
   */
  acquire(word: number, call: string, what: string, timeout: number | undefined): number;
  /** What a lock is of, and who has it, for messages. */
  describe(word: number, what: string): string;
  release(word: number): void;
}
