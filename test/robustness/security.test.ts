/** Memory of a job is this user's alone, and a key opens one region only. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { onesided, start } from '../launcher/command.ts';
import { linesOf } from './jobs.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-security.js', import.meta.url));
const kinds = (['processes', 'threads'] as const).filter((kind) => kind === 'threads' || loadNative() !== undefined);
const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;
const DAEMON = 1;

describe.each(kinds)('ranks that are %s', (kind) => {
  it('have random keys, which are checked', async () => {
    const drawn = new Set<number>();
    for (let run = 0; run < 2; run++) {
      const { code, stdout, stderr } = await onesided('run', '-n', '2', '--ranks', kind, '--timeout', '120', PROGRAM);
      expect(code, stderr).toBe(0);
      for (const { keys } of linesOf<{ keys: number[] }>(stdout)) for (const key of keys) drawn.add(key);
    }
    expect(drawn.size, 'other ranks and other runs have other keys').toBe(16);
  });
});

/** Whether a user can open a file. */
function opens(path: string, uid: number | undefined): boolean {
  const user = uid === undefined ? {} : { uid, gid: uid };
  const { status, error } = spawnSync('/bin/sh', ['-c', 'exec 3<"$0"', path], { ...user, stdio: 'ignore' });
  if (error !== undefined) throw error;
  return status === 0;
}

describe.skipIf(loadNative() === undefined)('memory files of a job', () => {
  async function whileRunning(uid: number | undefined, look: (paths: string[], pids: number[]) => void): Promise<void> {
    const user = uid === undefined ? {} : { uid, gid: uid };
    const job = start(['run', '-n', '2', '--timeout', '120', PROGRAM, '--', '--wait=1'], {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...user,
    });
    let text = '';
    job.child.stdout!.on('data', (chunk: string) => {
      text += chunk;
    });
    await expect.poll(() => linesOf(text).length, { timeout: 120_000 }).toBe(2);
    const ranks = linesOf<{ pid: number; descriptors: string[] }>(text);
    const paths = ranks.flatMap(({ pid, descriptors }) => descriptors.map((fd) => `/proc/${pid}/fd/${fd}`));
    const launcher = job.child.pid!;
    // The launcher holds the control memory.
    for (const fd of readdirSync(`/proc/${launcher}/fd`)) {
      const path = `/proc/${launcher}/fd/${fd}`;
      if (readlinkSync(path).startsWith('/memfd:onesided')) paths.push(path);
    }
    expect(paths.length).toBeGreaterThanOrEqual(3);
    try {
      look(paths, [launcher, ...ranks.map(({ pid }) => pid)]);
    } finally {
      job.child.stdin!.end('go\n');
    }
    const { code, stderr } = await job.finished;
    expect(code, stderr).toBe(0);
  }

  it('are for their owner only', async () => {
    await whileRunning(undefined, (paths) => {
      for (const path of paths) {
        expect(opens(path, undefined), `${path} by its owner`).toBe(true);
        const { mode, uid } = statSync(path);
        expect([path, (mode & 0o777).toString(8), uid]).toEqual([path, '600', process.getuid!()]);
      }
    });
  });

  it.skipIf(!isRoot)('of root cannot be opened by an ordinary user', async () => {
    await whileRunning(undefined, (paths, pids) => {
      for (const path of [...paths, ...pids.map((pid) => `/proc/${pid}/mem`)])
        expect(opens(path, NOBODY), path).toBe(false);
    });
  });

  it.skipIf(!isRoot)('of an ordinary user cannot be opened by another', async ({ skip }) => {
    if (!opens(PROGRAM, NOBODY) || !opens(process.execPath, NOBODY)) skip('an ordinary user cannot read this checkout');
    await whileRunning(NOBODY, (paths, pids) => {
      for (const path of paths) {
        expect(opens(path, NOBODY), `${path} by its owner`).toBe(true);
        expect(statSync(path)).toMatchObject({ uid: NOBODY });
      }
      for (const path of [...paths, ...pids.map((pid) => `/proc/${pid}/mem`)])
        expect(opens(path, DAEMON), path).toBe(false);
    });
  });
});
