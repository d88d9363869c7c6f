/** What windows and jobs leave behind when they end: nothing, and nobody crashes on what is gone. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { leftWith, marker, start } from '../launcher/command.ts';
import { describeCases } from '../support/cases.ts';
import { linesOf } from './jobs.ts';
import { Slots } from './slots.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-finalize.js', import.meta.url));
const kinds = (['processes', 'threads'] as const).filter((kind) => kind === 'threads' || loadNative() !== undefined);
const slots = new Slots(3);

interface Ended {
  readonly codes: Record<string, string>;
  readonly told: string[];
  readonly length: number;
}

describe.each(kinds)('ranks that are %s', (kind) => {
  const rows: [size: number, many: number][] =
    kind === 'threads'
      ? [[2, 300]]
      : [
          [2, 10_000],
          [3, 100],
        ];
  for (const [size, many] of rows) {
    describeCases(
      `${size} of them: windows freed, forgotten, and ${many} of them in a row leave nothing`,
      'robust-windows',
      {
        kind,
        size,
        args: [`--many=${many}`],
        // Without the second, a young generation of 100 MB is what remains on Node 24.
        execArgv: ['--expose-gc', '--max-semi-space-size=1'],
        timeout: 150,
      },
    );
  }

  it.concurrent.each([
    'twice',
    'together',
    'open',
    'sync',
    'in-epoch',
    'locked',
    'parts-left',
    'disposed',
    'receive-pending',
  ])('finalize (%s) ends the job, and calls after it say so', async (how) => {
    const mark = marker();
    const args = ['run', '-n', '2', '--ranks', kind, '--timeout', '120', PROGRAM, '--', `--how=${how}`, mark];
    const { code, stdout, stderr } = await slots.use(() => start(args).finished);
    const lines = linesOf<Ended>(stdout);
    expect([code, lines.length], `onesided ${args.join(' ')}\n${stdout}${stderr}`).toEqual([0, 2]);
    for (const { codes, told, length } of lines) {
      const { free, ...others } = codes;
      for (const [call, code] of Object.entries(others))
        expect(['ERR_COMM', 'ERR_WIN'], `${call} after finalize: ${code}`).toContain(code);
      // What has been given back already can be freed.
      expect(['none', 'ERR_COMM']).toContain(free);
      expect(told).toEqual(how === 'receive-pending' ? ['ERR_COMM'] : []);
      expect(length).toBe(kind === 'processes' ? 0 : 100);
    }
    expect(await leftWith(mark)).toEqual([]);
  });
});
