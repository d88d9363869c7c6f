/**
 * Ranks that no launcher watches, of which one is killed or stopped: while all add to one part by requests, or, by
 * loads and stores, in the midst of fences, locks and collectives. `ONESIDED_TEST_KILLS=N` repeats each so often. How
 * long the survivors took is printed at the end.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { endMembers, follow, type Member, PROGRAM } from '../robustness/members.ts';
import { freePort } from '../support/ports.ts';

const STRIPES = fileURLToPath(new URL('../../build/programs/test/ranks/robust-stripes.js', import.meta.url));
const TIMES = Number(process.env['ONESIDED_TEST_KILLS'] ?? 3);
const RANKS = 3;
const cases = Array.from({ length: TIMES }, (_, i) => ({ victim: i % RANKS, after: (37 * i) % 700 }));
/** Milliseconds from a kill to the last survivor's error. */
const took: number[] = [];

afterEach(endMembers);
afterAll(() => {
  took.sort((a, b) => a - b);
  if (took.length > 0) {
    const [median, longest] = [took[took.length >> 1], took[took.length - 1]];
    console.log(`${took.length} ranks killed: the others knew after ${median} ms (median), ${longest} ms at most`);
  }
});

async function begin(program: string, args: readonly string[], debug: Record<string, string>): Promise<Member[]> {
  const port = await freePort();
  const env = {
    ...process.env,
    ...debug,
    ONESIDED_SIZE: String(RANKS),
    ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
    ONESIDED_SECRET: 'a secret of these three',
  };
  return Array.from({ length: RANKS }, (_, rank) => {
    const options = { env: { ...env, ONESIDED_RANK: String(rank) } };
    return follow(spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'ignore'], ...options }));
  });
}

const byRequests = (victim: number, ending: string, until: string): Promise<Member[]> =>
  begin(STRIPES, [`--victim=${victim}`, `--ending=${ending}`, `--until=${until}`], { ONESIDED_DEBUG: 'requests' });

/** Kills one, and looks what the others say: their error under `what`. @returns them */
async function killed(members: readonly Member[], victim: number, what: 'caught' | 'code'): Promise<Member[]> {
  const { child } = members[victim];
  const at = Date.now();
  child.kill('SIGKILL');
  const others = members.filter((_, rank) => rank !== victim);
  const lines = await Promise.all(others.map(({ said }) => said(what)));
  for (const line of lines) {
    expect(line[what]).toBe('ERR_RMA_RANK_FAILED');
    expect(line.message).toContain(`rank ${victim} (process ${child.pid})`);
  }
  took.push(Math.max(...lines.map((line) => line.at)) - at);
  return others;
}

describe.skipIf(loadNative() === undefined)('ranks that no launcher watches', () => {
  it.each(cases)('by requests, learn that one is killed: %o', { timeout: 120_000 }, async ({ victim, after }) => {
    const members = await byRequests(victim, 'kill', '/nonexistent');
    await members[victim].said('pid');
    await sleep(after);
    const others = await killed(members, victim, 'caught');
    await Promise.all(others.map(({ said }) => said('later')));
    for (const { code } of await Promise.all(others.map(({ ended }) => ended))) expect(code).toBe(1);
  });

  it.each(cases)('by loads and stores, learn that one is killed: %o', { timeout: 120_000 }, async (how) => {
    const members = await begin(PROGRAM, ['--how=loop'], {});
    await Promise.all(members.map(({ said }) => said('working')));
    await sleep(how.after);
    for (const { ended } of await killed(members, how.victim, 'code')) await ended;
  });

  it.each(cases)('by requests, go on while one is stopped: %o', { timeout: 120_000 }, async ({ victim, after }) => {
    const until = join(tmpdir(), `onesided-attack-${randomUUID()}`);
    const members = await byRequests(victim, 'stop', until);
    await members[victim].said('pid');
    await sleep(after);
    members[victim].child.kill('SIGSTOP');
    const others = members.filter((_, rank) => rank !== victim);
    // The first two lines may have been on their way.
    const before = others.map(({ lines }) => lines.length);
    while (!others.every(({ lines }, i) => lines.length >= before[i] + 3)) await sleep(20);
    members[victim].child.kill('SIGCONT');
    writeFileSync(until, '');
    await Promise.all(members.map(({ said }) => said('done')));
    for (const { code } of await Promise.all(members.map(({ ended }) => ended))) expect(code).toBe(0);
    rmSync(until);
  });
});
