/** A rank dies, and those that share something without it go on with that (docs/guide/running.md). */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { start } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';
import { linesOf } from './jobs.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-members.js', import.meta.url));

const DEFERRED = fileURLToPath(new URL('../../build/programs/test/ranks/robust-deferred.js', import.meta.url));

test('a deferred lock of a dead rank holds up no lock of a window without that rank', async () => {
  const job = start(['run', '-n', '3', '--grace', '60', '--timeout', '60', DEFERRED]);
  const { stdout, stderr } = await job.finished;
  expect(stdout, stderr).toMatch(/locked.*told/s);
});

const POISON = fileURLToPath(new URL('../../build/programs/test/ranks/robust-poison.js', import.meta.url));

test.each(RANK_KINDS)('arrays of operations that nobody completes any more can be used, on %s', async (kind) => {
  const env = { ...process.env, ONESIDED_DEBUG: 'poison,requests' };
  const job = start(['run', '-n', '3', '--ranks', kind, '--grace', '60', '--timeout', '60', POISON], { env });
  const { stdout, stderr } = await job.finished;
  expect(stdout.match(/used/g), stdout + stderr).toHaveLength(2);
});

/** By requests, messages take the place of words in shared memory. */
const RUNS = RANK_KINDS.flatMap((kind) =>
  ['', 'requests', 'requests,neighbours'].map((debug) => ({ kind, debug, title: `${kind} ${debug}` })),
);

describe.each(RUNS)('a rank dies, of ranks that are $title', ({ kind, debug }) => {
  test('waits for it end with its failure, those for others go on, until one of those dies', async () => {
    const how = kind === 'threads' ? 'exit' : 'kill';
    const options = ['--ranks', kind, '--grace', '60', '--timeout', '60'];
    const env = { ...process.env, ONESIDED_DEBUG: debug };
    const job = start(['run', '-n', '3', ...options, PROGRAM, '--', `--how=${how}`], { env });
    const { stdout, stderr } = await job.finished;
    const report = `${stdout}${stderr}`;
    const said = linesOf<Record<string, string | number>>(stdout);
    expect(said.map(({ rank }) => rank).sort(), report).toEqual([0, 1]);
    for (const { rank, ...outcomes } of said) {
      for (const [call, outcome] of Object.entries(outcomes)) {
        const expected = call.startsWith('all.')
          ? /^ERR_RMA_RANK_FAILED of 2: rank 2 /
          : call.startsWith('alone.')
            ? /^ERR_RMA_RANK_FAILED of 1: rank 1 /
            : /^none$/;
        expect(outcome, `${call} of rank ${rank}:\n${report}`).toMatch(expected);
      }
      expect(Object.keys(outcomes)).toHaveLength(rank === 0 ? 39 : 32);
    }
  });
});
