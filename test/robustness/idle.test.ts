/**
 * What ranks cost while nothing happens: no processor time to speak of, and memory that does not grow with the square
 * of the ranks.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { onesided } from '../launcher/command.ts';
import { linesOf } from './jobs.ts';
import { Slots } from './slots.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-idle.js', import.meta.url));
const kinds = (['processes', 'threads'] as const).filter((kind) => kind === 'threads' || loadNative() !== undefined);
const WAITS_MS = 3000;
/** Wanted is a hundredth; what else runs on the machine is charged to whoever is interrupted. */
const SHARE = 0.05;

const slots = new Slots(5);
const shares: string[] = [];

afterAll(() => {
  console.log(`of a core:\n${shares.join('\n')}`);
});

describe.concurrent.each(kinds)('a rank (of %s) that sleeps', (kind) => {
  it.each([
    ...['barrier', 'barrier-sync', 'fence', 'fence-sync', 'notified-fence'],
    ...['lock', 'lock-sync', 'lock-by-agent', 'receive', 'receive-sync', 'allreduce'],
  ])(
    'in %s uses no processor time',
    async (form) => {
      const args = ['run', '-n', '3', '--ranks', kind, '--timeout', '120', PROGRAM, '--', `--wait=${form}`];
      const { code, stdout, stderr } = await slots.use(() => onesided(...args, `--for=${WAITS_MS}`));
      expect(code, stderr).toBe(0);
      const idle = linesOf<{ share: number; milliseconds: number }>(stdout);
      expect(idle.length).toBe(2);
      for (const { share, milliseconds } of idle) {
        expect(milliseconds).toBeGreaterThan(WAITS_MS / 2);
        expect(share).toBeLessThan(SHARE);
      }
      const percent = idle.map(({ share }) => `${(100 * share).toFixed(2)} %`);
      shares.push(`${kind}, ${form}: ${percent.join(' and ')}`);
    },
    60_000,
  );
});

describe.skipIf(loadNative() === undefined)('memory of a process rank', () => {
  it('does not grow with the square of the ranks', async () => {
    const megabytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
    const proportional = new Map<number, number>();
    for (const size of [2, 8, 32]) {
      const { code, stdout, stderr } = await onesided(
        'run',
        '-n',
        String(size),
        '--timeout',
        '60',
        PROGRAM,
        '--',
        '--memory=1',
      );
      expect(code, stderr).toBe(0);
      const lines = linesOf<{ resident: number; proportional: number; shared: number }>(stdout);
      expect(lines.length).toBe(size);
      const mean = (of: 'resident' | 'proportional' | 'shared'): number =>
        lines.reduce((sum, line) => sum + line[of], 0) / size;
      proportional.set(size, mean('proportional'));
      console.log(
        `${size} ranks, each: ${megabytes(mean('resident'))} MB resident, ` +
          `${megabytes(mean('proportional'))} MB by its share, ` +
          `${megabytes(mean('shared'))} MB of them shared memory`,
      );
    }
    // Whatever 24 more ranks add to each rank is less than 256 KB a rank.
    expect(proportional.get(32)!).toBeLessThan(proportional.get(8)! + 24 * 2 ** 18);
  }, 120_000);
});
