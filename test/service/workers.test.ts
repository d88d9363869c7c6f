/** The example of the guide: workers under `node:cluster` that crash, and whose successors find everything. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { freePort } from '../support/ports.ts';

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
