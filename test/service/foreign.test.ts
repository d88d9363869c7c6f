/** Another user of the machine: it cannot enter a service, nor keep its owner from it without an error that says so. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { Service } from '../../src/service/service.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-limits.js', import.meta.url));
const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;

endMembersAfterEach();

/** What a program of another user prints, and its exit code. */
function foreign(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): { out: string; code: number } {
  const { stdout, stderr, status, error } = spawnSync(program, args, {
    uid: NOBODY,
    gid: NOBODY,
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  return { out: stdout + stderr, code: status ?? -1 };
}

const joins = (name: string, env?: NodeJS.ProcessEnv): string =>
  foreign(process.execPath, [PROGRAM, name, String(1 << 20)], env).out;

describe.skipIf(loadNative() === undefined || !isRoot)('another user', () => {
  let folder: string;
  let notices: string;
  beforeEach(() => {
    folder = mkdtempSync(joinPath(tmpdir(), 'onesided-test-'));
    notices = joinPath(folder, 'onesided-0');
    vi.stubEnv('XDG_RUNTIME_DIR', folder);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it('is told that the folder of the names is not its own', async () => {
    const name = fresh();
    await join(name);
    expect(joins(name)).toMatch(
      /^\{"call":"join","outcome":"ERR_COMM","message":"Service\.join: names need a directory/,
    );
  });

  it('with a copy of the notice gets a service of its own, and opens no memory', async () => {
    const name = fresh();
    const service = await join(name);
    const hits = await service.counter('counter');
    const theirs = joinPath(folder, 'theirs');
    const copied = joinPath(theirs, `onesided-${NOBODY}`);
    mkdirSync(copied, { recursive: true, mode: 0o700 });
    const [file] = readdirSync(notices).filter((entry) => entry.endsWith('.service'));
    copyFileSync(joinPath(notices, file), joinPath(copied, file));
    for (const path of [theirs, copied, joinPath(copied, file)]) chownSync(path, NOBODY, NOBODY);
    chmodSync(folder, 0o755);
    const said = joins(name, { XDG_RUNTIME_DIR: theirs });
    expect(said.match(/"ok"/g), said).toHaveLength(8);
    // It adds to `counter`, and has taken no place.
    expect(hits.value).toBe(0);
    expect(service.members()).toEqual([{ place: 0, pid: process.pid }]);
    const opened = readdirSync('/proc/self/fd').map((fd) =>
      foreign('/bin/sh', ['-c', 'exec 3<"$0"', `/proc/${process.pid}/fd/${fd}`]),
    );
    for (const { code } of opened) expect(code).not.toBe(0);
  });

  it.each(['folder', 'link'])('that has made a %s where the names belong is seen', async (kind) => {
    chmodSync(folder, 0o1777);
    if (kind === 'folder') {
      mkdirSync(notices, { mode: 0o700 });
      chownSync(notices, NOBODY, NOBODY);
    } else {
      const elsewhere = joinPath(folder, 'elsewhere');
      mkdirSync(elsewhere, { mode: 0o700 });
      symlinkSync(elsewhere, notices);
    }
    await expect(Service.join(fresh())).rejects.toMatchObject({
      code: 'ERR_COMM',
      message: expect.stringMatching(
        /^Service\.join: names need a directory that only this user can access, but .*onesided-0/,
      ),
    });
  });
});
