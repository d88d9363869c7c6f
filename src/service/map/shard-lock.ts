/** What writers of a map exclude each other by. */
export interface ShardLock {
  /**
   * Takes a lock, blocking this thread while another member holds it.
   * @param word of the map's memory: the first of the 16 words of a cache line that the lock has for itself. All are 0
   * when the map is made
   * @returns the place of a member that died while it held the lock, or -1
   */
  acquire(word: number): number;
  release(word: number): void;
}
