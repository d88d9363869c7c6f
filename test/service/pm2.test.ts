/**
 * `pm2 reload` of the example, by its ecosystem file, while clients ask: no request fails, and all are counted. pm2 is
 * one in the path, or in the folder that ONESIDED_BENCH_PEERS names; it has a folder, and so a daemon, of its own.
 */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { freePort } from '../support/ports.ts';
import { Client } from './http-clients.ts';

const ECOSYSTEM = fileURLToPath(new URL('../../examples/services/ecosystem.config.cjs', import.meta.url));
const RELOADS = 3;
const CLIENTS = 8;

function findPm2(): string | undefined {
  const own = join(process.env['ONESIDED_BENCH_PEERS'] ?? '', 'node_modules/.bin/pm2');
  if (existsSync(own)) return own;
  return spawnSync('which', ['pm2']).status === 0 ? 'pm2' : undefined;
}

interface Answer {
  readonly hits: number;
  readonly seen: number;
}

it.skipIf(loadNative() === undefined)('pm2 reload under load: no request fails', async ({ skip }) => {
  const program = findPm2();
  if (program === undefined) return skip('pm2 is not installed: npm install --global pm2');
  const home = mkdtempSync(join(tmpdir(), 'onesided-pm2-'));
  const port = await freePort();
  const env = { ...process.env, PM2_HOME: home, PORT: String(port), WORKERS: '2' };
  const pm2 = (...args: string[]): Promise<unknown> => promisify(execFile)(program, args, { env, timeout: 60_000 });
  let isOver = false;

  async function client(number: number): Promise<Answer[]> {
    const connection = new Client(port);
    const answers: Answer[] = [];
    // Any failure is one of this test.
    while (!isOver) answers.push(JSON.parse(await connection.ask(`/?user=${number}`)) as Answer);
    connection.disconnect();
    return answers;
  }

  try {
    await pm2('start', ECOSYSTEM);
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)));
    clients.catch(() => {
      isOver = true;
    });
    for (let i = 0; i < RELOADS; i++) {
      await sleep(1000);
      await pm2('reload', 'workers');
    }
    await sleep(1000);
    isOver = true;
    const told = await clients;
    for (const answers of told) {
      expect(answers.length).toBeGreaterThan(100);
      expect(answers.map(({ seen }) => seen)).toEqual(answers.map((_, i) => i + 1));
    }
    const hits = told.flat().map((answer) => answer.hits);
    expect(hits.sort((a, b) => a - b)).toEqual(hits.map((_, i) => i + 1));
  } finally {
    isOver = true;
    await pm2('kill');
    rmSync(home, { recursive: true, force: true });
  }
});
