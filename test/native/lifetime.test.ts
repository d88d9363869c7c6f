import { expect, it } from 'vitest';
import { runProgram } from '../support/children.ts';

const PROGRAM = new URL('./programs/lifetime.ts', import.meta.url);

/** Some of them show only under AddressSanitizer (`npm run test:sanitize`). */
it.each([
  'words unmapped',
  'words transferred',
  'a region unmapped',
  'a region transferred',
  'plans transferred',
  'a pair swapped as one, across its alignment',
  'numbers of a request that are none',
])('the addon survives: %s', async (name) => {
  const ended = await runProgram(PROGRAM, [name], [], ['--expose-gc']);
  expect(ended).toEqual({ code: 0, signal: null, stdout: 'ended well\n', stderr: '' });
});
