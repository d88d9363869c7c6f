/** How far a program is: a bar on a terminal, a line every tenth elsewhere. */
import { SingleBar } from 'cli-progress';

export class Progress {
  readonly #total: number;
  readonly #what: string;
  readonly #bar: SingleBar | undefined;
  #tenths = 0;

  /** @param shown false for ranks that say nothing */
  constructor(what: string, total: number, shown: boolean) {
    this.#what = what;
    this.#total = shown ? total : 0;
    if (!shown || process.stdout.isTTY !== true) return;
    this.#bar = new SingleBar({
      format: `${what.padEnd(10)} {bar} {percentage} %  {duration_formatted}`,
      stream: process.stdout,
      barCompleteChar: '█',
      barIncompleteChar: '░',
      hideCursor: true,
      // The program leaves the event loop no time, so the bar is drawn when it is told of progress.
      synchronousUpdate: true,
    });
    this.#bar.start(total, 0);
  }

  update(done: number): void {
    if (this.#bar !== undefined) {
      this.#bar.update(done);
    } else if (this.#total > 0) {
      const tenths = Math.floor((10 * done) / this.#total);
      if (tenths === this.#tenths) return;
      this.#tenths = tenths;
      console.log(`${this.#what} ${tenths * 10} %`);
    }
  }

  stop(): void {
    this.#bar?.stop();
  }
}
