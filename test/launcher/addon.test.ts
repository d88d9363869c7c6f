/** Where the addon is looked for, and what is said of each place. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { findAddon } from '../../src/addon.ts';
import { addon } from '../support/addon.ts';
import { temporaryFolder } from '../support/folders.ts';

const folder = temporaryFolder('addon');
addon();
const FILE = fileURLToPath(import.meta.url);
const COMMAND = fileURLToPath(new URL('../../bin/onesided.mjs', import.meta.url));
const built = fileURLToPath(new URL('../../build/native/Release/onesided.node', import.meta.url));

/** What is found with these in the environment. */
function find(env: Record<string, string>) {
  for (const [name, value] of Object.entries({ XDG_CACHE_HOME: folder, ...env })) vi.stubEnv(name, value);
  try {
    return findAddon();
  } finally {
    vi.unstubAllEnvs();
  }
}

describe('the addon', () => {
  it('is the one that ONESIDED_ADDON names, and no other', () => {
    const copy = join(folder, 'copy.node');
    copyFileSync(built, copy);
    expect(find({ ONESIDED_ADDON: copy })).toMatchObject({ path: copy, attempts: [{ place: 'ONESIDED_ADDON' }] });
    const missing = find({ ONESIDED_ADDON: join(folder, 'missing.node') });
    expect(missing.addon).toBeUndefined();
    expect(missing.reason).toBe(
      `the file that ONESIDED_ADDON names does not load; tried ${join(folder, 'missing.node')}: no such file`,
    );
  });

  it('that is no addon is said to be none, in one line', () => {
    const file = join(folder, 'text.node');
    writeFileSync(file, 'not an addon\n'.repeat(100));
    const { reason, attempts } = find({ ONESIDED_ADDON: file });
    expect(attempts).toEqual([{ path: file, place: 'ONESIDED_ADDON', failure: expect.stringMatching(/ELF|file/) }]);
    expect(reason).not.toContain('\n');
  });

  it.each(['darwin', 'win32'])('is not advised to be built on %s, where nothing builds it', (platform) => {
    const as = `data:text/javascript,Object.defineProperty(process,'platform',{value:'${platform}'})`;
    for (const args of [['info'], ['info', '--json'], ['run', '-n', '1', '--ranks', 'processes', FILE]]) {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', as, COMMAND, ...args], {
        encoding: 'utf8',
        timeout: 60_000,
      });
      expect(status, stderr).toBe(args[0] === 'run' ? 1 : 0);
      expect(stdout + stderr).toContain(`it needs Linux, and this is ${platform}`);
      expect(stdout + stderr).not.toContain('onesided build');
    }
  });

  it('of another version is refused', () => {
    const file = join(folder, 'other.cjs');
    writeFileSync(file, 'exports.version = "0.0.1";');
    expect(find({ ONESIDED_ADDON: file }).reason).toContain('it belongs to onesided 0.0.1, but this is onesided ');
  });
});
