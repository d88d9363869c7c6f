/**
 * What a job prints when a rank throws: the cause last and whole, one line for each rank that only followed, and all
 * that ranks have written themselves.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FatalSieve } from '../../src/launcher/shown-errors.ts';
import { casesOf, IN_GATE } from '../support/gate.ts';
import { RANK_KINDS } from '../support/ranks.ts';
import { onesided } from './command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/launcher-throw.js', import.meta.url));

/** The line of the program that a line of output names. */
function lineOf(text: string): string {
  const [, line] = new RegExp(`${PROGRAM}:(\\d+)`).exec(text) ?? [];
  return readFileSync(PROGRAM, 'utf8').split('\n')[Number(line) - 1];
}

describe.each(RANK_KINDS)('%s: a rank that throws', (kind) => {
  const run = (size: number, how: string) =>
    onesided('run', '-n', String(size), '--ranks', kind, PROGRAM, '--', '--victim=1', `--how=${how}`);

  it.each(casesOf(['throw', 'collective', 'wrap'], (how) => how === 'throw'))(
    'is shown last and whole, each that followed in one line (%s)',
    async (how) => {
      const size = 4;
      const { code, stdout, stderr } = await run(size, how);
      expect(code).toBe(1);
      for (let rank = 0; rank < size; rank++) {
        const own = stderr.split('\n').filter((line) => line.startsWith(`[${rank}] `));
        expect(stdout).toContain(`[${rank}] out of ${rank}\n`);
        expect(own.filter((line) => line.includes(`err of ${rank}`)).length).toBe(1);
        expect(own.filter((line) => line.includes(`exit of ${rank}`)).length).toBe(1);
        if (rank === 1) continue;
        const followed = own.filter((line) => line.includes('exited with code 1'));
        expect(followed.length).toBe(1);
        expect(own.length).toBeLessThanOrEqual(3);
        expect(followed[0]).toMatch(
          how === 'wrap' ? /Error: rank \d could not go on: rank 1 / : /RmaError \[ERR_RMA_RANK_FAILED\]: rank 1 /,
        );
        expect(lineOf(followed[0])).toContain(
          how === 'collective' ? 'await world.allgather(' : 'await world.barrier()',
        );
      }
      const lines = stderr.trimEnd().split('\n');
      expect(lines.pop()).toMatch(/^onesided: rank 1 exited with code 1 \(.*\); the other 3 ranks were stopped$/);
      expect(lines.pop()).toBe('[1] }');
      const cause = lines.slice(-5).join('\n');
      expect(cause).toContain('RangeError');
      expect(cause).toContain('Ä cause\n[1] of two lines\n[1]     at ');
      expect(cause).toContain('[1]   [cause]: Error: what was behind it');
      expect(stderr.split('Ä cause\n').length).toBe(2);
    },
  );

  it.skipIf(IN_GATE)('leaves alone what ranks that handle their errors print', async () => {
    const { code, stderr } = await run(3, 'handle');
    expect(code).toBe(1);
    for (const rank of [0, 2])
      expect(stderr).toMatch(new RegExp(`\\[${rank}\\] .*handled RmaError: rank 1 .*\\n\\[${rank}\\]     at `));
  });

  it.skipIf(IN_GATE)('is found at once in the output of 32', async () => {
    const { stderr } = await run(32, 'throw');
    const lines = stderr.trimEnd().split('\n');
    // Three lines a rank, and the cause.
    expect(lines.length).toBeLessThan(3 * 32 + 12);
    expect(lines.slice(-9).join('\n')).toContain('Ä cause');
  });
});

describe('errors in the output of a rank', () => {
  const MARK = '\x1b]onesided-fatal;{"line":"short"}\x07\n';
  const text = `one\n\x1b[1mtwo\x1b[0m thr${MARK}Error: x\n    at y\n\nNode.js v20.20.2\nafter ${MARK}Error: z\n`;

  it('are taken out, wherever the stream is cut', () => {
    for (let cut = 0; cut <= text.length; cut++) {
      const taken: string[] = [];
      const sieve = new FatalSieve((error, { line }) => taken.push(`${line}: ${error}`));
      const own = sieve.feed(text.slice(0, cut)) + sieve.feed(text.slice(cut)) + sieve.end();
      expect([own, taken]).toEqual([
        'one\n\x1b[1mtwo\x1b[0m thrafter ',
        ['short: Error: x\n    at y\n\n', 'short: Error: z\n'],
      ]);
    }
  });

  it('have no line of code of Node or of the library above them, but one of the program', () => {
    const shownOf = (above: string): string => {
      const shown: string[] = [];
      const sieve = new FatalSieve((error) => shown.push(error));
      sieve.feed(`${MARK}${above}RmaError: x\n    at async file:///p.mjs:6:25\n\nNode.js v20.0.0\n`);
      return shown.join();
    };
    const error = 'RmaError: x\n    at async file:///p.mjs:6:25\n\n';
    expect(shownOf('node:internal/modules/run_main:123\n    triggerUncaughtException(\n    ^\n\n')).toBe(error);
    expect(shownOf('file:///m/dist/onesided-library.js:28389\n\t\tthrow new RmaError(\n\t\t^\n\n')).toBe(error);
    expect(shownOf('')).toBe(error);
    const own = 'file:///p.mjs:6\n  win.put(a, 0, 0);\n      ^\n\n';
    expect(shownOf(own)).toBe(own + error);
  });

  it('are not waited for without end', () => {
    const sieve = new FatalSieve(() => expect.unreachable());
    const long = 'x'.repeat(1 << 18);
    expect(sieve.feed(`a${MARK}`) + sieve.feed(long) + sieve.feed('b') + sieve.end()).toBe(`a${long}b`);
    expect(new FatalSieve(() => {}).feed('no mark, but \x1b[31mcolour')).toBe('no mark, but \x1b[31mcolour');
  });
});
