/** Where named jobs are published: in a directory of the user's own, which no other user can take first. */
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { Notices } from '../../src/start/notices.ts';

const native = loadNative()!;
const { uid } = userInfo();
const notice = { version: '1', size: 1, device: 1, inode: 2, members: [{ pid: 3, fd: 4 }] };

let folder: string;
const at = (name: string): string => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'onesided-test-'));
  for (const name of ['runtime', 'cache', 'tmp']) mkdirSync(at(name));
  vi.stubEnv('XDG_RUNTIME_DIR', at('runtime'));
  vi.stubEnv('XDG_CACHE_HOME', at('cache'));
  vi.stubEnv('TMPDIR', at('tmp'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** Whether a notice that one process writes is what another one of this user reads. */
function works(): boolean {
  new Notices(native).write('job', notice);
  const read = new Notices(native).read('job');
  new Notices(native).remove('job');
  return JSON.stringify(read) === JSON.stringify(notice);
}

describe.skipIf(loadNative() === undefined)('notices of named jobs', () => {
  test('are in the runtime directory', () => {
    expect(works()).toBe(true);
    expect(existsSync(at(`runtime/onesided-${uid}`))).toBe(true);
    expect(readdirSync(at('cache'))).toEqual([]);
  });

  test('are not where everybody could make their directory first', () => {
    vi.stubEnv('XDG_RUNTIME_DIR', '');
    // What another user would leave there.
    mkdirSync(at(`tmp/onesided-${uid}`), { mode: 0o777 });
    chmodSync(at(`tmp/onesided-${uid}`), 0o777);
    expect(works()).toBe(true);
    expect(readdirSync(at(`tmp/onesided-${uid}`))).toEqual([]);
  });

  test.skipIf(existsSync(`/run/user/${uid}`))('are in the cache of a user without a runtime directory', () => {
    vi.stubEnv('XDG_RUNTIME_DIR', undefined);
    expect(works()).toBe(true);
    expect(readdirSync(at('cache/onesided'))).toEqual([`jobs-${hostname()}`]);
  });

  test('of services are where the end of a login does not remove them, with and without one', () => {
    const cached = at(`cache/onesided/jobs-${hostname()}`);
    for (const runtime of [`/run/user/${uid}`, `/run/user/${uid}/`, '', undefined]) {
      vi.stubEnv('XDG_RUNTIME_DIR', runtime);
      expect(new Notices(native, 'test', 'service').directory, String(runtime)).toBe(cached);
    }
    // Another directory is one that the user has chosen.
    vi.stubEnv('XDG_RUNTIME_DIR', at('runtime'));
    expect(new Notices(native, 'test', 'service').directory).toBe(at(`runtime/onesided-${uid}`));
    vi.stubEnv('XDG_RUNTIME_DIR', at('missing'));
    expect(() => new Notices(native, 'test', 'service')).toThrow(/which does not exist/);
  });

  test.skipIf(existsSync(`/run/user/${uid}`))('are among temporary files if there is no other place', () => {
    vi.stubEnv('XDG_RUNTIME_DIR', undefined);
    writeFileSync(at('file'), '');
    vi.stubEnv('XDG_CACHE_HOME', at('file'));
    expect(works()).toBe(true);
    expect(existsSync(at(`tmp/onesided-${uid}`))).toBe(true);
  });

  test('a directory that others can enter is refused', () => {
    mkdirSync(at(`runtime/onesided-${uid}`));
    chmodSync(at(`runtime/onesided-${uid}`), 0o755);
    expect(() => new Notices(native)).toThrow(
      expect.objectContaining({ code: 'ERR_COMM', message: expect.stringMatching(/has mode 755, not 700; set XDG/) }),
    );
  });

  test.skipIf(uid !== 0)("a directory that is another user's is refused, and whose it is said", () => {
    mkdirSync(at(`runtime/onesided-${uid}`), { mode: 0o700 });
    chownSync(at(`runtime/onesided-${uid}`), 4321, 4321);
    expect(() => new Notices(native)).toThrow(
      expect.objectContaining({ code: 'ERR_COMM', message: expect.stringMatching(/belongs to user 4321, and this/) }),
    );
  });
});
