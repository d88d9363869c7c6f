/**
 * One measurement of the simulator of modelled fabrics, in a process of its own, which prints a line of JSON: what was
 * simulated, the seconds that this took, those of the whole program, and the most memory that the process had.
 *
 *     node build/programs/bench/simulator/program.js messages|fence|barrier
 */
import { Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { oneOf, orExplain } from '../options.ts';
import { MESSAGES, type Part, RANKS } from './parts.ts';

const FABRIC = 'infinihost-64';
/** Puts that a rank has under way. */
const BATCH = 16;

/**
 * From the first rank that begins with what is measured to the last one that has done it; the others are simulated
 * meanwhile.
 */
class Span {
  #begin = Number.POSITIVE_INFINITY;
  #end = 0;

  begin(): void {
    this.#begin = Math.min(this.#begin, performance.now());
  }

  end(): void {
    this.#end = performance.now();
  }

  get seconds(): number {
    return (this.#end - this.#begin) / 1e3;
  }
}

const programs: Readonly<Record<Part, (ranks: number, span: Span) => Promise<void>>> = {
  /** Each rank puts 8 bytes to the next one, again and again: a verbs operation each. */
  messages: async (ranks, span) => {
    await runTasks(
      ranks,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, BATCH);
        const next = (world.rank + 1) % world.size;
        const value = new Float64Array(1);
        await win.lockAll();
        span.begin();
        for (let i = 0; i < MESSAGES; i++) {
          value[0] = i;
          win.put(value, next, i % BATCH);
          if (i % BATCH === BATCH - 1) await win.flush(next);
        }
        span.end();
        await win.unlockAll();
        await world.barrier();
        if (win.local[BATCH - 1] !== MESSAGES - 1) throw new Error(`rank ${world.rank} has ${win.local[BATCH - 1]}`);
        await win.free();
      },
      { fabric: FABRIC },
    );
  },
  /**
   * A put of each rank to the next one, in an epoch of the remote-notify fence, with the fences on both sides. Making
   * the window takes longer.
   */
  fence: async (ranks, span) => {
    await runTasks(
      ranks,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 1, { info: { fence: 'remote-notify' } });
        span.begin();
        await win.fence();
        win.put(Float64Array.of(world.rank), (world.rank + 1) % world.size, 0);
        await win.fence();
        span.end();
        const previous = (world.rank + world.size - 1) % world.size;
        if (win.local[0] !== previous) throw new Error(`rank ${world.rank} has ${win.local[0]}`);
        await win.free();
      },
      { fabric: FABRIC },
    );
  },
  /** A dissemination barrier. */
  barrier: async (ranks, span) => {
    span.begin();
    await runTasks(ranks, (world) => world.barrier(), { fabric: FABRIC });
    span.end();
  },
};

const part = orExplain(() => {
  const [name = ''] = process.argv.slice(2);
  oneOf('the measurement', name, Object.keys(RANKS));
  return name as Part;
});
const span = new Span();
const start = performance.now();
await programs[part](RANKS[part], span);
const wholeSeconds = (performance.now() - start) / 1e3;
console.log(
  JSON.stringify({ seconds: span.seconds, wholeSeconds, gibibytes: process.resourceUsage().maxRSS / 2 ** 20 }),
);
