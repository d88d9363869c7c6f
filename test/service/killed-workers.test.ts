/**
 * A worker is killed every second while clients ask: only requests that it was doing fail, and all that survives is
 * exact. `ONESIDED_TEST_KILLS` says how many.
 */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { freePort } from '../support/ports.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { Client } from './http-clients.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-http.js', import.meta.url));
const KILLS = Number(process.env['ONESIDED_TEST_KILLS'] ?? 5);
const WORKERS = 4;
const CLIENTS = 16;

endMembersAfterEach();

/** What a user's client knows. */
interface Told {
  /** How often the user had been seen, by each answer. */
  readonly seen: number[];
  /** Requests that have no answer: done, or not. */
  failed: number;
}

const TIMEOUT = { timeout: 180_000 + KILLS * 3000 };
it.skipIf(loadNative() === undefined)(
  'workers killed under load: only what they were doing fails',
  TIMEOUT,
  async () => {
    const name = fresh();
    const port = await freePort();
    const below = randomBelow(seedOfRun());
    const primary = spawn(process.execPath, [PROGRAM, name, String(port), String(WORKERS)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const living = new Set<number>();
    const killed = new Set<number>();
    primary.stdout.setEncoding('utf8').on('data', (text: string) => {
      for (const [, pid] of text.matchAll(/listens (\d+)/g)) living.add(Number(pid));
    });
    let isOver = false;
    const ended = new Promise<never>((_, reject) =>
      primary.once('exit', (code) => reject(new Error(`the primary process ended with ${code}`))),
    );
    ended.catch(() => {});
    const unexpected: string[] = [];

    async function client(number: number): Promise<Told> {
      const connection = new Client(port);
      const told: Told = { seen: [], failed: 0 };
      let pid: number | undefined;
      while (!isOver || pid === undefined) {
        try {
          // The first request of a connection says whose it is: one that nobody has taken yet belongs to no worker.
          const answer = JSON.parse(await connection.ask(`/user-${number}`)) as { pid: number; seen: number };
          told.seen.push(answer.seen);
          if (pid !== undefined && pid !== answer.pid) unexpected.push(`${pid} became ${answer.pid}`);
          pid = answer.pid;
        } catch (error) {
          told.failed++;
          if (pid !== undefined && !killed.has(pid)) unexpected.push(`of ${pid}, which lives: ${error}`);
          pid = undefined;
          connection.disconnect();
          await sleep(5);
        }
      }
      connection.disconnect();
      return told;
    }

    try {
      while (living.size < WORKERS) await Promise.race([sleep(10), ended]);
      const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
      for (let i = 0; i < KILLS; i++) {
        await Promise.race([sleep(1000), ended]);
        while (living.size === 0) await Promise.race([sleep(10), ended]);
        const pid = [...living][below(living.size)];
        living.delete(pid);
        killed.add(pid);
        process.kill(pid, 'SIGKILL');
      }
      await sleep(1000);
      isOver = true;
      const told = await Promise.race([clients, ended]);
      expect(unexpected).toEqual([]);

      const service = await join(name);
      const users = await service.map<number>('users', { bytes: 1 << 20 });
      const { value: hits } = await service.counter('hits');
      const ledger = (await service.window('ledger', Int32Array, 2)).sharedQuery(0);
      let [counted, answered, failed] = [0, 0, 0];
      for (const [number, one] of told.entries()) {
        const count = users.get(`/user-${number}`)!;
        // One client asks for a user, so each answer is a new number, and those that are missing are what failed.
        expect(one.seen).toEqual([...new Set(one.seen)].sort((a, b) => a - b));
        expect(one.seen.at(-1)).toBeLessThanOrEqual(count);
        expect(count - one.seen.length).toBeGreaterThanOrEqual(0);
        expect(count - one.seen.length).toBeLessThanOrEqual(one.failed);
        counted += count;
        answered += one.seen.length;
        failed += one.failed;
      }
      expect(answered).toBeGreaterThan(100 * KILLS);
      expect(hits).toBeGreaterThanOrEqual(counted);
      expect(hits).toBeLessThanOrEqual(answered + failed);
      const held = await (await service.mutex('accounts')).lock();
      if (held.abandoned !== undefined) ledger[1] = ledger[0];
      expect(ledger[1]).toBe(ledger[0]);
      expect(ledger[0]).toBeGreaterThanOrEqual(answered);
      expect(ledger[0]).toBeLessThanOrEqual(counted);
      held.release();
    } finally {
      isOver = true;
      primary.kill('SIGKILL');
    }
  },
);
