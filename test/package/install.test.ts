/**
 * The package in a project that depends on it: packed, installed by `npm i` and again by `npm ci`, used by `import` and
 * by `require`, and by two processes with the prebuilt addon, where there is no compiler. scripts/test-package.mjs
 * tries all else.
 */
import { chownSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { environment, expected, pack, project, ranksIn, run, withoutCompiler, workshop } from './consumer.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const place = workshop();
const folder = join(place, 'project');
const env = environment(place, { PATH: withoutCompiler(join(place, 'bin')), npm_config_cache: join(place, 'npm') });
const here = { cwd: folder, env };
const installed = join(folder, 'node_modules', 'onesided');
/** What `npx` runs, which takes a second to find it. */
const command = join(folder, 'node_modules/.bin/onesided');
const start = [command, 'run', '-n', '2'];

async function information(env: Record<string, string | undefined>) {
  const printed = await run([command, 'info', '--json'], { cwd: folder, env, quiet: true });
  return JSON.parse(printed);
}

beforeAll(async () => {
  const tarball = await pack(root, place, { ONESIDED_PREBUILD: process.arch });
  project(folder);
  await run(['npm', 'install', '--offline', '--no-audit', '--no-fund', tarball], here);
  rmSync(installed, { recursive: true });
  await run(['npm', 'ci', '--offline', '--no-audit', '--no-fund'], here);
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

describe('the package in a project without a compiler', () => {
  it('has no file that makes npm build something', () => {
    expect(readdirSync(installed)).not.toContain('binding.gyp');
    expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['onesided']);
  });

  it('works by import and by require', async () => {
    expect(ranksIn(await run(['node', 'first.mjs'], here))).toEqual(expected(1));
    expect(ranksIn(await run(['node', 'first.cjs'], here))).toEqual(expected(1));
  });

  it('has every entry it promises, and the simulator behind its own', async () => {
    const { version, ...found } = JSON.parse(await run(['node', 'subpaths.mjs'], { ...here, quiet: true }));
    expect(found).toEqual({ count: 2, ranks: 8, fabrics: true, verbs: true, simulator: false });
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
  });

  it.runIf(existsSync(join(root, 'build/native/Release/onesided.node')))(
    'runs two processes with the prebuilt addon',
    async () => {
      const { addon, defaultRanks } = await information(env);
      expect(addon).toMatchObject({ available: true });
      expect(addon.path).toContain(`/node_modules/onesided/prebuilds/linux-${process.arch}-glibc/`);
      expect(defaultRanks).toBe('processes');
      expect(ranksIn(await run([...start, 'first.mjs'], here))).toEqual(expected(2));
      expect(ranksIn(await run([...start, 'first.cjs'], here))).toEqual(expected(2));
    },
  );

  it('says what it tried where no addon loads, and runs threads', async () => {
    const wrong = { cwd: folder, env: { ...env, ONESIDED_ADDON: join(folder, 'first.mjs') } };
    const { addon } = await information(wrong.env);
    expect(addon.attempts).toEqual([
      { path: join(folder, 'first.mjs'), place: 'ONESIDED_ADDON', failure: expect.stringMatching(/\S/) },
    ]);
    const printed = await run([...start, 'first.mjs'], wrong);
    expect(ranksIn(printed)).toEqual(expected(2));
    expect(printed).toContain('running the ranks as threads');
  });

  it.runIf(process.geteuid!() === 0)('takes no addon from the cache that another user has put there', async () => {
    const { addon: before } = await information(env);
    mkdirSync(dirname(before.cache), { recursive: true });
    copyFileSync(before.path, before.cache);
    expect((await information(env)).addon.path).toBe(before.cache);
    chownSync(before.cache, 65_534, 65_534);
    const { addon } = await information(env);
    expect(addon.path).toBe(before.path);
    expect(addon.attempts[0]).toMatchObject({ path: before.cache, failure: 'it belongs to another user (65534)' });
  });

  it('onesided build says that a compiler is missing', async () => {
    const printed = await run(['npx', 'onesided', 'build'], { ...here, code: 1 });
    expect(printed).toMatch(
      /CMake \(cmake\) and .* cannot be found; on Debian and Ubuntu: apt-get install cmake g\+\+/,
    );
  });
});
