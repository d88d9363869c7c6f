import { closeSync, fstatSync, readdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Native } from '../../src/native.ts';
import { Row, rowOf, wakeAll } from '../../src/providers/emulator/bells.ts';
import type { EmulatorFabric } from '../../src/providers/emulator/emulator-fabric.ts';
import { openProcessFabric } from '../../src/providers/emulator/process-fabric.ts';
import { addon, mappedWords } from '../support/addon.ts';
import { startProgram } from '../support/children.ts';

const native = addon();
const MEMBER = new URL('./programs/process-member.ts', import.meta.url);
const verbsError = expect.objectContaining({ name: 'RmaError', code: 'ERR_VERBS' });

let fd: number;
let table: Int32Array;
let fabric: EmulatorFabric;

beforeEach(() => {
  ({ fd, table } = mappedWords(1024));
  fabric = openProcessFabric(native, table, 0, 2);
});

afterEach(() => {
  fabric.close();
  closeSync(fd);
});

function mappings(): number {
  return readFileSync('/proc/self/maps', 'latin1').split('onesided-heap').length - 1;
}

async function rootOf(member: number): Promise<{ handle: number; byteLength: number }> {
  for (;;) {
    const root = fabric.root(member);
    if (root !== undefined) return root;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('memory', () => {
  it('of one member is read and written by another process', async () => {
    const child = startProgram(MEMBER, ['publish'], [fd]);
    const { handle, byteLength } = await rootOf(1);
    const attachment = fabric.attach(1, handle, byteLength);
    const bytes = new Uint8Array(attachment.buffer);
    expect(bytes.length).toBe(10_000);
    expect(bytes.every((byte) => byte === 7)).toBe(true);
    attachment.release();
    attachment.release();
    expect(bytes.length).toBe(0);
    child.process.stdin?.write('end\n');
    expect((await child.ended).stderr).toBe('');
  });

  it('is zero at first, and again when its pages are used again', () => {
    for (let round = 0; round < 10; round++) {
      const allocation = fabric.allocate(100_000);
      const bytes = new Uint8Array(allocation.buffer);
      expect(bytes.every((byte) => byte === 0)).toBe(true);
      bytes.fill(255);
      fabric.free(allocation);
    }
  });

  it('is one address space: every mapping of an allocation shows the same bytes', () => {
    const allocation = fabric.allocate(5000);
    const [one, two] = [fabric.attach(0, allocation.handle, 5000), fabric.attach(0, allocation.handle, 5000)];
    new Uint8Array(one.buffer)[4999] = 9;
    expect(new Uint8Array(two.buffer)[4999]).toBe(9);
    expect(new Uint8Array(allocation.buffer)[4999]).toBe(9);
    one.release();
    two.release();
  });

  it('that was freed is detached, cannot be attached any more, and shows zeros to who still maps it', () => {
    const allocation = fabric.allocate(4096);
    const attachment = fabric.attach(0, allocation.handle, 4096);
    new Uint8Array(allocation.buffer).fill(3);
    fabric.free(allocation);
    fabric.free(allocation);
    expect(allocation.buffer.byteLength).toBe(0);
    expect(new Uint8Array(attachment.buffer).every((byte) => byte === 0)).toBe(true);
    expect(() => fabric.attach(0, allocation.handle, 4096)).toThrow(verbsError);
    // A stale mapping is no way into memory that is allocated later.
    const next = fabric.allocate(4096);
    new Uint8Array(attachment.buffer).fill(5);
    expect(new Uint8Array(next.buffer).every((byte) => byte === 0)).toBe(true);
    attachment.release();
  });

  it('comes and goes 10,000 times and leaves nothing behind', () => {
    const heap = Atomics.load(table, rowOf(0) + Row.HEAP_FD);
    const descriptors = readdirSync('/proc/self/fd').length;
    const before = fstatSync(heap).blocks;
    for (let i = 0; i < 10_000; i++) {
      const allocation = fabric.allocate(1 + ((i * 977) % 20_000));
      new Uint8Array(allocation.buffer)[0] = 1;
      fabric.free(allocation);
    }
    expect(mappings()).toBe(0);
    expect(fstatSync(heap).blocks).toBe(before);
    expect(readdirSync('/proc/self/fd').length).toBe(descriptors);
  });

  it('has no name, and is open to its owner only', () => {
    const shm = readdirSync('/dev/shm');
    const allocation = fabric.allocate(1);
    const status = fstatSync(Atomics.load(table, rowOf(0) + Row.HEAP_FD));
    expect(status.mode & 0o777).toBe(0o600);
    expect(status.nlink).toBe(0);
    expect(readdirSync('/dev/shm')).toEqual(shm);
    fabric.free(allocation);
  });

  it.runIf(process.getuid?.() === 0)('is refused to another user', async () => {
    const allocation = fabric.allocate(4096);
    const child = startProgram(MEMBER, ['foreign', String(allocation.handle), '4096'], [fd]);
    const { code, stdout } = await child.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^refused attach: cannot map the memory of member 0: cannot open .*EACCES/);
  });

  it('beyond what the machine has is refused, and so is what is no number of bytes', () => {
    expect(() => fabric.allocate(2 ** 52)).toThrow(verbsError);
    for (const bytes of [0, -1, 1.5, Number.NaN, Infinity, '8', undefined]) {
      expect(() => fabric.allocate(bytes as number), String(bytes)).toThrow(
        expect.objectContaining({ code: 'ERR_ARG' }),
      );
    }
  });
});

describe('attach', () => {
  it('refuses unknown members and handles, and other lengths', () => {
    const { handle } = fabric.allocate(5000);
    for (const member of [-1, 2, 0.5, Number.NaN, undefined]) {
      expect(() => fabric.attach(member as number, handle, 5000), String(member)).toThrow(verbsError);
    }
    for (const other of [0, 1, handle - 4096, handle + 4096, handle + 1, -4096, 2 ** 50, Number.NaN, '8192']) {
      expect(() => fabric.attach(0, other as number, 5000), String(other)).toThrow(verbsError);
    }
    for (const length of [4999, 5001, 0, -1, Number.NaN]) {
      expect(() => fabric.attach(0, handle, length), String(length)).toThrow(verbsError);
    }
    expect(() => fabric.attach(1, handle, 5000)).toThrow(/has not opened its fabric/);
  });

  it('refuses a member that was killed, and leaves what is attached readable', async () => {
    const child = startProgram(MEMBER, ['publish'], [fd]);
    const { handle, byteLength } = await rootOf(1);
    await child.said('published');
    const attachment = fabric.attach(1, handle, byteLength);
    child.process.kill('SIGKILL');
    await child.ended;
    expect(new Uint8Array(attachment.buffer)[9999]).toBe(7);
    expect(() => fabric.attach(1, handle, byteLength)).toThrow(
      /cannot map the memory of member 1: process \d+ no longer exists/,
    );
    attachment.release();
  });

  it('recognises that another file took the place of a heap', () => {
    const { handle } = fabric.allocate(4096);
    const other = openProcessFabric(native, table, 1, 2);
    const mine = Atomics.load(table, rowOf(0) + Row.HEAP_FD);
    Atomics.store(table, rowOf(0) + Row.HEAP_FD, Atomics.load(table, rowOf(1) + Row.HEAP_FD));
    expect(() => other.attach(0, handle, 4096)).toThrow(/is not the memory of member 0/);
    // Standard input: no memory file at all, perhaps not even one that can be opened.
    Atomics.store(table, rowOf(0) + Row.HEAP_FD, 0);
    expect(() => other.attach(0, handle, 4096)).toThrow(verbsError);
    Atomics.store(table, rowOf(0) + Row.HEAP_FD, mine);
    other.attach(0, handle, 4096).release();
    other.close();
  });

  it('refuses everything once the fabric, or the other one, is closed', () => {
    const { handle, buffer } = fabric.allocate(4096);
    const other = openProcessFabric(native, table, 1, 2);
    fabric.close();
    fabric.close();
    expect(buffer.byteLength).toBe(0);
    expect(mappings()).toBe(0);
    for (const call of [
      () => fabric.allocate(1),
      () => fabric.attach(0, handle, 4096),
      () => other.attach(0, handle, 4096),
    ]) {
      expect(call).toThrow(verbsError);
    }
    other.close();
  });
});

describe('roots', () => {
  it('are found by the others, also beyond 4 GiB of handles', () => {
    expect(fabric.root(0)).toBeUndefined();
    expect(fabric.root(1)).toBeUndefined();
    fabric.publishRoot({ handle: 2 ** 52 + 4096, byteLength: 2 ** 40 + 3, buffer: new ArrayBuffer(0) });
    expect(fabric.root(0)).toEqual({ handle: 2 ** 52 + 4096, byteLength: 2 ** 40 + 3 });
    fabric.publishRoot({ handle: 0xffff_f000, byteLength: 0x8000_0001, buffer: new ArrayBuffer(0) });
    expect(fabric.root(0)).toEqual({ handle: 0xffff_f000, byteLength: 0x8000_0001 });
  });
});

describe('parking', () => {
  it('costs the waker no system call when nobody sleeps', () => {
    let wakes = 0;
    const counting: Native = {
      ...native,
      futexWake: (...args) => {
        wakes++;
        return native.futexWake(...args);
      },
    };
    const other = openProcessFabric(counting, table, 1, 2);
    for (let i = 0; i < 100; i++) other.wake(0);
    expect(wakes).toBe(0);
    expect(Atomics.load(table, rowOf(0) + Row.BELL)).toBe(0);
    fabric.parking.arm();
    other.wake(0);
    expect(wakes).toBe(1);
    fabric.parking.disarm();
    other.close();
  });

  it.each(['echo-sync', 'echo'])('loses no wake-up between processes (%s)', async (manner) => {
    const rounds = 3000;
    const child = startProgram(MEMBER, [manner, String(rounds)], [fd]);
    const { handle, byteLength } = await rootOf(1);
    const attachment = fabric.attach(1, handle, byteLength);
    const words = new Int32Array(attachment.buffer as ArrayBuffer);
    const { parking } = fabric;
    for (let round = 1; round <= rounds; round++) {
      Atomics.store(words, 0, round);
      fabric.wake(1);
      while (Atomics.load(words, 16) !== round) {
        const token = parking.arm();
        // Without end: a wake-up that is lost would hang here.
        if (Atomics.load(words, 16) !== round) await parking.sleep(token, Number.POSITIVE_INFINITY);
        parking.disarm();
      }
    }
    expect(await child.ended).toEqual({ code: 0, signal: null, stdout: '', stderr: '' });
    expect(Atomics.load(table, rowOf(0) + Row.SLEEPERS)).toBe(0);
    expect(Atomics.load(table, rowOf(1) + Row.SLEEPERS)).toBe(0);
    attachment.release();
  });

  it('keeps a process alive and uses hardly any CPU, until wakeAll', async () => {
    const child = startProgram(MEMBER, ['park'], [fd]);
    await child.said('parked');
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(child.process.exitCode).toBeNull();
    wakeAll(table, 2, native);
    // 1 % of two seconds.
    expect(Number(await child.said('woken'))).toBeLessThan(20_000);
    expect((await child.ended).code).toBe(0);
  });

  it('ends at its deadline, or at once when the bell has rung', async () => {
    const { parking } = fabric;
    const token = parking.arm();
    const began = performance.now();
    parking.sleepSync(token, 20);
    await parking.sleep(token, 20);
    expect(performance.now() - began).toBeGreaterThanOrEqual(38);
    fabric.wake(0);
    parking.sleepSync(token, Number.POSITIVE_INFINITY);
    await parking.sleep(token, Number.POSITIVE_INFINITY);
    parking.disarm();
  });

  it('has many sleepers in one thread, each with its own deadline', async () => {
    const { parking } = fabric;
    const token = parking.arm();
    const order: string[] = [];
    const first = parking.sleep(token, Number.POSITIVE_INFINITY).then(() => order.push('first'));
    await parking.sleep(token, 10).then(() => order.push('deadline'));
    expect(order).toEqual(['deadline']);
    fabric.wake(0);
    const second = parking.arm();
    // Takes the place of the first one's wait, whose news are still in the kernel.
    const third = parking.sleep(second, 5000).then(() => order.push('second'));
    await first;
    fabric.wake(0);
    await third;
    expect(order).toEqual(['deadline', 'first', 'second']);
    parking.disarm();
    parking.disarm();
  });

  it('lets its sleepers go when the fabric closes', async () => {
    const sleep = fabric.parking.sleep(fabric.parking.arm(), Number.POSITIVE_INFINITY);
    fabric.close();
    await sleep;
  });
});
