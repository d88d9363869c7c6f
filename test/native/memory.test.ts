import { closeSync, fstatSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addon, mappedWords, REMAPS } from '../support/addon.ts';
import { runProgram } from '../support/children.ts';

const native = addon();
const PAGE = native.pageBytes;

function file(bytes: number): number {
  const fd = native.memoryCreate('onesided-memory-test');
  native.memoryResize(fd, bytes);
  return fd;
}

function mappingsOf(name: string): number {
  return readFileSync('/proc/self/maps', 'latin1').split(name).length - 1;
}

describe('memory files', () => {
  it('are for their owner only, closed on exec, and have no name in the file system', () => {
    const shmBefore = readdirSync('/dev/shm');
    const fd = file(PAGE);
    expect(fstatSync(fd).mode & 0o777).toBe(0o600);
    expect(fstatSync(fd).nlink).toBe(0);
    const flags = /flags:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1];
    expect(Number.parseInt(flags ?? '0', 8) & 0o2000000).not.toBe(0);
    expect(readdirSync('/dev/shm')).toEqual(shmBefore);
    closeSync(fd);
  });

  it('grow, and do not shrink under a mapping', () => {
    const fd = file(PAGE);
    native.memoryResize(fd, 3 * PAGE);
    expect(fstatSync(fd).size).toBe(3 * PAGE);
    expect(() => native.memoryResize(fd, PAGE)).toThrow(expect.objectContaining({ code: 'EPERM' }));
    closeSync(fd);
  });

  it('are what two processes map and count in, exactly', async () => {
    const { fd, table } = mappedWords(1024);
    const child = runProgram(new URL('./programs/map-fd3.ts', import.meta.url), ['200000'], [fd]);
    let own = 0;
    let ended = false;
    void child.then(() => (ended = true));
    while (!ended) {
      for (let i = 0; i < 1000; i++) Atomics.add(table, 0, 1);
      own += 1000;
      await new Promise(setImmediate);
    }
    const { code, stderr } = await child;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(Atomics.load(table, 0)).toBe(200_000 + own);
    expect(Atomics.load(table, 1)).toBeGreaterThan(0);
    closeSync(fd);
  });

  it('read as zeros after a hole was punched, and give their memory back', () => {
    const fd = file(16 * PAGE);
    const bytes = new Uint8Array(native.memoryMap(fd, 0, 16 * PAGE)).fill(7);
    const full = fstatSync(fd).blocks;
    native.memoryPunch(fd, 4 * PAGE, 8 * PAGE);
    expect(fstatSync(fd).blocks).toBe(full / 2);
    expect(bytes[4 * PAGE - 1]).toBe(7);
    expect(bytes.subarray(4 * PAGE, 12 * PAGE).every((byte) => byte === 0)).toBe(true);
    expect(bytes[12 * PAGE]).toBe(7);
    closeSync(fd);
  });
});

describe('memoryMap', () => {
  it('maps any page of the file, and lives on when the descriptor is closed', () => {
    const fd = file(4 * PAGE);
    const whole = new Uint8Array(native.memoryMap(fd, 0, 4 * PAGE));
    const part = new Uint8Array(native.memoryMap(fd, 2 * PAGE, 100));
    closeSync(fd);
    part[99] = 42;
    expect(part.length).toBe(100);
    expect(whole[2 * PAGE + 99]).toBe(42);
  });

  it('refuses what lies beyond the end by one byte, and offsets within a page', () => {
    const fd = file(2 * PAGE);
    for (const [offset, bytes] of [
      [0, 2 * PAGE + 1],
      [PAGE, PAGE + 1],
      [2 * PAGE, 1],
      [1, 1],
      [PAGE - 1, 1],
      [-PAGE, 1],
      [0, 0],
      [0, 1.5],
      [0, Number.NaN],
      [2 ** 52, 2 ** 52],
    ]) {
      expect(() => native.memoryMap(fd, offset, bytes), `${bytes} bytes at ${offset}`).toThrow(
        expect.objectContaining({ code: 'ERR_ARG' }),
      );
    }
    closeSync(fd);
  });

  it('refuses descriptors that are not memory files: others could shrink under the mapping', () => {
    const folder = mkdtempSync(join(tmpdir(), 'onesided-'));
    const fd = openSync(join(folder, 'ordinary'), 'w+');
    try {
      expect(() => native.memoryMap(fd, 0, 1)).toThrow(/not a memory file/);
      expect(() => native.memoryResize(fd, 1)).toThrow(/not a memory file/);
      expect(() => native.memoryPunch(fd, 0, 1)).toThrow(/not a memory file/);
      expect(() => native.memoryMap(987_654, 0, 1)).toThrow(expect.objectContaining({ code: 'EBADF' }));
      expect(fstatSync(fd).size).toBe(0);
    } finally {
      closeSync(fd);
      rmSync(folder, { recursive: true });
    }
  });
});

