/** Whom a wait, or what is served, is for. */

/** Those that a wait is for. */
export interface Concerned {
  /**
   * The error to end a wait with, if one of them has failed (set by the code that noticed; a new one each time) or the
   * connection with one was lost. Cheap while all is well: three loads.
   */
  trouble(): unknown;
  /**
   * The failure of one of them, if that is what is behind an error of the device: its memory could not be reached, a
   * connection broke.
   */
  explain(error: unknown): unknown;
  /** Throws if the connection with one of them was lost. */
  check(): void;
  /** Keeps what a server of theirs has thrown for their next wait. */
  note(error: unknown): void;
}
