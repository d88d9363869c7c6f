/**
 * Pauses between looks at something that others hold for microseconds, or until somebody wakes them: the event loop
 * goes on meanwhile. First some turns of it, then timers that grow to 20 ms. Who holds it rings no bell for that.
 */
const TURNS = 8;
const LONGEST_MS = 20;

export class Pauses {
  #count = 0;

  /** @param ms the most that it may take, about */
  async next(ms: number): Promise<void> {
    const number = this.#count++;
    await new Promise<void>((resolve) => {
      if (number < TURNS) setImmediate(resolve);
      else setTimeout(resolve, Math.min(ms, 2 ** Math.min(number - TURNS, 5), LONGEST_MS));
    });
  }
}
