/**
 * Ranks in one thread that are interrupted between atomic operations.
 *
 * Each of the methods of `Atomics` is wrapped: before it does its work, another rank may run, and be interrupted in the
 * same way. Who is interrupted goes on when those who came between have come to the end of what they do: not every
 * interleaving, but every place where one can be interrupted, with anything in between.
 */
const NAMES = ['load', 'store', 'add', 'sub', 'and', 'or', 'xor', 'exchange', 'compareExchange'] as const;

/** Runs `body` with `interrupt` called before every atomic operation. */
function withInterruptions<T>(interrupt: () => void, body: () => T): T {
  const atomics = Atomics as unknown as Record<string, (...args: unknown[]) => unknown>;
  const originals = NAMES.map((name) => atomics[name]);
  for (const [i, name] of NAMES.entries()) {
    const original = originals[i];
    atomics[name] = (...args) => {
      interrupt();
      return original(...args);
    };
  }
  try {
    return body();
  } finally {
    for (const [i, name] of NAMES.entries()) atomics[name] = originals[i];
  }
}

/** Something that does one thing at a time. `step` is never called while it is in the midst of another. */
export interface Actor {
  /** Whether it would do anything now. */
  ready(): boolean;
  step(): void;
}

/**
 * Steps actors at random until none is ready.
 * @param below random numbers 0 … n − 1
 * @param odds one in so many atomic operations is interrupted
 */
export function interleave(actors: readonly Actor[], below: (n: number) => number, odds: number): void {
  const busy = new Set<Actor>();
  const stepOne = (): boolean => {
    const ready = actors.filter((actor) => !busy.has(actor) && actor.ready());
    if (ready.length === 0) return false;
    const actor = ready[below(ready.length)];
    busy.add(actor);
    actor.step();
    busy.delete(actor);
    return true;
  };
  withInterruptions(
    () => {
      if (busy.size === 0 || below(odds) !== 0) return;
      // Now and then for so long that a line of waiting ranks is gone through.
      for (let steps = below(4) === 0 ? below(40) : 1; steps > 0; steps--) if (!stepOne()) return;
    },
    () => {
      while (stepOne());
    },
  );
}
