/** `npm run test:races`: all programs with and without races, on all kinds of ranks. */
import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vitest/config';
import all from '../../vitest.config.ts';

process.env.ONESIDED_TEST_RACES = 'all';
export default mergeConfig(all, {
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { maxWorkers: 1, testTimeout: 900_000, env: { ONESIDED_TEST_RACES: 'all' } },
});
