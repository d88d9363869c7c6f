/** What `onesided service` lists, removes, and leaves in the folder of names. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { service as command, listed } from '../../src/cli/service-command.ts';
import { loadNative } from '../../src/native.ts';
import { listServices } from '../../src/service/service-list.ts';
import { endMembersAfterEach, fresh, join, killed, member } from './members.ts';

endMembersAfterEach();

const folder = mkdtempSync(path(tmpdir(), 'onesided-list-'));
beforeAll(() => vi.stubEnv('XDG_RUNTIME_DIR', folder));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const notices = (): string[] => readdirSync(path(folder, `onesided-${process.getuid!()}`));

describe.skipIf(loadNative() === undefined)('the list of services', () => {
  it('says who is in them, and what they share', async () => {
    const name = fresh();
    const service = await join(name, 5);
    const child = await member(name, 'hold');
    await service.map('sessions', { bytes: 1 << 20 });
    expect(listServices(loadNative()!, 'test')).toEqual([
      {
        name,
        places: 5,
        members: [
          { place: 0, pid: process.pid },
          { place: 1, pid: child.pid },
        ],
        bytes: expect.any(Number),
        shared: [
          { name: 'hits', kind: 'counter', bytes: expect.any(Number) },
          { name: 'log', kind: 'mutex', bytes: expect.any(Number) },
          { name: 'sessions', kind: 'map', bytes: expect.any(Number) },
        ],
      },
    ]);
    expect(listed(false).split('\n')).toEqual([
      expect.stringMatching(`^${name}: 2 of 5 places, `),
      `  members  0: process ${process.pid}, 1: process ${child.pid}`,
      expect.stringMatching(/^ {2}counter {2}hits {2}4 KiB$/),
      expect.stringMatching(/^ {2}mutex {4}log {2}4 KiB$/),
      expect.stringMatching(/^ {2}map {6}sessions {2}\d+ KiB$/),
    ]);
  });

  it('knows none whose members were all killed, and leaves nothing of it', async () => {
    const name = fresh();
    await killed(await member(name, 'hold'));
    expect(notices()).toEqual([`${name}.service`]);
    expect(() => command.run(['remove', 'another'])).toThrow(/no service "another"; this user's services: none$/);
    expect(notices()).toEqual([]);
    await killed(await member(name, 'hold'));
    expect(listed(false)).toBe('no services');
    expect(notices()).toEqual([]);
  });

  it('loses a name that is taken away, and its members go on', async () => {
    const name = fresh();
    const service = await join(name);
    const hits = await service.counter('hits');
    hits.add(5);
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    command.run(['remove', name]);
    write.mockRestore();
    expect(listServices(loadNative()!, 'test')).toEqual([]);
    const other = await join(name);
    expect([other.place, (await other.counter('hits')).value, hits.value]).toEqual([0, 0, 5]);
  });
});
