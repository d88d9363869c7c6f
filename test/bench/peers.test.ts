import { describe, expect, it } from 'vitest';
import { gupsIn, input } from '../../bench/hpcc-peer.ts';
import { ProgramError, reportIn, run } from '../../bench/programs.ts';

function outputOf({ words = 16777216, verdict = '(passed)' } = {}): string {
  return `Begin of MPIRandomAccess section.
Total Main table size = 2^24 = ${words} words
PE Main table size = 2^23 = 8388608 words/PE
0.026036780 Billion(10^9) Updates    per second [GUP/s]
0.013018390 Billion(10^9) Updates/PE per second [GUP/s]
Found 0 errors in 16777216 locations ${verdict}.
End of MPIRandomAccess section.
Begin of StarRandomAccess section.
`;
}

describe('hpcc', () => {
  it('gets a matrix whose words, rounded down to a power of two, are the table', () => {
    for (const log of [10, 19, 20, 24, 25]) {
      const n = Number(
        input(2 ** log, 2)
          .split('\n')[5]
          .split(/\s/)[0],
      );
      expect(2 ** Math.floor(Math.log2(n * n))).toBe(2 ** log);
    }
  });

  it('is read once it has reported', () => {
    expect(gupsIn('Begin of MPIRandomAccess section.\n0.02', 16777216)).toBeUndefined();
    expect(gupsIn(outputOf(), 16777216)).toBe(0.02603678);
  });

  it('is not believed with another table, or without its own verification', () => {
    expect(() => gupsIn(outputOf({ words: 8388608 }), 16777216)).toThrow(/8388608 words, not 16777216/);
    expect(() => gupsIn(outputOf({ verdict: '(failed)' }), 16777216)).toThrow(/verification failed/);
  });
});

describe('programs', () => {
  it('report in a line of JSON, behind a prefix or not', () => {
    const line = '{"row":"barrier/2","unit":"ns","samples":[1.5,2]}';
    for (const output of [line, `hello\n[0] ${line}\n`]) expect(reportIn(output).samples).toEqual([1.5, 2]);
  });

  it('that report nothing are errors', () => {
    for (const output of [
      '',
      'hello',
      '{"row":"x","samples":[]}',
      '{"row":"x","samples":[0]}',
      '{"row":"x","samples":[null]}',
    ]) {
      expect(() => reportIn(output)).toThrow(ProgramError);
    }
  });

  it('that fail are errors that say how', async () => {
    const script = (text: string): Promise<string> => run(process.execPath, ['-e', text]);
    expect(await script('console.log(7)')).toBe('7\n');
    await expect(script('console.error("rma: put failed"); process.exit(3)')).rejects.toThrow(/rma: put failed/);
    await expect(script('process.exit(3)')).rejects.toThrow(/exit code 3/);
    await expect(run('no-such-command-at-all', [])).rejects.toThrow(ProgramError);
    await expect(run(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { seconds: 0.2 })).rejects.toThrow(
      /no end after 0.2 s/,
    );
  });
});
