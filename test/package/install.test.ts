/**
 * The package in a project that depends on it: packed, installed by `npm i` and again by `npm ci`, used by `import` and by `require`,
 * and by two processes with the prebuilt addon, where there is no compiler. scripts/test-package.mjs tries all else.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { environment, expected, pack, project, ranksIn, run, withoutCompiler, workshop } from './consumer.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const place = workshop();
const folder = join(place, 'project');
const env = environment(place, { PATH: withoutCompiler(join(place, 'bin')), npm_config_cache: join(place, 'npm') });
const here = { cwd: folder, env };
const installed = join(folder, 'node_modules', 'onesided');

async function onesided(...args: string[]): Promise<string> {
  return run(['npx', 'onesided', ...args], here);
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
    const { version, ...found } = JSON.parse((await run(['node', '--no-warnings', 'subpaths.mjs'], here)).trim());
    expect(found).toEqual({ count: 2, ranks: 8, fabrics: true, verbs: true, simulator: false });
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
  });

  it.runIf(existsSync(join(root, 'build/native/Release/onesided.node')))(
    'runs two processes with the prebuilt addon',
    async () => {
      const { addon, defaultRanks } = JSON.parse(await onesided('info', '--json'));
      expect(addon).toMatchObject({ available: true });
      expect(addon.path).toContain(`/node_modules/onesided/prebuilds/linux-${process.arch}-glibc/`);
      expect(defaultRanks).toBe('processes');
      expect(ranksIn(await onesided('run', '-n', '2', 'first.mjs'))).toEqual(expected(2));
      expect(ranksIn(await onesided('run', '-n', '2', 'first.cjs'))).toEqual(expected(2));
    },
  );

  it('says what it tried where no addon loads, and runs threads', async () => {
    const wrong = { cwd: folder, env: { ...env, ONESIDED_ADDON: join(folder, 'first.mjs') } };
    const { addon } = JSON.parse(await run(['npx', 'onesided', 'info', '--json'], wrong));
    expect(addon.attempts).toEqual([
      { path: join(folder, 'first.mjs'), place: 'ONESIDED_ADDON', failure: expect.stringMatching(/\S/) },
    ]);
    const printed = await run(['npx', 'onesided', 'run', '-n', '2', 'first.mjs'], wrong);
    expect(ranksIn(printed)).toEqual(expected(2));
    expect(printed).toContain('running the ranks as threads');
  });

  it('onesided build says that a compiler is missing', async () => {
    const printed = await run(['npx', 'onesided', 'build'], { ...here, code: 1 });
    expect(printed).toMatch(
      /CMake \(cmake\) and .* cannot be found; on Debian and Ubuntu: apt-get install cmake g\+\+/,
    );
  });
});
