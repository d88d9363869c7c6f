/** Ranks of a job on two hosts: this one starts its own two, the same test on the other host the others. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { failuresOf, follow, type Member } from '../../robustness/members.ts';

/** 0 or 1. */
export const HOST = Number(process.env['ONESIDED_TEST_HOST']);
const RANKS_A_HOST = 2;
export const SIZE = 2 * RANKS_A_HOST;

/** The guests' processors are emulated, and do not boot in the same time. */
export const LONG = { timeout: 600_000 };

/** One port for each job; both hosts start the same ones. */
let port = 7200;

/** This host's ranks of the next job. */
export function ranks(program: string, ...args: string[]): Member[] {
  port++;
  return Array.from({ length: RANKS_A_HOST }, (_, i) => {
    const env = {
      ...process.env,
      ONESIDED_PROVIDER: 'rdma-core',
      ONESIDED_RANK: String(HOST * RANKS_A_HOST + i),
      ONESIDED_SIZE: String(SIZE),
      ONESIDED_ROOT_ADDRESS: `10.9.0.1:${port}`,
      ONESIDED_SECRET: 'a secret of these tests',
      ONESIDED_TIMEOUT: '200',
    };
    return follow(spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'], env }));
  });
}

/**
 * Asks who has started the guests: to pull the cable between them, to plug it in again, or to switch the second one
 * off.
 */
export function please(what: 'unplug' | 'plug' | 'kill'): void {
  writeFileSync('/dev/console', `\nonesided-guest: please ${what}\n`);
}

/**
 * All of this host's ranks are told that a rank has failed, the first of them one of the other host. One that is slower
 * may learn of its neighbour's end, which that has come to by this.
 */
export async function expectLost(members: readonly Member[]): Promise<void> {
  const failures = await failuresOf(members);
  for (const { code } of failures) expect(code).toBe('ERR_RMA_RANK_FAILED');
  const [first] = failures.toSorted((a, b) => a.at - b.at);
  expect(first.message).toMatch(
    HOST === 0 ? /rank [23] \(process \d+ on host1\)/ : /rank [01] \(process \d+ on host0\)/,
  );
}
