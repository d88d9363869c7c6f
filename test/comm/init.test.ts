/** `init`, called again: in a world of one, and in jobs with names. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { init } from '../../src/index.ts';
import { loadNative } from '../../src/native.ts';

const refused = (message: string) =>
  expect.objectContaining({ code: 'ERR_COMM', message: expect.stringContaining(message) });

describe.sequential('init', () => {
  const before = process.env['XDG_RUNTIME_DIR'];
  let runtime: string;
  beforeAll(() => {
    process.env['XDG_RUNTIME_DIR'] = runtime = mkdtempSync(join(tmpdir(), 'onesided-test-'));
  });
  afterAll(() => {
    if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
    else process.env['XDG_RUNTIME_DIR'] = before;
    rmSync(runtime, { recursive: true, force: true });
  });

  it('gives the same world until finalize, and an error after that', async () => {
    const world = await init();
    expect(await init()).toBe(world);
    await expect(init({ job: 'other', size: 1 })).rejects.toThrow(
      refused('cannot join job "other" of 1 ranks: this process is in the job that started it'),
    );
    await world.finalize();
    await expect(init()).rejects.toThrow(refused('has finalized its job and cannot join it again'));
    await expect(init({ timeout: 1000 })).rejects.toThrow(refused('init({ job, size })'));
  });

  it.skipIf(loadNative() === undefined)(
    'joins one job with a name after the other, in worlds of their own',
    async () => {
      const first = await init({ job: 'first', size: 1 });
      expect(await init()).toBe(first);
      expect(await init({ job: 'first', size: 1 })).toBe(first);
      await expect(init({ job: 'first', size: 2 })).rejects.toThrow(
        refused('this process is in job "first" of 1 ranks'),
      );
      await expect(init({ job: 'second', size: 1 })).rejects.toThrow(refused('call finalize() there first'));
      await first.finalize();
      await expect(init()).rejects.toThrow(refused('has finalized its job'));
      for (const job of ['first', 'second']) {
        const world = await init({ job, size: 1 });
        expect(world).not.toBe(first);
        await world.barrier();
        await world.finalize();
      }
      expect(readdirSync(join(runtime, `onesided-${userInfo().uid}`))).toEqual([]);
    },
  );
});
