/** What runs inside a guest, from a file system that it cannot write to. */
import { fileURLToPath } from 'node:url';
import { ON_TCP } from './files.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

export default {
  root,
  cacheDir: '/run/vitest',
  test: {
    include: [process.env.ONESIDED_TEST_HOSTS === '2' ? 'test/rdma/hosts/*.test.ts' : 'test/rdma/*.test.ts'],
    exclude: ON_TCP,
    pool: 'forks',
    maxWorkers: 1,
    // The guest's processor is emulated, and the machine may be busy: this ends a hang.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    passWithNoTests: false,
    reporters: ['verbose', ['json', { outputFile: '/run/report.json' }]],
  },
};
