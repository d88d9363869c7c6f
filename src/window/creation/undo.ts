/** What is given back when a window is freed, or when it cannot be made: the last thing first. */
export class Undo {
  #steps: (() => void)[] = [];

  add(step: () => void): void {
    this.#steps.push(step);
  }

  /** Happens once. A step that fails keeps none of the others back; the first failure is thrown behind them. */
  run(): void {
    const steps = this.#steps;
    this.#steps = [];
    let failure: { readonly error: unknown } | undefined;
    for (const step of steps.reverse()) {
      try {
        step();
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure !== undefined) throw failure.error;
  }
}
