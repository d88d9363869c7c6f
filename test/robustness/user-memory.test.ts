/** The owner of memory that is its own ends while the others access it. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { start } from '../launcher/command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-user-memory.js', import.meta.url));

interface Line {
  readonly rank: number;
  readonly died?: number;
  readonly caught?: number;
  readonly code?: string;
  readonly message?: string;
  readonly done?: number;
}

const CASES = ['put', 'accumulate', 'dynamic'].flatMap((calls) => [
  { kind: 'processes', how: 'kill', calls },
  { kind: 'processes', how: 'exit', calls },
  { kind: 'threads', how: 'exit', calls },
]);

describe.skipIf(loadNative() === undefined)('an owner that ends in the middle', () => {
  for (const size of [2, 4]) {
    it.each(CASES)(`$kind, $calls, by $how, with ${size} ranks`, async ({ kind, how, calls }) => {
      const args = [`--how=${how}`, `--calls=${calls}`, '--after=80'];
      const job = start(['run', '-n', String(size), '--ranks', kind, '--timeout', '120', PROGRAM, '--', ...args]);
      const { code, stdout, stderr } = await job.finished;
      const report = `${stdout}${stderr}`;
      const lines = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json) as Line);
      const died = lines.find((line) => line.died !== undefined)?.died;
      expect(died, report).toBeDefined();
      const told = lines.filter((line) => line.caught !== undefined);
      expect(told.map(({ rank }) => rank).sort(), report).toEqual(Array.from({ length: size - 1 }, (_, i) => i + 1));
      for (const line of told) {
        expect(line.code, report).toBe('ERR_RMA_RANK_FAILED');
        expect(line.message, report).toContain('rank 0');
        expect(line.done, report).toBeGreaterThan(0);
      }
      expect(code, report).toBe(how === 'kill' ? 128 + 9 : 3);
    });
  }
});
