/** What runs on libfabric over TCP, on the loopback interface: `npm run test:tcp`. */
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

export default {
  root,
  test: {
    include: [
      'tcp',
      'acknowledgements',
      'notices',
      'hostile',
      'local-memory',
      'batches',
      'batches-under-way',
      'verbs',
      'windows',
      'bsp',
      'namespaces',
      'cable',
      'networks',
      'calls',
      'deferred-locks',
    ].map((name) => `test/rdma/${name}.test.ts`),
    env: { ONESIDED_TEST_PROVIDER: 'libfabric' },
    pool: 'forks',
    maxWorkers: 1,
    // The machine may be busy: this ends a hang.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    passWithNoTests: false,
  },
};
