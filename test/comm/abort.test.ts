/** `abort` ends all ranks of a job with one exit code, whatever they do and whoever started them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { start } from '../launcher/command.ts';
import { freePort } from '../support/ports.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/comm-abort.js', import.meta.url));
const runtime = mkdtempSync(join(tmpdir(), 'onesided-test-'));
const children = new Set<ChildProcess>();
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(runtime, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly text: string;
}

/** A rank that nobody watches. */
function rank(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, '--code=42', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, XDG_RUNTIME_DIR: runtime, ...env },
  });
  children.add(child);
  let text = '';
  child.stdout.on('data', (data) => (text += data));
  child.stderr.on('data', (data) => (text += data));
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal, text });
    });
  });
}

/** The rank that aborts and the one that waits end with the code; the one that computes is told to end. */
function expectAborted(ended: readonly Ended[]): void {
  const by = (text: string): Ended => ended.find((one) => one.text.includes(text))!;
  expect(by('rank 1 is there')).toMatchObject({ code: 42 });
  expect(by('rank 0 is there')).toMatchObject({ code: 42 });
  expect(by('rank 2 is there')).toMatchObject({ signal: 'SIGTERM' });
  for (const { text } of ended) expect(text).not.toContain('nobody comes here');
}

describe('abort ends', () => {
  for (const kind of RANK_KINDS) {
    for (const form of ['promise', 'sync']) {
      test(`ranks as ${kind} that wait in a ${form}, with its code`, async () => {
        const args = [
          'run',
          '-n',
          '3',
          '--ranks',
          kind,
          '--timeout',
          '100',
          PROGRAM,
          '--',
          '--code=42',
          `--form=${form}`,
        ];
        const { code, stdout, stderr } = await start(args).finished;
        expect([code, stderr], stdout).toEqual([42, expect.stringContaining('rank 1 exited with code 42')]);
        expect(stdout).not.toContain('nobody comes here');
      });
    }
  }

  test.runIf(RANK_KINDS.includes('processes'))('a job that processes joined by name', async () => {
    const job = randomUUID();
    expectAborted(await Promise.all([0, 1, 2].map(() => rank([`--job=${job}`], {}))));
  });

  test.runIf(RANK_KINDS.includes('processes'))(
    'ranks that a process manager started, which watches none of them',
    async () => {
      const env = {
        ONESIDED_SIZE: '3',
        ONESIDED_ROOT_ADDRESS: `127.0.0.1:${await freePort()}`,
        ONESIDED_SECRET: randomUUID(),
      };
      expectAborted(await Promise.all([0, 1, 2].map((i) => rank([], { ...env, ONESIDED_RANK: String(i) }))));
    },
  );

  test('a world of one', async () => {
    expect(await rank([], {})).toMatchObject({ code: 42 });
  });
});
