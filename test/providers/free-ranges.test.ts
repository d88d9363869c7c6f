/** Free ranges of a file against a model: a list of pages, each free or not. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FreeRanges } from '../../src/providers/free-ranges.ts';

/** The runs of free pages of the model. */
function runs(free: readonly boolean[]): { start: number; pages: number }[] {
  const found: { start: number; pages: number }[] = [];
  for (let i = 0; i < free.length; i++) {
    if (!free[i]) continue;
    if (i > 0 && free[i - 1]) found[found.length - 1].pages++;
    else found.push({ start: i, pages: 1 });
  }
  return found;
}

describe('free ranges', () => {
  it('are what a list of pages says, whatever is taken and given in whatever order', () => {
    const step = fc.record({ takes: fc.boolean(), pages: fc.integer({ min: 1, max: 9 }), which: fc.nat(1000) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.array(step, { maxLength: 80 }), (size, steps) => {
        const ranges = new FreeRanges();
        ranges.give(0, size);
        const free: boolean[] = new Array(size).fill(true);
        const taken: { start: number; pages: number }[] = [];
        for (const { takes, pages, which } of steps) {
          const fitting = runs(free).filter((run) => run.pages >= pages);
          if (takes) {
            const start = ranges.take(pages);
            // The first of the smallest runs that hold it.
            const least = Math.min(...fitting.map((run) => run.pages));
            expect(start).toBe(fitting.find((run) => run.pages === least)?.start);
            if (start === undefined) continue;
            free.fill(false, start, start + pages);
            taken.push({ start, pages });
          } else if (taken.length > 0) {
            const [{ start, pages: length }] = taken.splice(which % taken.length, 1);
            free.fill(true, start, start + length);
            ranges.give(start, length);
          }
          expect(ranges.count).toBe(runs(free).length);
        }
      }),
    );
  });

  it('at the end are taken by who goes on behind them', () => {
    const ranges = new FreeRanges();
    expect(ranges.takeLast(7)).toBe(7);
    ranges.give(1, 2);
    expect(ranges.takeLast(7)).toBe(7);
    ranges.give(5, 2);
    expect(ranges.takeLast(7)).toBe(5);
    expect([ranges.count, ranges.take(2)]).toEqual([1, 1]);
  });
});
