/**
 * Members that may have small files, few descriptors, little memory, or no room for names: their calls work, or say
 * what is missing, and others go on.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-limits.js', import.meta.url));
const MEBIBYTE = 1 << 20;
const isRoot = process.getuid?.() === 0;

endMembersAfterEach();

interface Outcome {
  readonly call: string;
  readonly outcome: string;
  readonly message?: string;
}

interface Ran {
  readonly outcomes: readonly Outcome[];
  readonly ended: string | number;
}

/** Runs a member behind commands of the shell. */
async function member(before: string, bytes: number, name = fresh(), around: readonly string[] = []): Promise<Ran> {
  const command = [...around, '/bin/sh', '-c', `${before}; exec "$0" "$@"`];
  const [program, ...args] = [...command, process.execPath, PROGRAM, name, String(bytes)];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, complaint] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
  const ended = await new Promise<string | number>((resolve) =>
    child.on('close', (code, signal) => resolve(signal ?? code ?? 'nothing')),
  );
  const outcomes = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Outcome]));
  // Without a line, it was Node that could not begin.
  if (outcomes.length > 0) expect(complaint).toBe('');
  return { outcomes, ended };
}

const refusals = ({ outcomes }: Ran): string[] =>
  outcomes.flatMap(({ call, outcome, message }) => (outcome === 'ok' ? [] : [`${call} ${outcome} ${message}`]));

describe.skipIf(loadNative() === undefined)('a member of a service', () => {
  it('without limits can do all calls', async () => {
    const ran = await member(':', MEBIBYTE);
    expect(refusals(ran)).toEqual([]);
    expect(ran.ended).toBe(0);
    expect(ran.outcomes).toHaveLength(8);
  });

  const most = loadNative()?.maxMapBytes ?? 0;
  it.skipIf(most > 2 ** 33)(
    'that asks for more than Node can map at once is told so, and the name is free',
    async () => {
      const service = await join(fresh());
      const refused = {
        code: 'ERR_SIZE',
        message: expect.stringMatching(/can have 4294967296 in one piece; use Node 22/),
      };
      await expect(service.map('x', { bytes: 5 * 2 ** 30 })).rejects.toMatchObject(refused);
      await expect(service.queue('x', Float64Array, 2 ** 20, { length: 2 ** 10 })).rejects.toMatchObject(refused);
      expect((await service.counter('x')).add()).toBe(0);
    },
  );

  // Blocks of 512 bytes.
  it('with small files cannot join, and is told of the limit', async () => {
    const ran = await member('ulimit -f 64', MEBIBYTE);
    expect(ran.ended).toBe(0);
    expect(refusals(ran)).toHaveLength(1);
    expect(refusals(ran)[0]).toMatch(/^join ERR_SERVICE Service\.join: cannot join the service "test-.*ulimit -f/);
  });

  it('with files of half a megabyte is told which thing does not fit', async () => {
    const ran = await member('ulimit -f 1024', 16 * MEBIBYTE);
    expect(ran.ended).toBe(0);
    const told = refusals(ran);
    expect(told.map((line) => line.split(' ')[0])).toEqual(['queue', 'map', 'limiter', 'window']);
    for (const line of told) {
      const [call] = line.split(' ');
      expect(line).toContain(`${call} ERR_SERVICE Service.${call}: cannot make the ${call} "${call}" of the service`);
      expect(line).toMatch(/ulimit -f.*; raise that limit, or ask for less$/);
    }
  });

  it.each([16, 18, 20, 22, 24, 26, 64])('with %i descriptors joins, or is told of the limit', async (descriptors) => {
    const ran = await member(`ulimit -n ${descriptors}`, MEBIBYTE);
    if (descriptors === 64) expect(refusals(ran)).toEqual([]);
    // Node itself needs some, and ends without them.
    if (ran.outcomes.length === 0) return;
    expect(ran.ended).toBe(0);
    for (const line of refusals(ran)) expect(line).toMatch(/ ERR_\w+ Service\..*(EMFILE|descriptors|ulimit -n)/);
  });
});

describe.skipIf(loadNative() === undefined || !isRoot)('where a file system is full', () => {
  const around = ['unshare', '--mount', '/bin/sh', '-c'];
  const full = (mount: string): readonly string[] => [...around, `${mount} && exec "$0" "$@"`];

  it('joining says so, with the folder', async () => {
    const mount =
      'd=$(mktemp -d) && mount -t tmpfs -o size=16k tmpfs $d && rmdir $d 2>/dev/null; ' +
      'mkdir -m 700 $d/onesided-0 && head -c 16384 /dev/zero > $d/fill; export XDG_RUNTIME_DIR=$d';
    const ran = await member(':', MEBIBYTE, fresh(), full(mount));
    expect(ran.ended).toBe(0);
    expect(refusals(ran)).toHaveLength(1);
    expect(refusals(ran)[0]).toMatch(
      /^join ERR_SERVICE Service\.join: cannot publish the service "test-\S+" in \/tmp\S+onesided-0: ENOSPC.*make room/,
    );
  });

  it('a full /dev/shm does not matter', async () => {
    const mount = 'mount -t tmpfs -o size=4k tmpfs /dev/shm && head -c 4096 /dev/zero > /dev/shm/fill';
    const ran = await member(':', 16 * MEBIBYTE, fresh(), full(mount));
    expect(refusals(ran)).toEqual([]);
    expect(ran.ended).toBe(0);
  });
});

/** A cgroup of the old kind, in which processes may have so many bytes; `undefined`: none can be made here. */
function memoryGroup(bytes: number): string | undefined {
  const group = `/sys/fs/cgroup/memory/onesided-test-${process.pid}`;
  try {
    mkdirSync(group);
    writeFileSync(`${group}/memory.limit_in_bytes`, String(bytes));
    return group;
  } catch {
    return undefined;
  }
}

describe.skipIf(loadNative() === undefined || !isRoot)('a limit on memory', () => {
  it('refuses a map that cannot fit, and kills who exceeds it otherwise: others see a death', async ({ skip }) => {
    const group = memoryGroup(150 * MEBIBYTE);
    if (group === undefined) return skip('no cgroup for memory can be made here');
    try {
      const name = fresh();
      const service = await join(name);
      const deaths: number[] = [];
      service.on('death', ({ place }) => deaths.push(place));
      const enter = `echo $$ > ${group}/cgroup.procs`;
      const refused = await member(enter, 200 * MEBIBYTE, name);
      const told = refusals(refused).find((line) => line.startsWith('map '));
      expect(told).toMatch(/^map ERR_SERVICE Service\.map: cannot make the map "map" .* can have 157286400 at most/);
      // Each thing fits, and together they do not. So the window kills it, and never a signal of its memory (SIGBUS).
      const other = await member(enter, 120 * MEBIBYTE, name);
      expect(other.ended).toBe('SIGKILL');
      // The first one may have been killed by its window, too: that one's death is no news of the other's.
      await expect.poll(() => service.members().length, { timeout: 60_000 }).toBe(1);
      await expect.poll(() => deaths.length, { timeout: 60_000 }).toBeGreaterThan(0);
      const map = await service.map<Uint8Array>('map', { bytes: 120 * MEBIBYTE, codec: 'bytes' });
      expect(map.get('key 0')).toEqual(new Uint8Array(4096).fill(1));
      await (await service.mutex('mutex')).withLock(() => {});
    } finally {
      rmdirSync(group);
    }
  });
});
