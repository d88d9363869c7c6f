/** The options of `races` of `runTasks`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runTasks } from '../../src/fabrics/index.ts';
import { Window } from '../../src/index.ts';
import type { RaceReport } from '../../src/races/race-findings.ts';

const folder = mkdtempSync(join(tmpdir(), 'onesided-test-race-options-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (races: object): Promise<unknown> =>
  runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 4);
      await win.lockAll();
      win.put(Int32Array.of(world.rank), 0, 0);
      await win.unlockAll();
      await win.free();
    },
    { fabric: 'connectx-16-cores', races },
  );

test.each([
  [{ strict: 1 }, 'strict must be true or false, not 1'],
  [{ throw: 'yes' }, 'throw must be true or false, not "yes"'],
  [{ memory: -1 }, 'memory must be a number of bytes from 2^20 on, not -1'],
  [{ memory: Number.NaN }, 'memory must be a number of bytes'],
  [{ file: 3 }, 'file must be the name of a file, not 3'],
  [{ picture: {} }, 'picture must be the name of a file'],
  [{ report: 'x' }, 'report must be a function'],
  [{ strickt: true }, 'unknown name "strickt"'],
])('%j is refused', async (races, message) => {
  await expect(run(races)).rejects.toMatchObject({ code: 'ERR_ARG', message: expect.stringContaining(message) });
});

test('the report goes to a function, to a file and into a picture', async () => {
  const [file, picture] = [join(folder, 'races.json'), join(folder, 'races.svg')];
  const reports: RaceReport[] = [];
  await run({ file, picture, memory: 2 ** 21, report: (one: RaceReport) => void reports.push(one) });
  expect(reports).toHaveLength(1);
  expect(reports[0].races).toHaveLength(1);
  expect(reports[0].shadow.bound).toBe(2 ** 21);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(reports[0]);
  expect(readFileSync(picture, 'utf8')).toContain('<svg');
});
