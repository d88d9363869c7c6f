/** `npm run test:browser`: what only a browser can tell. */
import { fileURLToPath } from 'node:url';

export default {
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    include: ['test/browser/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    // A browser that starts on a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    passWithNoTests: false,
    reporters:
      process.env.ONESIDED_TEST_REPORT === undefined
        ? ['default']
        : ['default', ['json', { outputFile: process.env.ONESIDED_TEST_REPORT }]],
  },
};
