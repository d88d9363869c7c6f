/** The output of all ranks of a job: two line mergers, which know of each other when both write to one terminal. */
import type { Readable } from 'node:stream';
import type { JobFailure, LaunchOptions } from './job-start.ts';
import { type Destination, LineMerger, prefixOf, type Terminal, wantsColour } from './line-merger.ts';
import { FatalSieve } from './shown-errors.ts';

/** Milliseconds between two looks at output that does not end. */
const LOOK_EVERY = 50;

export class JobOutput {
  /** Ranks write to this process's own stdout and stderr. */
  readonly direct: boolean;
  readonly #mergers: LineMerger[] = [];
  readonly #destinations: Destination[];
  readonly #prefix: (rank: number, destination: Destination) => string;
  /** Errors that have ended ranks, by rank: shown when the job has ended. */
  readonly #fatal = new Map<number, string>();
  #open = 0;
  #onAllEnded: (() => void) | undefined;

  /** @param failed called when output cannot be written any more: how the job ends of it */
  constructor(size: number, output: LaunchOptions['output'], failed: (exitCode: number, failure: JobFailure) => void) {
    this.direct = output === 'direct';
    const {
      stdout = process.stdout,
      stderr = process.stderr,
      prefix = true,
    } = output === undefined || output === 'direct' ? {} : output;
    this.#destinations = [stdout, stderr];
    this.#prefix = (rank, destination) =>
      prefix && !this.direct ? prefixOf(rank, size, wantsColour(destination)) : '';
    const terminal: Terminal = { showsPartial: false, columns: () => stdout.columns ?? stderr.columns };
    for (const destination of this.#destinations) {
      this.#mergers.push(
        new LineMerger(destination, destination.isTTY === true ? terminal : undefined, (error) => {
          // The reader has gone, as of `| head`: what a shell calls the end by SIGPIPE, and nothing to be said about
          // it.
          if ((error as NodeJS.ErrnoException).code === 'EPIPE') failed(141, { kind: 'output', message: '' });
          else failed(1, { kind: 'output', message: `cannot write the output of the ranks: ${error.message}` });
        }),
      );
    }
  }

  connect(rank: number, stdout: Readable | null, stderr: Readable | null): void {
    for (const [index, source] of [stdout, stderr].entries()) {
      if (source === null) continue;
      this.#open++;
      const ended = (): void => {
        if (--this.#open === 0) this.#onAllEnded?.();
      };
      const fatal = new FatalSieve((error, { line }) =>
        this.fatal(rank, Buffer.from(error, 'latin1').toString(), line),
      );
      const prefix = this.#prefix(rank, this.#destinations[index]);
      this.#mergers[index].connect(source, prefix, ended, index === 1 ? fatal : undefined);
    }
  }

  /**
   * An error that ends a rank.
   * @param line in place of it, where it only follows another rank's failure
   */
  fatal(rank: number, error: string, line: string | undefined): void {
    if (line === undefined) this.#fatal.set(rank, error);
    else this.print(rank, line);
  }

  /** Shows the errors that have ended ranks. @param last the rank whose error comes last: the one that failed first */
  showFatal(last: number | undefined): void {
    const ranks = [...this.#fatal.keys()].sort((a, b) => Number(a === last) - Number(b === last) || a - b);
    for (const rank of ranks) this.print(rank, this.#fatal.get(rank)!.replace(/\n+$/, ''));
    this.#fatal.clear();
  }

  /** A message about a rank, on stderr. */
  print(rank: number, text: string): void {
    this.#mergers[1].print(text, this.#prefix(rank, this.#destinations[1]));
  }

  /**
   * Resolves when everything that the ranks wrote was passed on. Something that a rank started may hold its streams
   * open: they are left after `milliseconds`, not counting the time in which the destination takes no more.
   */
  drained(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      let quiet = 0;
      const timer = setInterval(() => {
        quiet = this.#mergers.some((merger) => merger.blocked) ? 0 : quiet + LOOK_EVERY;
        if (quiet > milliseconds) this.#onAllEnded?.();
      }, LOOK_EVERY);
      this.#onAllEnded = () => {
        clearInterval(timer);
        resolve();
      };
      if (this.#open === 0) this.#onAllEnded();
    });
  }

  close(): void {
    for (const merger of this.#mergers) merger.close();
  }
}
