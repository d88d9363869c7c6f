/** Members that call everything with hostile arguments, or write garbage over the service's memory; corrupt notices. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { Service } from '../../src/service/service.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-attack.js', import.meta.url));
const CALLS = Number(process.env['ONESIDED_ATTACK_CALLS'] ?? 3000);

endMembersAfterEach();

async function attack(mode: string, count: number): Promise<{ done: number; refused: number }> {
  const child = spawn(process.execPath, [PROGRAM, mode, fresh(), String(seedOfRun()), String(count)]);
  let [out, complaint] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  // Ends hangs.
  const timer = setTimeout(() => child.kill('SIGABRT'), 170_000);
  const ended = await new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
  clearTimeout(timer);
  expect(ended, complaint).toBe(0);
  return JSON.parse(out) as { done: number; refused: number };
}

describe.skipIf(loadNative() === undefined)('a member of a service', () => {
  it('may call everything with anything: errors have codes, and the others go on', async () => {
    const { done, refused } = await attack('calls', CALLS);
    expect(done).toBe(CALLS);
    expect(refused).toBeGreaterThan(CALLS / 10);
  });

  it('may write garbage over the memory: nobody crashes or hangs', async () => {
    const { done } = await attack('garbage', Math.ceil(CALLS / 10));
    expect(done).toBe(Math.ceil(CALLS / 10));
  });
});

describe.skipIf(loadNative() === undefined)('a notice of a service that was written over', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(joinPath(tmpdir(), 'onesided-test-'));
    vi.stubEnv('XDG_RUNTIME_DIR', folder);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it('is refused with its file, or leads to nothing, whatever is in it', async () => {
    const name = fresh();
    const service = await join(name, 3);
    const [directory] = readdirSync(folder);
    const file = joinPath(folder, directory, `${name}.service`);
    const whole = readFileSync(file, 'utf8');
    const notice = JSON.parse(whole) as Record<string, unknown>;
    const joins = async (text: string): Promise<string> => {
      writeFileSync(file, text);
      const joined = await Service.join(name).catch((error: { code?: string; message: string }) => error);
      if (!(joined instanceof Service)) {
        expect(joined.message).toMatch(/Service\.join: /);
        return joined.code ?? 'none';
      }
      await joined.leave();
      return 'joined';
    };
    for (const text of ['', '{', 'null', '[]', '7', JSON.stringify({ ...notice, members: 5 }), '\0'.repeat(100)])
      expect(await joins(text), text).toBe('ERR_COMM');
    for (const size of [0, -1, 1e9, 2, 1001])
      expect(await joins(JSON.stringify({ ...notice, size }))).toBe('ERR_DAMAGED');
    expect(await joins(JSON.stringify({ ...notice, version: '0.0.0-x' }))).toBe('ERR_VERSION');
    // Names no member that lives: then a new service begins.
    for (const other of [
      { inode: 1 },
      { device: 1 },
      { members: [{ pid: 4_000_000, fd: 3 }] },
      { members: [{ pid: 1, fd: -1 }] },
    ])
      expect(await joins(JSON.stringify({ ...notice, ...other }))).toBe('joined');
    const below = randomBelow(seedOfRun());
    for (let round = 0; round < 200; round++) {
      const bytes = Buffer.from(whole);
      for (let i = below(4); i >= 0; i--) bytes[below(bytes.length)] = below(256);
      expect(await joins(bytes.toString('latin1'))).toMatch(/^(ERR_\w+|joined)$/);
    }
    expect(await joins(whole)).toBe('joined');
    expect(service.members()).toHaveLength(1);
  });
});
