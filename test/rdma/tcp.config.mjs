/** What runs on libfabric over TCP, on the loopback interface: `npm run test:tcp`. */
import { fileURLToPath } from 'node:url';
import { ON_BOTH, ON_TCP } from './files.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

export default {
  root,
  test: {
    include: [...ON_TCP, ...ON_BOTH],
    env: { ONESIDED_TEST_PROVIDER: 'libfabric' },
    pool: 'forks',
    maxWorkers: 1,
    // The machine may be busy: this ends a hang.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    passWithNoTests: false,
  },
};
