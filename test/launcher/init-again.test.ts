/** A second `init` of a rank whose first one has failed. */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { start } from './command.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/init-again.js', import.meta.url));

it.skipIf(loadNative() === undefined)('is refused: the rank is not a world of its own', async () => {
  const { code, stdout, stderr } = await start(['run', '-n', '2', '--timeout', '150', PROGRAM]).finished;
  expect(stdout, stderr).toMatch(/^\[0\] ERR_RMA_TIMEOUT: /m);
  expect(stdout, stderr).toMatch(/^\[0\] ERR_COMM: init: this rank has joined its job before, and that has failed/m);
  expect(code).toBe(7);
});
