/**
 * `npm run test:nodes`: what `npm test` runs, on each version of Node that is supported. Each is installed from the
 * registry, in a folder that is removed again.
 *
 *     npm run test:nodes [-- 22 24]
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const versions = process.argv.length > 2 ? process.argv.slice(2) : ['20', '22', '24', '26'];
const wrong = versions.find((version) => !/^\d+(\.\d+){0,2}$/.test(version));
if (wrong !== undefined) throw new Error(`a version of Node is a number like 22 or 22.18.0, not ${wrong}`);

const folder = mkdtempSync(join(tmpdir(), 'onesided-nodes-'));
const summary = [];
let failed = 0;
try {
  for (const version of versions) {
    const line = test(version);
    failed += line.failed;
    summary.push(`Node ${line.version}: ${line.text}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${summary.join('\n')}`);
process.exitCode = failed === 0 ? 0 : 1;

function test(version) {
  const prefix = join(folder, version);
  const install = ['install', '--silent', '--no-audit', '--no-fund', '--prefix', prefix, `node@${version}`];
  if (spawnSync('npm', install, { stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0)
    return { version, failed: 1, text: 'could not be installed' };
  const bin = join(prefix, 'node_modules', 'node', 'bin');
  const node = join(bin, 'node');
  const is = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim();
  console.log(`\n=== Node ${is}`);
  const report = join(folder, `${version}.json`);
  const { status } = spawnSync(
    node,
    ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/gate/vitest.config.ts'],
    {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
      // The ranks, too.
      env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}`, ONESIDED_TEST_REPORT: report },
    },
  );
  const { numPassedTests = 0, numFailedTests = 0 } = status === null ? {} : JSON.parse(readFileSync(report, 'utf8'));
  const bad = status === 0 && numPassedTests > 0 ? 0 : 1;
  return {
    version: is,
    failed: bad,
    text: `${numPassedTests} passed, ${numFailedTests} failed${bad ? ' (FAILED)' : ''}`,
  };
}
