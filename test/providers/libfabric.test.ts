/**
 * libfabric as a device: which provider and address are chosen; and, where it is installed, that two endpoints of this
 * process reach each other by TCP. All the rest: `npm run test:tcp`.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type FabricAddress,
  fabricAddressAt,
  MOST_NAME,
  storeFabricAddress,
  unreachable,
} from '../../src/providers/libfabric/libfabric-addresses.ts';
import { chooseFabric } from '../../src/providers/libfabric/libfabric-choice.ts';
import { fabricNative, openFabric } from '../../src/providers/libfabric/libfabric-context.ts';
import { WcOpcode, WcStatus } from '../../src/verbs/completion-queue.ts';
import type { Context } from '../../src/verbs/device.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import {
  connect,
  End,
  name,
  poll,
  pollStatuses,
  pollSuccess,
  post,
  send,
  suiteOver,
  write,
} from '../verbs/conformance/harness.ts';
import { updates } from '../verbs/conformance/updates.ts';

describe('what ONESIDED_DEVICE names', () => {
  const TCP = 'tcp';
  test.each([
    ['10.1.2.3', { provider: TCP, address: '10.1.2.3' }],
    ['fd00::5', { provider: TCP, address: 'fd00::5' }],
    ['lo', { provider: TCP, address: '127.0.0.1' }],
    ['libfabric:net;ofi_rxm:10.1.2.3', { provider: 'net;ofi_rxm', address: '10.1.2.3' }],
    ['libfabric:net;ofi_rxm:fd00::5', { provider: 'net;ofi_rxm', address: 'fd00::5' }],
    ['libfabric::10.1.2.3', { provider: TCP, address: '10.1.2.3' }],
    ['libfabric:sockets', { provider: 'sockets', address: '127.0.0.1' }],
    ['libfabric:efa', { provider: 'efa', address: '' }],
    ['libfabric:shm', { provider: 'shm', address: '' }],
  ])('%s', (text, choice) => {
    expect(chooseFabric(text, '127.0.0.1')).toEqual(choice);
  });

  test('is refused if it is no address and no interface, with those that there are', () => {
    expect(() => chooseFabric('nic7', '127.0.0.1')).toThrowError(
      expect.objectContaining({ code: 'ERR_PROVIDER_UNAVAILABLE', message: expect.stringMatching(/"nic7".*\blo\b/) }),
    );
  });

  test.each(['net', 'udp;ofi_rxd'])('is refused if it is %s, which does not do what it says', (provider) => {
    expect(() => chooseFabric(`libfabric:${provider}:127.0.0.1`, '127.0.0.1')).toThrowError(
      expect.objectContaining({
        code: 'ERR_PROVIDER_UNAVAILABLE',
        message: expect.stringContaining(`its ${provider} cannot be used: it `),
      }),
    );
  });

  test('needs no address where the host has one by which others reach it', () => {
    expect(chooseFabric('', '10.1.2.3')).toEqual({ provider: TCP, address: '10.1.2.3' });
    expect(chooseFabric('libfabric:efa', '10.1.2.3')).toEqual({ provider: 'efa', address: '' });
  });
});

test('an address goes through the table as it is, and is not there before', () => {
  const table = new Int32Array(new SharedArrayBuffer(4 * 32 * 3));
  const longest = Uint8Array.from({ length: MOST_NAME }, (_, i) => 255 - i);
  expect(fabricAddressAt(table, 1)).toBeUndefined();
  storeFabricAddress(table, 1, { name: longest, tag: [0xffffffff, 7] });
  expect(fabricAddressAt(table, 1)).toEqual({ name: longest, tag: [0xffffffff, 7] });
  storeFabricAddress(table, 2, { name: longest.slice(0, 16), tag: [0, 0x80000000] });
  expect(fabricAddressAt(table, 2)).toEqual({ name: longest.slice(0, 16), tag: [0, 0x80000000] });
  expect(fabricAddressAt(table, 0)).toBeUndefined();
});

test('a host without an interface is named, if it is not the only one', () => {
  const at = (...address: number[]) => Uint8Array.of(2, 0, 0x1f, 0x90, ...address, ...new Uint8Array(8));
  const [loopback, one, other] = [at(127, 0, 0, 1), at(10, 0, 0, 1), at(10, 0, 0, 2)];
  expect(unreachable([loopback, loopback])).toBeUndefined();
  expect(unreachable([one, other])).toBeUndefined();
  // EFA's names are of another kind.
  expect(unreachable([new Uint8Array(32).fill(127), one])).toBeUndefined();
  expect(unreachable([one, one, loopback])).toMatch(/^rank 2 is at 127\.0\.0\.1, where rank 0 at 10\.0\.0\.1 /);
});

function unavailable(): string | undefined {
  const found = fabricNative();
  if ('reason' in found) return found.reason;
  try {
    found.native.fabricOffers!();
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Two endpoints of this process. */
function openTwo(): Context[] {
  const own: FabricAddress[] = [];
  return [0, 1].map((member) => {
    const opened = openFabric(chooseFabric('', '127.0.0.1'), member, [() => own[0], () => own[1]]);
    own.push(opened.own);
    // TCP keeps the order of writes: none waits for the one before it.
    expect(opened.own).toMatchObject({
      provider: expect.stringMatching(/^(net|tcp);ofi_rxm$/),
      ordered: true,
      atomicsAgree: true,
    });
    return opened.context;
  });
}

const reason = unavailable();
const title = 'two endpoints of libfabric write, add and send to each other, and refuse what is not allowed';
if (reason !== undefined) test.skip(`${title} (not tested: ${reason})`, () => {});
else {
  test(title, async () => {
    const contexts = openTwo();
    onTestFinished(() => {
      for (const context of contexts) context.close();
    });
    const [a, b] = contexts.map((context) => new End(context));
    connect(a, b);
    write(a, b, 1, 0, 1000, 3000);
    await pollSuccess(a.sendCq);
    expect(b.bytes.slice(1000, 4000)).toEqual(a.bytes.slice(0, 3000));
    new BigUint64Array(b.memory.buffer)[0] = 41n;
    post(a, (qp) => {
      qp.wrAtomicFetchAdd(2, SendFlag.SIGNALED, b.region.rkey, b.at(0), 1, 0);
      qp.wrSetSge(a.region.lkey, a.at(0), 8);
    });
    await pollSuccess(a.sendCq);
    expect(new BigUint64Array(a.memory.buffer)[0]).toBe(41n);
    expect(new BigUint64Array(b.memory.buffer)[0]).toBe(42n);
    a.receive(3, 64, 100);
    send(b, 4, 1000, 100);
    const [received] = await poll(a.recvCq, 1);
    expect(received).toMatchObject({ wrId: 3, opcode: WcOpcode.RECV, byteLen: 100, status: name(WcStatus.SUCCESS) });
    expect(a.bytes.slice(64, 164)).toEqual(b.bytes.slice(1000, 1100));
    write(a, b, 5, 0, 4090, 8);
    expect(await pollStatuses(a.sendCq, 1)).toEqual([[5, name(WcStatus.REM_ACCESS_ERR)]]);
  });

  const [context] = openTwo();
  const { device, capabilities } = context;
  context.close();
  describe('updates by the owner', () => updates(suiteOver({ open: openTwo }, device, capabilities)));
}
