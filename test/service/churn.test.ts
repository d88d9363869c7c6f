/**
 * Members that come and go, a thousand a minute: nothing grows. `ONESIDED_TEST_CHURN=60` has it last for so many
 * minutes.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { seedOfRun } from '../support/ranks.ts';
import { fresh } from './members.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-churn.js', import.meta.url));
const MINUTES = Number(process.env['ONESIDED_TEST_CHURN'] ?? 0);
const A_MINUTE = 1000;

interface Held {
  readonly done: number;
  readonly fds: number;
  readonly threads: number;
  readonly mappings: number;
  readonly listeners: number;
  readonly members: readonly number[];
  readonly highest: number;
  readonly size: number;
  readonly heapUsed: number;
  readonly arrayBuffers: number;
}

it.skipIf(loadNative() === undefined)(
  'members come and go: descriptors, threads, memory and places do not grow',
  { timeout: 180_000 + MINUTES * 90_000 },
  async () => {
    const joins = MINUTES === 0 ? 480 : MINUTES * A_MINUTE;
    const args = [PROGRAM, fresh(), String(seedOfRun()), String(joins)];
    const child = spawn(process.execPath, MINUTES === 0 ? args : [...args, String(A_MINUTE)]);
    let [out, complaint] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    expect(await new Promise((resolve) => child.on('close', resolve)), complaint).toBe(0);
    expect(complaint).toBe('');
    const lines = out.trim().split('\n');
    const parts = lines.map((line) => JSON.parse(line) as Held);
    expect(parts.length).toBe(6);
    expect(parts.at(-1)!.done).toBeGreaterThanOrEqual(joins);
    // The first part has made what is made once, the second what Node makes once.
    const first = parts[1];
    for (const part of parts.slice(2)) {
      expect(part.members).toEqual([0]);
      // Three others at a time, and the process itself.
      expect(part.highest).toBeLessThanOrEqual(4);
      expect(part.size).toBe(first.size);
      for (const what of ['fds', 'threads', 'mappings', 'listeners'] as const)
        expect(part[what], `${what}\n${out}`).toBeLessThanOrEqual(first[what] + 1);
      expect(part.arrayBuffers, out).toBeLessThan(first.arrayBuffers + 65_536);
      // The compiler's own included.
      expect(part.heapUsed, out).toBeLessThan(first.heapUsed + 2 * 2 ** 20);
    }
    // A descriptor more may be one that is being closed; one more each time is not.
    expect(Math.min(...parts.slice(3).map(({ fds }) => fds))).toBeLessThanOrEqual(first.fds);
  },
);
