/**
 * `npm run test:nodes`: what `npm test` runs, on each version of Node that is supported. Each is installed from the
 * registry, in a folder that is removed again. Some figures of the papers are measured on each, too, and compared byte
 * by byte with what comes out on the Node that runs this: results in virtual time are the same everywhere.
 *
 *     npm run test:nodes [-- [--figures] 22 24]     --figures: these alone
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { help } from './explain.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Of each chapter and paper, some that take little: locks, layouts, updates, fences, handles, schedules, supersteps. */
const FIGURES =
  'D4.1,D4.2,D4.3,D4.4,D5.1,D5.2,D5.6,D5.7,D6.3,D6.8,D7.1,D8.3,D8.5,D8.9,D9.1,D9.2,D10.2,D10.3,B1,M2,N1,N2,N3,N6,' +
  'T1,T2,O.2,O.4';

if (process.argv.includes('--help')) help(process.argv[1]);
const args = process.argv.slice(2);
const onlyFigures = args.includes('--figures');
const asked = args.filter((arg) => arg !== '--figures');
const versions = asked.length > 0 ? asked : ['20', '22', '24', '26'];
const wrong = versions.find((version) => !/^\d+(\.\d+){0,2}$/.test(version));
if (wrong !== undefined) {
  console.error(`a version of Node is a number like 22 or 22.18.0, not ${wrong}`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'onesided-nodes-'));
const expected = figures(process.execPath, 'expected');
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
  const different = differences(figures(node, version));
  const drawn =
    'figures ' +
    (different.length === 0
      ? `the same as on ${process.version}`
      : `differ from ${process.version}: ${different.join(', ')} (FAILED)`);
  if (onlyFigures) return { version: is, failed: different.length > 0 ? 1 : 0, text: drawn };
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
  const bad = status === 0 && numPassedTests > 0 && different.length === 0 ? 0 : 1;
  return {
    version: is,
    failed: bad,
    text: `${numPassedTests} passed, ${numFailedTests} failed${bad ? ' (FAILED)' : ''}; ${drawn}`,
  };
}

/** What a version of Node measures and draws: bytes by the name of the file. */
function figures(node, name) {
  const docs = join(folder, `figures-${name}`);
  const program = join(root, 'build/programs/bench/figures/main.js');
  const json = join(docs, 'claims.json');
  const run = spawnSync(node, [program, '--only', FIGURES, '--docs', docs, '--json', json], { encoding: 'utf8' });
  if (run.status !== 0) throw new Error(`figures on ${name}: ${run.stderr}`);
  const files = readdirSync(join(docs, 'figures')).map((file) => join('figures', file));
  return new Map([...files, 'claims.json'].map((file) => [file, readFileSync(join(docs, file))]));
}

/** The files that are not as expected, or are missing. */
function differences(found) {
  const names = new Set([...expected.keys(), ...found.keys()]);
  return [...names].filter((file) => !(expected.get(file)?.equals(found.get(file) ?? Buffer.alloc(0)) ?? false));
}
