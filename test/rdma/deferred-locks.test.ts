/** Locks that travel with the only operation under them, over libfabric; run by `npm run test:tcp`. */
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { testChapter } from '../conformance/chapter.ts';
import { start } from '../launcher/command.ts';
import { describeCases } from '../support/cases.ts';
import { seedOfRun } from '../support/ranks.ts';
import { ON_DEVICE, PROVIDER } from './device.ts';

const args = [`--seed=${seedOfRun()}`];

for (const size of [2, 4]) {
  describeCases(`on ${size} ranks`, 'window-deferred-locks', { kind: 'processes', size, env: ON_DEVICE, args });
}

const DEFERRED = { lock_defer: true } as const;
const RANKS = { name: 'device-deferred', kind: 'processes', sizes: [3], env: ON_DEVICE, info: DEFERRED } as const;

for (const chapter of ['communication', 'memory-model', 'synchronization', 'semantics']) {
  describe(`${chapter}, locks deferred`, () => testChapter(chapter, [RANKS]));
}

const DYING = fileURLToPath(new URL('../../build/programs/test/ranks/robust-deferred.js', import.meta.url));

test('a lock that travels to a dead rank says so, and holds up no other one', { timeout: 120_000 }, async () => {
  const ranks = ['-n', '3', '--provider', PROVIDER, '--grace', '60', '--timeout', '100'];
  const { stdout, stderr } = await start(['run', ...ranks, DYING, '--', '--lock=queue']).finished;
  expect(stdout, stderr).toMatch(/locked.*told/s);
});
