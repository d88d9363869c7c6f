import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const report = process.env['ONESIDED_TEST_REPORT'];

/** What tests the addon itself is left out where it was not built; in CI it must be there. */
const addon =
  process.env['CI'] !== undefined || existsSync(new URL('build/native/Release/onesided.node', import.meta.url));
if (!addon) console.warn('The native addon was not built: it is not tested, and neither are ranks that are processes.');

/**
 * Tests start jobs of up to eight ranks of their own, so few test files run at a time, and a deadline is generous: it
 * is there for hangs.
 */
export default defineConfig({
  // What rank programs and tests share names the package; in tests that is the sources, as for the compiler.
  resolve: {
    alias: [
      { find: /^onesided$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) },
      { find: /^onesided\/sync$/, replacement: fileURLToPath(new URL('src/structures/index.ts', import.meta.url)) },
      { find: /^onesided\/service$/, replacement: fileURLToPath(new URL('src/service/index.ts', import.meta.url)) },
      { find: /^onesided\/bsp$/, replacement: fileURLToPath(new URL('src/bsp/index.ts', import.meta.url)) },
      {
        find: /^onesided\/bsp\/model$/,
        replacement: fileURLToPath(new URL('src/bsp/model/index.ts', import.meta.url)),
      },
      { find: /^onesided\/fabrics$/, replacement: fileURLToPath(new URL('src/fabrics/index.ts', import.meta.url)) },
      { find: /^onesided\/verbs$/, replacement: fileURLToPath(new URL('src/verbs/index.ts', import.meta.url)) },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    // test/package packs this very folder, which others read meanwhile: it runs where it is alone, in the gate.
    exclude: [
      'test/{rdma,browser}/**',
      'test/package/**',
      ...(addon ? [] : ['test/native/**', 'test/providers/{fabric-process,process-heap}.test.ts']),
    ],
    pool: 'forks',
    maxWorkers: Math.max(1, Math.min(4, availableParallelism())),
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 10_000,
    passWithNoTests: false,
    setupFiles: ['test/support/setup.ts'],
    // The same for all test files of a run.
    env: { ONESIDED_SEED: process.env['ONESIDED_SEED'] ?? String(Date.now() % 1_000_000_007) },
    // .ci/run counts from this.
    reporters: report === undefined ? ['default'] : ['default', ['json', { outputFile: report }]],
  },
});
