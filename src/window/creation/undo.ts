/** What is given back when a window is freed, or when it cannot be made: the last thing first. */
export class Undo {
  #steps: (() => void)[] = [];

  add(step: () => void): void {
    this.#steps.push(step);
  }

  /** Happens once. */
  run(): void {
    const steps = this.#steps;
    this.#steps = [];
    for (const step of steps.reverse()) step();
  }
}
