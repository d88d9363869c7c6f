/**
 * `npm run test:attack`: hostile calls, killed and stopped ranks, strangers and limits, many more of each than in
 * `npm run test:all`. With `ONESIDED_SEED=N` the calls and strangers of another run.
 */
import { fileURLToPath } from 'node:url';
import { existing } from '../gate/files.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export default {
  root,
  test: {
    include: existing(root, [
      'test/attack/*.test.ts',
      'test/robustness/{security,stripes}.test.ts',
      'test/service/attack.test.ts',
      'test/comm/{control-workers,notices}.test.ts',
      'test/trace/recorder.test.ts',
    ]),
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    passWithNoTests: false,
    setupFiles: ['test/support/setup.ts'],
    env: {
      ONESIDED_SEED: process.env.ONESIDED_SEED ?? String(Date.now() % 1_000_000_007),
      ONESIDED_ATTACK_CALLS: process.env.ONESIDED_ATTACK_CALLS ?? '10000',
      ONESIDED_ATTACK_STRANGERS: process.env.ONESIDED_ATTACK_STRANGERS ?? '4000',
      // Of each of five kinds: with a launcher and without one, killed and stopped, by requests and by loads and
      // stores.
      ONESIDED_TEST_KILLS: process.env.ONESIDED_TEST_KILLS ?? '60',
    },
    reporters:
      process.env.ONESIDED_TEST_REPORT === undefined
        ? ['verbose']
        : ['verbose', ['json', { outputFile: process.env.ONESIDED_TEST_REPORT }]],
  },
};
