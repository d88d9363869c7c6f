/**
 * The example of the guide: workers under `node:cluster` that crash, whose successors find everything, and that are
 * replaced under load; and its unit of systemd.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { listServices } from '../../src/service/service-list.ts';
import { freePort } from '../support/ports.ts';
import { Client } from './http-clients.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/services/workers.js', import.meta.url));

interface Answer {
  readonly place: number;
  readonly hits: number;
  readonly seen: number;
}

it.skipIf(loadNative() === undefined)('workers crash, and nothing that they share is lost', async () => {
  const port = await freePort();
  const primary = spawn(process.execPath, [EXAMPLE, '--port', String(port), '--workers', '3'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaints = '';
  primary.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const ask = async (path: string): Promise<Answer | undefined> => {
    try {
      const response = await fetch(`http://localhost:${port}${path}`, {
        headers: { connection: 'close' },
        // A connection that was given to a worker that crashes is answered by nobody.
        signal: AbortSignal.timeout(20_000),
      });
      return (await response.json()) as Answer;
    } catch {
      return undefined;
    }
  };
  try {
    let seen = 0;
    // Until the first worker listens.
    for (let answer = await ask('/?user=ann'); ; answer = await ask('/?user=ann')) {
      if (answer !== undefined) seen = answer.seen;
      if (seen === 1) break;
      await sleep(20);
    }
    for (let round = 0; round < 3; round++) {
      expect(await ask('/crash')).toBeUndefined();
      for (let i = 0; i < 5; ) {
        const answer = await ask('/?user=ann');
        if (answer === undefined) {
          // All workers may be crashing or starting at the same time.
          await sleep(20);
          continue;
        }
        i++;
        expect(answer.seen).toBe(++seen);
        expect(answer.hits).toBe(seen);
      }
    }
    expect(complaints).toBe('');
  } finally {
    primary.kill('SIGKILL');
  }
});

it.skipIf(loadNative() === undefined)('SIGHUP replaces all workers under load, and SIGTERM ends all', async () => {
  const port = await freePort();
  const primary = spawn(process.execPath, [EXAMPLE, '--port', String(port), '--workers', '2'], { stdio: 'inherit' });
  const ended = once(primary, 'exit');
  let isOver = false;
  const members = (): number[] => {
    const service = listServices(loadNative()!, 'test').find(({ name }) => name === `workers-${port}`);
    return (service?.members ?? []).flatMap(({ pid }) => (pid === primary.pid ? [] : pid));
  };
  const listens = async (): Promise<void> => {
    for (;;) {
      try {
        return void (await new Client(port).ask('/?user=first'));
      } catch {
        await sleep(20);
      }
    }
  };
  async function client(number: number): Promise<number[]> {
    const connection = new Client(port);
    const seen: number[] = [];
    // Any failure is one of this test.
    while (!isOver) seen.push((JSON.parse(await connection.ask(`/?user=${number}`)) as Answer).seen);
    connection.disconnect();
    return seen;
  }
  try {
    await listens();
    while (members().length < 2) await sleep(20);
    const before = members();
    const clients = Promise.all([0, 1, 2, 3].map(client));
    clients.catch(() => {});
    await sleep(300);
    primary.kill('SIGHUP');
    // Until no worker of before is left, and two are.
    const isReplaced = (): boolean => {
      const there = members();
      return there.length === 2 && !there.some((pid) => before.includes(pid));
    };
    while (!isReplaced()) await Promise.race([sleep(20), clients]);
    await sleep(300);
    isOver = true;
    for (const seen of await clients) {
      expect(seen.length).toBeGreaterThan(10);
      expect(seen).toEqual(seen.map((_, i) => i + 1));
    }
    primary.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(members()).toEqual([]);
  } finally {
    isOver = true;
    primary.kill('SIGKILL');
  }
});

it.skipIf(spawnSync('systemd-analyze', ['--version']).status !== 0)('the unit of systemd is one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-unit-'));
  try {
    const unit = readFileSync(join(EXAMPLE, '../workers.service'), 'utf8')
      .replaceAll('/srv/shop', folder)
      .replace('/usr/bin/node', process.execPath)
      .replace('User=shop', `User=${userInfo().username}`);
    copyFileSync(EXAMPLE, join(folder, 'workers.js'));
    writeFileSync(join(folder, 'workers.service'), unit);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', join(folder, 'workers.service')], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it.each(['workers.service', 'ecosystem.config.cjs'])('the guide shows all of %s', (file) => {
  const guide = readFileSync(new URL('../../docs/guide/services.md', import.meta.url), 'utf8');
  // Without the comment at its head.
  const text = readFileSync(join(EXAMPLE, '..', file), 'utf8').replace(/^(#.*\n)+\n|^\/\*[\s\S]*?\*\/\n/, '');
  expect(text).not.toContain('systemctl reload');
  expect(guide).toContain(`\n${text}\`\`\`\n`);
});
