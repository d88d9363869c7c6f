/** The clock of maps: that of the machine in each member, also in one that lost its core while it began. */
import { afterEach, expect, it, vi } from 'vitest';

afterEach(() => void vi.restoreAllMocks());

const machine = (): number => {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
};

it('is that of the machine, also where its first looks at it take long', async () => {
  const real = process.hrtime.bind(process);
  let calls = 0;
  const slow = Object.assign(
    (since?: [number, number]) => {
      const time = real(since);
      // Without a core behind the first one.
      const end = performance.now() + 200;
      if (calls++ === 0) while (performance.now() < end);
      return time;
    },
    { bigint: real },
  );
  vi.spyOn(process, 'hrtime').mockImplementation(slow as never);
  vi.resetModules();
  const { now } = await import('../../../src/service/map/map-clock.ts');
  vi.restoreAllMocks();
  expect(calls).toBeGreaterThan(0);
  const before = machine();
  const time = now();
  const after = machine();
  expect(time).toBeGreaterThan(before - 50);
  expect(time).toBeLessThan(after + 50);
});
