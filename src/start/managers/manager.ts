/**
 * What started this process as one of several, and passes a few bytes between them: `mpiexec` (PMI-1), `srun` (PMI-2),
 * `mpirun` (PMIx), or the rank at an address that all were given. Ranks need no more than that to find each other.
 */

/** What ends the wait for the other ranks early. */
export interface Patience {
  /** Aborted with the error to fail with. */
  readonly signal: AbortSignal;
}

export interface ProcessManager {
  readonly rank: number;
  readonly size: number;
  /** For messages: `mpiexec (PMI-1)`. */
  readonly name: string;
  /**
   * Every rank's card, by rank. Collective, and the last thing that is asked of the manager: the call also says goodbye
   * to it.
   * @param card at most {@link CARD_CHARACTERS} letters, digits, `-` and `_`
   */
  exchange(card: string, patience: Patience): Promise<string[]>;
  /** The address of this host by which it reaches another one, or at which others look for it, if that is known. */
  reached?(): Promise<string | undefined>;
  /** What the exchange waits for, in words, if that is known. */
  awaited?(): string;
  /** Keeps the programs that this process starts from taking themselves for this rank. */
  forget(): void;
}

/** What every manager takes: the shortest limit is PMI's, 1024 less what it adds. */
export const CARD_CHARACTERS = 900;

/** The variables of the environment that say which rank this is. */
export function removeVariables(...names: string[]): void {
  for (const name of names) delete process.env[name];
}

/** A number of the environment, or NaN. */
export function readNumber(name: string): number {
  const text = process.env[name];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
}
