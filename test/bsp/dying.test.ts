/** A process of a BSP computation that dies: all others are told, in each call. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { start } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const DYING = fileURLToPath(new URL('../../build/programs/test/ranks/robust-bsp.js', import.meta.url));

/** Process `victim` of four exits with code 3, and all calls of the others say that it has failed. */
async function othersAreTold(kind: string, victim: number, options: readonly string[]): Promise<void> {
  const args = ['run', '-n', '4', '--ranks', kind, '--timeout', '150', DYING, '--', `--victim=${victim}`];
  const { code, stdout, stderr } = await start([...args, ...options]).finished;
  const report = `${stdout}${stderr}`;
  const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
  expect(told.map(({ rank }) => rank).sort(), report).toEqual([0, 1, 2, 3].filter((rank) => rank !== victim));
  for (const { codes } of told) expect(codes, report).toEqual(['ERR_RMA_RANK_FAILED', 'ERR_RMA_RANK_FAILED']);
  expect(code, report).toBe(3);
}

describe.each(RANK_KINDS)('a process that dies in a superstep, as %s', (kind) => {
  const ways = [
    { delivery: 'shared', counts: 'tree', victim: 3 },
    { delivery: 'packed', counts: 'all-to-all', victim: 3 },
    { delivery: 'zero-copy', counts: 'tree', victim: 3 },
    { delivery: 'auto', counts: 'tree', victim: 3 },
    { delivery: 'datagrams', counts: 'tree', victim: 3 },
    { delivery: 'packed', counts: 'multicast', victim: 3 },
    { delivery: 'packed', counts: 'multicast', victim: 0 },
  ];
  test.each(ways.flatMap((way) => ['put', 'get'].map((what) => ({ ...way, what }))))(
    'ends the sync of the others: $delivery, counts $counts, process $victim, $what',
    async ({ delivery, counts, victim, what }) => {
      await othersAreTold(kind, victim, [`--delivery=${delivery}`, `--counts=${counts}`, `--what=${what}`]);
    },
  );

  test('ends it while packets wait for their slots', async () => {
    const paced = ['--delivery=packed', '--pacing={"slot":50000}', '--what=put', '--sends'];
    await othersAreTold(kind, 1, paced);
  });
});
