import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadNative, nativeStatus } from '../../src/native.ts';
import { runProgram, startWorker, workerEnded } from '../support/children.ts';

const PROGRAM = new URL('./programs/environment.ts', import.meta.url);

describe('the addon', () => {
  it('says where it was loaded from', () => {
    expect(loadNative()).toBe(loadNative());
    const { loaded, path, attempts } = nativeStatus();
    expect([loaded, path]).toEqual([true, expect.stringMatching(/onesided\.node$/)]);
    expect(attempts.at(-1)).toMatchObject({ path, place: expect.any(String) });
  });

  it('says why it is not loaded', async () => {
    const program = new URL('./programs/status.ts', import.meta.url);
    const { stdout } = await runProgram(program, ['off']);
    expect(JSON.parse(stdout)).toEqual({
      loaded: false,
      reason: expect.stringContaining('ONESIDED_NO_ADDON=1'),
      attempts: [],
    });
  });

  it('is loaded by several threads at once, and unloaded with them', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(4));
    for (let round = 0; round < 2; round++) {
      const workers = Array.from({ length: 4 }, () => startWorker(PROGRAM, { shared, stay: false }));
      const codes = await Promise.all(workers.map(workerEnded));
      expect(codes).toEqual([0, 0, 0, 0]);
    }
    expect(shared[0]).toBe(8);
    expect(readFileSync('/proc/self/maps', 'latin1')).not.toContain('onesided-environment');
  });

  it('lets a thread be terminated that sleeps and has memory mapped', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(4));
    const workers = Array.from({ length: 4 }, () => startWorker(PROGRAM, { shared, stay: true }));
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    expect(await Promise.all(workers.map((worker) => worker.terminate()))).toEqual([1, 1, 1, 1]);
    expect(readFileSync('/proc/self/maps', 'latin1')).not.toContain('onesided-environment');
  });
});