describe('memoryUnmap', () => {
  it('unmaps at once, detaches, and may be called again', () => {
    const fd = native.memoryCreate('onesided-unmap-test');
    native.memoryResize(fd, PAGE);
    const buffer = native.memoryMap(fd, 0, PAGE);
    const view = new Uint8Array(buffer);
    expect(mappingsOf('onesided-unmap-test')).toBe(1);
    native.memoryUnmap(buffer);
    expect(mappingsOf('onesided-unmap-test')).toBe(0);
    expect(buffer.byteLength).toBe(0);
    expect(view[0]).toBeUndefined();
    native.memoryUnmap(buffer);
    // The address is free for the next mapping, which the first one's finalizer must leave alone.
    const again = new Uint8Array(native.memoryMap(fd, 0, PAGE));
    again[0] = 5;
    expect(mappingsOf('onesided-unmap-test')).toBe(1);
    closeSync(fd);
  });

  it('refuses buffers that were not mapped', () => {
    for (const other of [new ArrayBuffer(8), new SharedArrayBuffer(8), new Uint8Array(8), {}, undefined, 7]) {
      expect(() => native.memoryUnmap(other as ArrayBuffer)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
    }
  });

  it('is done by the garbage collector for who forgets it', async () => {
    const program = new URL('./programs/collect.ts', import.meta.url);
    const { code, stdout, stderr } = await runProgram(program, [], [], ['--expose-gc']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({ before: 64, after: 0 });
  });

  it('and memoryMap leave nothing behind in 10,000 rounds', () => {
    const fd = native.memoryCreate('onesided-rounds-test');
    native.memoryResize(fd, 16 * PAGE);
    for (let i = 0; i < 10_000; i++) {
      const buffer = native.memoryMap(fd, (i % 16) * PAGE, PAGE);
      new Uint8Array(buffer)[0] = i;
      native.memoryUnmap(buffer);
    }
    expect(mappingsOf('onesided-rounds-test')).toBe(0);
    closeSync(fd);
  });
});

/** So many bytes get pages of their own, unless they fit into what was freed before. */
const LARGE = 40 * 1024 * 1024;

describe.runIf(REMAPS)('memory of the program itself', () => {
  /** What was freed before is used up by and by. */
  function lendableBuffer(): ArrayBuffer {
    const held: ArrayBuffer[] = [];
    for (let i = 0; i < 50; i++) {
      const buffer = new ArrayBuffer(LARGE);
      if (native.memoryRemappable(buffer) !== undefined) return buffer;
      held.push(buffer);
    }
    throw new Error(`none of ${held.length} buffers can be remapped`);
  }

  /** A buffer with a few bytes in it, remapped, and its file mapped a second time. */
  function remap() {
    const buffer = lendableBuffer();
    const own = new Uint8Array(buffer);
    const places = [0, 1, 4079, 4080, 4096, 1 << 20, (1 << 25) - 17, (1 << 25) - 16, (1 << 25) + 5000, LARGE - 1];
    for (const [i, at] of places.entries()) own[at] = i + 1;
    const [bytes, before] = native.memoryRemappable(buffer)!;
    const fd = file(bytes + PAGE);
    const number = native.memoryRemap(fd, PAGE, buffer);
    const other = new Uint8Array(native.memoryMap(fd, PAGE, before + LARGE, before));
    expect(other.byteLength).toBe(LARGE);
    return { buffer, own, places, fd, number, other };
  }

  it('is remapped where it stands, and taken back with what is in it then', () => {
    const { buffer, own, places, fd, number, other } = remap();
    const sum = (bytes: Uint8Array): number => {
      let total = 0;
      for (let i = 0; i < bytes.length; i++) total += bytes[i];
      return total;
    };
    expect(places.map((at) => own[at])).toEqual(places.map((_, i) => i + 1));
    expect(places.map((at) => other[at])).toEqual(places.map((_, i) => i + 1));
    expect([sum(own), sum(other)]).toEqual([55, 55]);
    // It is one memory.
    own[77] = 7;
    other[LARGE - 2] = 9;
    expect([other[77], own[LARGE - 2]]).toEqual([7, 9]);
    // Once, and not by who has only mapped it.
    expect(native.memoryRemappable(other.buffer)).toBeUndefined();
    expect(() => native.memoryRemap(fd, PAGE, other.buffer)).toThrow(/cannot be remapped/);
    expect(native.memoryRemappable(buffer)).toBeUndefined();
    expect(() => native.memoryRemap(fd, PAGE, buffer)).toThrow(/already remapped/);

    expect(native.memoryReclaim(number)).toBe(true);
    expect(places.map((at) => own[at])).toEqual(places.map((_, i) => i + 1));
    expect([own[77], own[LARGE - 2], sum(own)]).toEqual([7, 9, 71]);
    expect(sum(other)).toBe(0);
    own[5] = 5;
    expect(other[5]).toBe(0);
    expect(() => native.memoryReclaim(number)).toThrow(/is not the number of remapped memory/);
    // And again.
    expect(native.memoryRemappable(buffer)).toBeDefined();
    closeSync(fd);
  });

  it('takes memory only for what is in it', () => {
    const { fd, number } = remap();
    expect(fstatSync(fd).blocks * 512).toBeLessThan(64 * PAGE);
    native.memoryReclaim(number);
    expect(fstatSync(fd).blocks).toBe(0);
    closeSync(fd);
  });

  it('stays remapped when its buffer was transferred, since another thread may have it', () => {
    const { buffer, fd, number, other } = remap();
    const elsewhere = new Uint8Array(structuredClone(buffer, { transfer: [buffer] }));
    expect(native.memoryReclaim(number)).toBe(false);
    elsewhere[99] = 99;
    expect([elsewhere[0], elsewhere[1 << 20], other[99]]).toEqual([1, 6, 99]);
    closeSync(fd);
  });

  it('stays where it is as long as others reach it by its address', () => {
    const words = new Int32Array(new SharedArrayBuffer(1 << 20));
    const server = new native.Server(words, 1);
    const { buffer, fd, number, own } = remap();
    const part = server.add(new Uint8Array(buffer, 10_000, 8));
    expect(native.memoryReclaim(number)).toBe(false);
    expect(native.memoryRemappable(buffer)).toBeUndefined();
    expect(() => native.memoryRemap(fd, PAGE, buffer)).toThrow(/by their addresses/);
    server.remove(part);
    expect(native.memoryRemappable(buffer)).toBeDefined();
    expect(own[1 << 20]).toBe(6);

    const other = lendableBuffer();
    server.add(new Uint8Array(other, LARGE - 8));
    expect(native.memoryRemappable(other)).toBeUndefined();
    server.close();
    expect(native.memoryRemappable(other)).toBeDefined();
    closeSync(fd);
  });

  it("is not remapped if it shares its pages, or is not the allocator's", () => {
    const fd = file(2 * PAGE);
    const { Memory } = (
      globalThis as unknown as { WebAssembly: { Memory: new (size: object) => { buffer: ArrayBuffer } } }
    ).WebAssembly;
    const detached = new ArrayBuffer(LARGE);
    structuredClone(detached, { transfer: [detached] });
    const buffers = [
      new ArrayBuffer(0),
      new ArrayBuffer(8),
      Buffer.from('text').buffer as ArrayBuffer,
      new Memory({ initial: LARGE / 65_536 }).buffer,
      native.memoryMap(fd, 0, 2 * PAGE),
      detached,
    ];
    for (const buffer of buffers) {
      expect(native.memoryRemappable(buffer)).toBeUndefined();
      expect(() => native.memoryRemap(fd, 0, buffer)).toThrow(RangeError);
    }
    const large = lendableBuffer();
    expect(() => native.memoryRemap(fd, 0, large)).toThrow(/room/);
    expect(() => native.memoryRemappable(new SharedArrayBuffer(LARGE) as unknown as ArrayBuffer)).toThrow(TypeError);
    closeSync(fd);
  });
});
