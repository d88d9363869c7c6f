/**
 * `onesided run --hosts --keep-going`: ranks and hosts are lost, and the others go on. Hosts are network namespaces,
 * where they can be made, and a cable connects them; their ranks reach each other by libfabric over TCP.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { temporaryFolder } from '../support/folders.ts';
import { seedOfRun } from '../support/ranks.ts';
import { onesided, type Running, start } from './command.ts';

const RANKS = fileURLToPath(new URL('../../build/programs/test/ranks/', import.meta.url));
const folder = temporaryFolder('survivors');
const KEEP_GOING = ['--keep-going', '--timeout', '120'];

const survivors = (stdout: string): string[] =>
  stdout.split('\n').flatMap((line) => /"ranks":(\S+?\])/.exec(line)?.[1] ?? []);

describe.skipIf(loadNative() === undefined)('ranks of several hosts that are one machine', () => {
  it('go on while some are killed', async () => {
    const here = join(folder, 'here');
    writeFileSync(here, '#!/bin/sh\nshift; exec "$@"\n');
    chmodSync(here, 0o755);
    const hosts = ['--hosts', 'a:2,b:2', '--ssh', here];
    const args = [join(RANKS, 'shrink.js'), '--', String(seedOfRun()), '2'];
    const { code, stdout, stderr } = await onesided('run', ...hosts, ...KEEP_GOING, ...args);
    expect(code, stderr).toBe(0);
    expect(new Set(survivors(stdout)).size, stdout).toBe(1);
    expect(stderr).toMatch(/went on without 2 ranks: rank \d was killed by SIGKILL \(pid \d+ on [ab]\)/);
  });
});

const names = ['a', 'b'].map((name) => `osv${process.pid}${name}`);
const [first, second] = names;

/** Makes two hosts and a cable. @returns why it cannot */
function connected(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  if (!/^libfabric +yes/m.test(spawnSync(process.execPath, ['bin/onesided.mjs', 'info'], { encoding: 'utf8' }).stdout))
    return 'there is no libfabric (apt-get install libfabric1)';
  const lines = [
    ...names.map((name) => `netns add ${name}`),
    `link add cable netns ${first} type veth peer name cable netns ${second}`,
    ...names.flatMap((name, i) => [
      `-n ${name} address add 10.78.0.${i + 1}/24 dev cable`,
      `-n ${name} link set lo up`,
      `-n ${name} link set cable up`,
    ]),
  ];
  for (const line of lines) {
    const { status, error, stderr } = spawnSync('ip', line.split(' '), { encoding: 'utf8' });
    if (status !== 0) return `ip ${line}: ${error?.message ?? stderr}`;
  }
  return undefined;
}

/** The processes of a namespace. */
function processesOf(name: string): number[] {
  const { stdout } = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean).map(Number);
}

/** The agent: its parent is outside. */
function agentOf(name: string): number {
  const all = new Set(processesOf(name));
  return [...all].find(
    (pid) => !all.has(Number(/^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])),
  )!;
}

describe.skipIf(loadNative() === undefined)('ranks of hosts that a network connects', () => {
  let unable: string | undefined;
  beforeAll(async () => {
    unable = connected();
    if (unable !== undefined) return;
    const stateOf = (name: string): string =>
      spawnSync('ip', ['-n', name, '-brief', 'link', 'show', 'cable'], { encoding: 'utf8' }).stdout;
    for (const name of names) while (!stateOf(name).includes(' UP ')) await sleep(20);
  });
  afterAll(() => {
    for (const name of names) spawnSync('ip', ['netns', 'del', name]);
  });

  const launch = (program: string, ...args: readonly string[]): Running => {
    const hosts = ['--hosts', names.map((name) => `${name}:2`).join(','), '--ssh', 'ip netns exec'];
    return start(['run', ...hosts, '--provider', 'libfabric', ...KEEP_GOING, join(RANKS, program), '--', ...args]);
  };

  it('go on while some are killed', async ({ skip }) => {
    if (unable !== undefined) return skip(unable);
    for (let i = 0; i < 3; i++) {
      const { code, stdout, stderr } = await launch('shrink.js', String(seedOfRun() + i), '2').finished;
      expect(code, stderr).toBe(0);
      expect(new Set(survivors(stdout)).size, stdout).toBe(1);
    }
  });

  async function loses(host: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const job = launch('shrink-host.js');
    for (let rank = 0; rank < 4; rank++) await job.printed(`[${rank}] {"pid"`);
    // The ranks are busy with each other, or about to.
    process.kill(agentOf(host), 'SIGKILL');
    return await job.finished;
  }

  it('go on without a host that is lost', async ({ skip }) => {
    if (unable !== undefined) return skip(unable);
    const { code, stdout, stderr } = await loses(second);
    expect(stderr).toContain(`onesided: lost ${second}, and goes on without its ranks: `);
    expect(code, stderr).toBe(0);
    expect(survivors(stdout)).toEqual(['[0,1]', '[0,1]']);
    expect(stderr).toMatch(/went on without 2 ranks: rank 2 .*, rank 3 /);
    await expect.poll(() => processesOf(second), { timeout: 60_000 }).toEqual([]);
  });

  it('end without the host of rank 0, with a message', async ({ skip }) => {
    if (unable !== undefined) return skip(unable);
    const { code, stderr } = await loses(first);
    expect(stderr).toMatch(new RegExp(`^onesided: lost ${first}: .*; no other host can go on without it$`, 'm'));
    expect(code).toBe(1);
    for (const name of names) await expect.poll(() => processesOf(name), { timeout: 60_000 }).toEqual([]);
  });
});
