/**
 * The structures of `onesided/sync` (test/ranks/structures.ts), and what becomes of those that wait when the holder
 * dies.
 */
import { fileURLToPath } from 'node:url';
import { runTasks } from 'onesided/fabrics';
import { BoundedQueue, Counter, Mutex } from 'onesided/sync';
import { describe, expect, test } from 'vitest';
import { start } from '../launcher/command.ts';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, rankRuns, seedOfRun } from '../support/ranks.ts';

const args = [`--seed=${seedOfRun()}`];
const DYING = fileURLToPath(new URL('../../build/programs/test/ranks/robust-structures.js', import.meta.url));
const BY_REQUESTS = fileURLToPath(new URL('../../build/programs/test/ranks/mutex-by-requests.js', import.meta.url));

describe('counter, mutex and queue', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 8]))
    describeCases(`on ${size} ranks as ${kind}`, 'structures', { kind, size, args });

  const env = { ONESIDED_NO_ADDON: '1' };
  describeCases('on 3 threads without the addon', 'structures', { kind: 'threads', size: 3, env, args });
});

test.each(RANK_KINDS)('a mutex keeps ranks that are %s apart where memory is reached by requests', async (kind) => {
  const env = { ONESIDED_DEBUG: 'requests' };
  const args = ['run', '-n', '4', '--ranks', kind, '--timeout', '150', BY_REQUESTS];
  const { code, stdout, stderr } = await start(args, { env }).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/counted true/);
});

describe('a rank that dies', () => {
  for (const kind of RANK_KINDS) {
    test.each(['mutex', 'queue'])(`ends the wait of the others for the %s, as ${kind}`, async (what) => {
      const job = start(['run', '-n', '4', '--ranks', kind, '--timeout', '150', DYING, '--', `--what=${what}`]);
      const { code, stdout, stderr } = await job.finished;
      const report = `${stdout}${stderr}`;
      const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
      expect(told.map(({ rank }) => rank).sort(), report).toEqual([1, 2, 3]);
      for (const line of told) {
        expect(line.code, report).toBe('ERR_RMA_RANK_FAILED');
      }
      expect(code, report).toBe(3);
    });
  }
});

test('tasks of a modelled fabric are refused, in words that say what to use', async () => {
  const codes = await runTasks(
    2,
    async (world) => {
      const calls = [() => Counter.create(world), () => Mutex.create(world)];
      const all = [...calls, () => BoundedQueue.create(world, Int32Array, 4)];
      const found: string[] = [];
      for (const call of all)
        found.push(
          await call().then(
            () => '',
            (error) => `${error.code} ${error.message}`,
          ),
        );
      return found;
    },
    { fabric: 'infinihost-64' },
  );
  for (const found of codes.flat())
    expect(found).toMatch(/^ERR_RMA_WOULD_DEADLOCK (Counter|Mutex|BoundedQueue).create: its calls block the thread/);
});
