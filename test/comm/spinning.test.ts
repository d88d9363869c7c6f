/** What a rank learns from its waits (src/wait/spinning.ts). */
import { describe, expect, test } from 'vitest';
import type { Operation } from '../../src/wait/operation.ts';
import { BATCH, Spinning } from '../../src/wait/spinning.ts';

/** A machine with a clock: each look takes a microsecond, and so does a yield. */
class Machine {
  time = 0;
  looks = 0;
  yields = 0;
  /** How long the core is away at each yield, and at every hundredth look. */
  yieldMs = 0.001;
  awayMs = 0;

  readonly now = (): number => this.time;

  readonly schedYield = (): void => {
    this.yields++;
    this.time += this.yieldMs;
  };

  spinning(oversubscribed = false): Spinning {
    return new Spinning(oversubscribed, this.schedYield, this.now);
  }

  /** An operation that is complete `ms` after the wait has begun. */
  operation(ms: number): Operation {
    const end = this.time + ms;
    return {
      advance: () => {
        this.time += 0.001;
        if (++this.looks % 100 === 0) this.time += this.awayMs;
        return this.time >= end;
      },
      describe: () => 'a test',
    };
  }

  /** What a wait does that takes `ms` if the rank looks on, and as long if it sleeps. */
  wait(spinning: Spinning, ms: number): 'looked' | 'slept' {
    const since = this.time;
    if (spinning.waits(this.operation(ms), since)) return 'looked';
    this.time = Math.max(this.time, since + ms);
    spinning.slept(this.time - since);
    return 'slept';
  }
}

describe('looking on', () => {
  test('waits that are over soon are looked for, however many', () => {
    const machine = new Machine();
    const spinning = machine.spinning();
    for (let i = 0; i < 1000; i++) expect(machine.wait(spinning, 0.2)).toBe('looked');
    expect(machine.yields).toBe(0);
  });

  test('looks in vain become short', () => {
    const machine = new Machine();
    const spinning = machine.spinning();
    for (let i = 0; i < 20; i++) expect(machine.wait(spinning, 5)).toBe('slept');
    machine.looks = 0;
    machine.wait(spinning, 5);
    expect(machine.looks).toBeLessThanOrEqual(2 * BATCH);
  });

  test('and are long again when sleeps have been short', () => {
    const machine = new Machine();
    const spinning = machine.spinning();
    for (let i = 0; i < 20; i++) machine.wait(spinning, 5);
    const ways = Array.from({ length: 40 }, () => machine.wait(spinning, 0.25));
    expect(ways[0]).toBe('slept');
    expect(ways.at(-1)).toBe('looked');
  });

  test('a core that others want is not kept by looking, and is tried less and less', () => {
    const machine = new Machine();
    const spinning = machine.spinning();
    machine.awayMs = 4;
    machine.wait(spinning, 50);
    expect(spinning.ms).toBeLessThan(0.02);
    machine.looks = 0;
    for (let i = 0; i < 500; i++) machine.wait(spinning, 0.25);
    expect(machine.looks / 500).toBeLessThan(3 * BATCH);
  });
});

describe('handing the core on', () => {
  test('goes on while ranks give it back at once', () => {
    const machine = new Machine();
    const spinning = machine.spinning(true);
    for (let i = 0; i < 10; i++) machine.wait(spinning, 0.03);
    expect(machine.yields).toBeGreaterThan(100);
  });

  test('ends at the first yield that another program has kept, and is left alone for some waits', () => {
    const machine = new Machine();
    const spinning = machine.spinning(true);
    machine.yieldMs = 4;
    for (let i = 0; i < 100; i++) machine.wait(spinning, 50);
    expect(machine.yields).toBeGreaterThan(1);
    expect(machine.yields).toBeLessThan(10);
    machine.yieldMs = 0.001;
    machine.yields = 0;
    for (let i = 0; i < 300; i++) machine.wait(spinning, 0.03);
    expect(machine.yields).toBeGreaterThan(300);
  });
});
