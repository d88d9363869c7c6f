/**
 * What can be shown of the provider of real devices without one: which is chosen and why not, and what becomes of
 * everything when it fails. On a device: test/rdma.
 */
import { openSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { checkSides } from '../../src/datatype/layout.ts';
import { Origins } from '../../src/job/origins.ts';
import type { Native, QpChange, QpInit, RdmaDevice, RdmaPort } from '../../src/native.ts';
import { hostAt } from '../../src/providers/rdma-core/addresses.ts';
import { RdmaCoreContext } from '../../src/providers/rdma-core/rdma-context.ts';
import { chooseEndpoint } from '../../src/providers/rdma-core/rdma-devices.ts';
import { regionsBy } from '../../src/transfer/requests/regions.ts';
import { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import type { CompletionQueue } from '../../src/verbs/completion-queue.ts';
import { Access } from '../../src/verbs/memory.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { WrField } from '../../src/verbs/work-request-ring.ts';

const LINK_LOCAL = 'fe80:0000:0000:0000:0abc:00ff:fe00:0001';
const IPV4 = '0000:0000:0000:0000:0000:ffff:0a09:0001';

function port(changes: Partial<RdmaPort> = {}): RdmaPort {
  const gids = [LINK_LOCAL, IPV4].map((gid, index) => ({ index, gid, type: 'RoCE v2' }));
  return {
    ...{ port: 1, state: 'ACTIVE', linkLayer: 'Ethernet', lid: 0, activeMtu: 1024, maxMessageBytes: 2 ** 23, gids },
    ...changes,
  };
}

function device(name: string, changes: Partial<RdmaDevice> = {}): RdmaDevice {
  return { name, file: `/dev/infiniband/${name}`, transport: 'InfiniBand', ports: [port()], ...changes };
}

test('a GID that stands for an IPv4 address says where its host is likely reached, and no other does', () => {
  expect(hostAt(IPV4)).toBe('10.9.0.1');
  expect(hostAt(LINK_LOCAL)).toBeUndefined();
});

describe('the device that is chosen', () => {
  const choose = (devices: RdmaDevice[], choice = {}) => chooseEndpoint(choice, { devices });

  test('is the first that can be used, with its routed address', () => {
    const refused = device('first', { refused: 'Permission denied', refusedCode: 'EACCES', ports: [] });
    const down = device('second', { ports: [port({ state: 'DOWN' })] });
    expect(choose([refused, down, device('third')])).toEqual({
      device: 'third',
      port: 1,
      gidIndex: 1,
      transport: 'InfiniBand',
    });
    expect(choose([device('third', { transport: 'iWARP' })], { gidIndex: 0 })).toEqual({
      device: 'third',
      port: 1,
      gidIndex: 0,
      transport: 'iWARP',
    });
  });

  test.each<[string, RdmaDevice, object, RegExp]>([
    [
      'may not be opened',
      device('a', { refused: 'Permission denied', refusedCode: 'EACCES', ports: [] }),
      {},
      /cannot open a: this user needs permission to read and write \/dev\/infiniband\/a/,
    ],
    [
      'has no file',
      device('a', { refused: 'No such file', refusedCode: 'ENOENT', ports: [] }),
      {},
      /\/dev\/infiniband\/a does not exist.*--device \/dev\/infiniband\/a/,
    ],
    [
      'is not let in',
      device('a', { refused: 'Not permitted', refusedCode: 'EPERM', ports: [] }),
      {},
      /container.*--device/,
    ],
    [
      'cannot be opened otherwise',
      device('a', { refused: 'Input/output error', refusedCode: 'EIO', ports: [] }),
      {},
      /\/dev\/infiniband\/a: Input\/output error/,
    ],
    [
      'is down',
      device('a', { ports: [port({ state: 'DOWN' })] }),
      {},
      /port 1 of a is DOWN \(check its cable, and set its interface up: ip link set … up\)/,
    ],
    [
      'has no GID',
      device('a', { ports: [port({ gids: [] })] }),
      {},
      /port 1 of a has no GID \(assign an address to its interface: ip addr add …\)/,
    ],
    ['has not the GID asked for', device('a'), { gidIndex: 7 }, /port 1 of a has no GID 7/],
    [
      'has a GID that no interface here has',
      device('a', { ports: [port({ gids: port().gids.slice(0, 1) })] }),
      {},
      /port 1 of a has no usable GID.*ONESIDED_DEVICE=a:1:0/,
    ],
    ['has another name', device('a'), { device: 'b' }, /no device is named b; this machine has a/],
    ['has no such port', device('a'), { port: 3 }, /no device has a port 3/],
  ])('is none where the only one %s, and the error says what to do', (_, one, choice, message) => {
    const error = { code: 'ERR_PROVIDER_UNAVAILABLE', message: expect.stringMatching(message) };
    expect(() => choose([one], choice)).toThrow(expect.objectContaining(error));
  });
});

interface Posted {
  readonly cq: number;
  readonly owner: number;
  readonly count: number;
  readonly qpNumber: number;
  readonly signalled: boolean;
}

/** A device that takes everything, completes what and as the test likes, and can fail. */
class Device {
  readonly left: Record<string, number> = {};
  readonly posted: Posted[] = [];
  readonly #completed: { readonly cq: number; readonly words: number[] }[] = [];
  readonly #sendCqs = new Map<number, number>();
  /** Asynchronous events: type, and what it is about. */
  readonly events: [number, number][] = [];
  failed = false;
  state = 'ACTIVE';
  mostRegions = Number.POSITIVE_INFINITY;
  regionsAtOnce = 0;
  #made = 0;

  #make(kind: string): number {
    this.left[kind] = (this.left[kind] ?? 0) + 1;
    return ++this.#made;
  }

  #giveBack(kind: string): void {
    if (this.failed) throw Object.assign(new Error('Input/output error (EIO)'), { code: 'EIO' });
    this.left[kind]--;
  }

  describe() {
    const most = {
      maxQp: 64,
      maxQpWr: 1024,
      maxSge: 8,
      maxCq: 64,
      maxCqe: 1100,
      maxMr: 64,
      maxMrSize: 2 ** 40,
      maxPd: 8,
    };
    const more = { maxSrq: 8, maxSrqWr: 1024, maxSrqSge: 8, maxQpInitRdAtom: 16, maxQpRdAtom: 16, atomics: 1 };
    const own = { gid: IPV4, lid: 0, mtu: 3, portState: 'ACTIVE', ethernet: true, maxMsgSize: 2 ** 23 };
    return { ...most, ...more, ...own };
  }

  /** Completes the oldest requests; of those that are not signalled, nobody hears but in an error. */
  complete(most = Number.POSITIVE_INFINITY, status = 0): void {
    for (const { cq, owner, count, qpNumber, signalled } of this.posted.splice(0, most)) {
      if (status === 0 && !signalled) continue;
      this.#completed.push({ cq, words: [owner, count, status, 0, 0, 0, 0, qpNumber] });
    }
  }

  portState = () => this.state;
  allocPd = () => this.#make('pd');
  deallocPd = () => this.#giveBack('pd');
  regMr = () => {
    if ((this.left['mr'] ?? 0) >= this.mostRegions)
      throw Object.assign(new Error('register (ENOMEM)'), { code: 'ENOMEM' });
    const number = this.#make('mr');
    this.regionsAtOnce = Math.max(this.regionsAtOnce, this.left['mr']);
    return [number, number, number];
  };
  deregMr = () => this.#giveBack('mr');
  createCq = (cqe: number) => [this.#make('cq'), cqe];
  destroyCq = () => this.#giveBack('cq');
  poller = (cq: number, words: Uint32Array) => () => {
    let n = 0;
    while (n < words[0]) {
      const at = this.#completed.findIndex((one) => one.cq === cq);
      if (at < 0) break;
      words.set(this.#completed.splice(at, 1)[0].words, 8 + 8 * n++);
    }
    words[1] = n;
    words[2] = 0;
  };
  asked: number[] = [];
  /** Completion queues that refuse to notify. */
  mute: number[] = [];
  reqNotifyCq = (cq: number) => {
    this.asked.push(cq);
    if (this.mute.includes(cq)) throw Object.assign(new Error('input/output error (EIO)'), { code: 'EIO' });
    return false;
  };
  createSrq = () => [this.#make('srq'), 1024, 1];
  armSrq = () => {};
  destroySrq = () => this.#giveBack('srq');
  createQp = ({ sendCq }: QpInit) => {
    const handle = this.#make('qp');
    this.#sendCqs.set(handle, sendCq);
    return [handle, 1000 + handle];
  };
  destroyQp = () => this.#giveBack('qp');
  readonly #states = new Map<number, number>();
  modifyQp = (qp: number, { state }: QpChange) => void this.#states.set(qp, state);
  queryQp = (qp: number) => this.#states.get(qp) ?? 0;
  sender = (qp: number, ring: Uint8Array, slotBytes: number, words: Uint32Array) => () => {
    const cq = this.#sendCqs.get(qp)!;
    const [owner, head, count] = words;
    const u32 = new Uint32Array(ring.buffer, ring.byteOffset, ring.length / 4);
    for (let i = 0; i < count; i++) {
      const slot = ((head + i) % (ring.length / slotBytes)) * (slotBytes / 4);
      const signalled = (u32[slot + WrField.FLAGS] & SendFlag.SIGNALED) !== 0;
      this.posted.push({ cq, owner, count: head + i, qpNumber: 1000 + qp, signalled });
    }
    words[3] = count;
    words[4] = 0;
  };
  receiver = (_: boolean, __: number, ___: Float64Array, words: Uint32Array) => () => {
    words[3] = 0;
  };
  asyncEvent = () => this.events.shift();
  takeEvents = () => (this.events.length > 0 ? 65536 : 0);
  waits = 0;
  wait = () => {
    this.waits++;
    return this.takeEvents();
  };
  beginWait = () => 0;
  interrupt = () => {};
  close = () => {};
}

const RETRY_EXC_ERR = 12;
const REM_ACCESS_ERR = 10;
const EVENT = { CQ_ERR: 0, DEVICE_FATAL: 8, SRQ_ERR: 14, PORT_ERR: 10 };
const RANKS = 16;

/** A context on such a device, and the requests of a window of 16 ranks. */
function open(transport?: string) {
  const device = new Device();
  const native = {
    RdmaContext: new Proxy(class {}, { construct: () => device }),
    pageBytes: 4096,
    addressOf: () => 4096,
    memoryCreate: () => openSync('/dev/null', 'r'),
    memoryResize: () => {},
    memoryMap: (_: number, __: number, bytes: number) => new ArrayBuffer(bytes),
    memoryUnmap: () => {},
  } as unknown as Native;
  const ranks = Array.from({ length: RANKS }, (_, rank) => rank);
  const peers = ranks.map(() => ({ gid: IPV4, lid: 0, mtu: 3 }));
  const context = new RdmaCoreContext(
    native,
    { device: 'fake0', port: 1, gidIndex: 1, ...(transport && { transport }) },
    0,
    peers,
    undefined,
  );
  const pd = context.allocPd();
  const origins = new Origins(context, pd);
  /** A window of some ranks, connected. */
  const window = (size: number): RequestTransfer => {
    const requests = new RequestTransfer(context, pd, origins, size, true);
    const all = ranks.slice(0, size);
    requests.connect(
      all,
      all.map((rank) => 500 + rank),
      regionsBy(() => ({ rkey: 1, address: 4096 })),
    );
    return requests;
  };
  return { device, context, pd, origins, window, transfer: window(RANKS) };
}

/** A put of all of `bytes` to a rank. */
function put(transfer: RequestTransfer, bytes: Uint8Array, rank = 1): void {
  const { from, to } = checkSides('put', bytes, undefined);
  transfer.put(bytes, from, rank, 0, to, false);
}

const failure = (message: RegExp) =>
  expect.objectContaining({ code: 'ERR_VERBS', message: expect.stringMatching(message) });

test('what is complete is in memory, but for iWARP', () => {
  const claims = (transport?: string): boolean => open(transport).context.capabilities.completionImpliesPlacement;
  expect([claims(), claims('InfiniBand'), claims('iWARP')]).toEqual([true, true, false]);
});

describe('a device that fails', () => {
  test('is an error of every wait, at once and from then on, and is given back without another one', () => {
    const { device, context, pd, origins, transfer } = open();
    const other = new RequestTransfer(context, pd, origins, 1, true);
    put(transfer, new Uint8Array(8));
    const flush = transfer.flush();
    expect(flush.advance()).toBe(false);
    device.failed = true;
    device.events.push([EVENT.DEVICE_FATAL, 0]);
    // Whoever waits goes to sleep sooner or later, and does not sleep.
    context.parking.sleepSync(context.parking.arm(), 60_000);
    const fatal = failure(/device fake0 has failed \(DEVICE_FATAL\).*dmesg/);
    for (let i = 0; i < 2; i++) expect(() => flush.advance()).toThrow(fatal);
    expect(() => other.poll()).toThrow(fatal);
    expect(() => new RequestTransfer(context, pd, origins, 1, true)).toThrow(fatal);
    expect(context.trouble()).toMatch(/DEVICE_FATAL/);
    expect(context.pollAsyncEvent()).toEqual({ type: 'DEVICE_FATAL' });
    transfer.close();
    other.close();
    context.close();
  });

  test('wakes who awaits', async () => {
    const { device, context, transfer } = open();
    put(transfer, new Uint8Array(8));
    const slept = context.parking.sleep(context.parking.arm(), 60_000);
    device.events.push([EVENT.DEVICE_FATAL, 0]);
    context.parking.woken();
    await slept;
    expect(() => transfer.flush().advance()).toThrow(failure(/DEVICE_FATAL/));
  });

  test('fails with a shared receive queue: what was to come by it never will', () => {
    const { device, context, transfer } = open();
    const [srq] = context.srqs.keys();
    device.events.push([EVENT.SRQ_ERR, srq]);
    context.parking.sleepSync(context.parking.arm(), 60_000);
    expect(() => transfer.poll()).toThrow(failure(/shared receive queue of device fake0 has failed \(SRQ_ERR\)/));
  });

  test('does not fail with one completion queue, which alone refuses', () => {
    const { device, context, transfer } = open();
    const lone = context.createCq(8) as CompletionQueue & { number: number };
    device.events.push([EVENT.CQ_ERR, lone.number], [EVENT.PORT_ERR, 1]);
    context.parking.sleepSync(context.parking.arm(), 60_000);
    expect(() => lone.poll(1)).toThrow(failure(/completion queue of 8 entries was overrun/));
    transfer.poll();
    // They are fetched, or every sleep would end at once.
    expect(device.events).toEqual([]);
  });
});

describe('a completion queue of a window that fails', () => {
  test.each([
    ['requests', 0],
    ['notifications', 1],
  ])('that of its %s is told by every wait of the window, and by nothing else', (what, which) => {
    const { device, context, transfer, window } = open();
    const failing = [...context.cqs.keys()][which];
    const other = window(2);
    device.events.push([EVENT.CQ_ERR, failing]);
    context.parking.sleepSync(context.parking.arm(), 60_000);
    const words = failure(
      new RegExp(`^the ${what} of a window are lost: the completion queue of \\d+ entries was overrun`),
    );
    // These make no promise about what is under way.
    transfer.collect();
    transfer.notifications.take();
    put(transfer, new Uint8Array(8));
    for (let i = 0; i < 2; i++) {
      expect(() => transfer.poll()).toThrow(words);
      expect(() => transfer.flush().advance()).toThrow(words);
      other.poll();
    }
    transfer.close();
    other.close();
    context.close();
  });

  test('is no error of a rank that goes to sleep for something else, where it cannot be asked to ring', () => {
    const { device, context, transfer, window } = open();
    const other = window(2);
    other.poll();
    transfer.poll();
    device.mute = [...context.cqs.keys()].slice(0, 1);
    // It does not sleep: who waits for that queue looks again.
    const before = device.waits;
    context.parking.sleepSync(context.parking.arm(), 60_000);
    expect(device.waits).toBe(before);
    other.poll();
    const words = failure(/^the requests of a window are lost: request notification.*EIO/);
    for (let i = 0; i < 2; i++) expect(() => transfer.poll()).toThrow(words);
    transfer.close();
    other.close();
    context.close();
  });
});

test('who has armed does not sleep over a completion that another look has fetched', () => {
  const { device, context, transfer } = open();
  put(transfer, new Uint8Array(8));
  const token = context.parking.arm();
  device.complete();
  transfer.poll();
  context.parking.sleepSync(token, 60_000);
  expect(device.waits).toBe(0);
  context.parking.sleepSync(context.parking.arm(), 60_000);
  expect(device.waits).toBe(1);
});

test('a completion queue is asked to ring when somebody goes to sleep, or sleeps already; not before', async () => {
  const { device, context } = open();
  const queue = context.createCq(8) as CompletionQueue & { number: number };
  const asked = (): number => device.asked.filter((cq) => cq === queue.number).length;
  queue.reqNotify();
  expect(asked()).toBe(0);
  context.parking.sleepSync(context.parking.arm(), 60_000);
  expect(asked()).toBe(1);
  const slept = context.parking.sleep(context.parking.arm(), 60_000);
  expect(asked()).toBe(1);
  queue.reqNotify();
  expect(asked()).toBe(2);
  context.close();
  await slept;
});

describe('a connection that is lost', () => {
  test('is an error of every wait from then on, not of put and get, and says what is known', () => {
    const { device, transfer } = open();
    const bytes = new Uint8Array(8);
    put(transfer, bytes, 3);
    put(transfer, bytes, 4);
    device.complete(1, RETRY_EXC_ERR);
    put(transfer, bytes, 3);
    const lost =
      /^the connection to rank 3 was lost: a request completed with IBV_WC_RETRY_EXC_ERR \(the rank does not respond\)$/;
    for (let i = 0; i < 2; i++) {
      expect(() => transfer.flush(4).advance()).toThrow(failure(lost));
      put(transfer, bytes, 4);
    }
    expect(() => transfer.flush(3).advance()).toThrow(expect.objectContaining({ rank: 3, unreachable: true }));
    device.complete();
    expect(() => transfer.poll()).toThrow(failure(lost));
    transfer.close();
  });

  test('is told with the state of the port here', () => {
    const { device, transfer } = open();
    put(transfer, new Uint8Array(8));
    device.state = 'DOWN';
    device.complete(1, 2);
    const lost = failure(/LOC_QP_OP_ERR \(port 1 of fake0 is DOWN\)/);
    expect(() => transfer.poll()).toThrow(lost);
    expect(() => transfer.poll()).toThrow(expect.objectContaining({ unreachable: true }));
  });

  test('by a key that was revoked says so, and the rank is not taken for gone', () => {
    const { device, transfer } = open();
    put(transfer, new Uint8Array(8));
    device.complete(1, REM_ACCESS_ERR);
    expect(() => transfer.poll()).toThrow(failure(/REM_ACCESS_ERR \(the rank denies access: this memory is not/));
    expect(() => transfer.poll()).toThrow(expect.objectContaining({ unreachable: false }));
  });
});

describe('what a window takes of a device', () => {
  test('is bounded: a completion queue of what it has, and no more requests than that', () => {
    const { device, transfer } = open();
    const bytes = new Uint8Array(8);
    for (let i = 0; i < 200; i++) for (let rank = 0; rank < RANKS; rank++) put(transfer, bytes, rank);
    expect(device.posted.length).toBe(1100);
    let rounds = 0;
    for (const flush = transfer.flush(); !flush.advance(); rounds++) {
      expect(device.posted.length).toBeLessThanOrEqual(1100);
      device.complete();
    }
    expect(rounds).toBeGreaterThan(1);
  });

  test('is bounded in registered memory: origins wait for each other', () => {
    const { device, transfer } = open();
    const origins = Array.from({ length: 300 }, () => new Uint8Array(4096));
    for (const [i, origin] of origins.entries()) put(transfer, origin, i % RANKS);
    expect(device.posted.length).toBe(64);
    let all = 0;
    for (const flush = transfer.flush(); !flush.advance(); device.complete()) all += device.posted.length;
    expect(all).toBe(300);
    expect(device.regionsAtOnce).toBe(64);
    // One that is known costs no registration.
    for (let i = 0; i < 10; i++) put(transfer, origins[299]);
    expect(device.posted.length).toBe(10);
    transfer.close();
    expect(device.left).toEqual({ pd: 1, mr: 0, cq: 0, srq: 0, qp: 0 });
  });

  test('makes way when the device has no room for another region, and fails only if nothing can be given up', () => {
    const { device, transfer } = open();
    device.mostRegions = 3;
    const origins = Array.from({ length: 10 }, () => new Uint8Array(4096));
    for (const origin of origins) put(transfer, origin);
    expect(device.posted.length).toBe(3);
    let all = 0;
    for (const flush = transfer.flush(); !flush.advance(); device.complete()) all += device.posted.length;
    expect(all).toBe(10);
    device.mostRegions = 0;
    for (const origin of origins) expect(() => put(transfer, origin)).toThrow(failure(/ENOMEM/));
    expect(transfer.flush().advance()).toBe(true);
    transfer.close();
  });

  test('is bounded in bytes that stay registered', () => {
    const { device, transfer } = open();
    const large = Array.from({ length: 3 }, () => new Uint8Array(100 * 2 ** 20));
    for (const origin of large) {
      put(transfer, origin);
      device.complete();
    }
    expect(device.regionsAtOnce).toBe(2);
    for (const flush = transfer.flush(); !flush.advance(); device.complete());
    expect(device.left['mr']).toBe(1);
  });

  test('is registered once for all windows, as long as one of them keeps it', () => {
    const { device, origins, window, transfer } = open();
    const other = window(RANKS);
    const bytes = new Uint8Array(4096);
    put(transfer, bytes);
    put(other, bytes);
    expect(device.left['mr']).toBe(1);
    // What is under way still reads it.
    origins.forget(bytes.buffer);
    expect(device.left['mr']).toBe(1);
    device.complete();
    for (const requests of [transfer, other]) requests.poll();
    transfer.close();
    expect(device.left['mr']).toBe(1);
    origins.forget(bytes.buffer);
    expect(device.left['mr']).toBe(0);
    other.close();
  });

  test('is nothing for an origin in the window itself', () => {
    const { device, context, pd, transfer } = open();
    const memory = context.allocateMemory(4096);
    const region = pd.registerMemory(memory, 0, 4096, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    transfer.keepPart(memory.buffer, region);
    put(transfer, new Uint8Array(memory.buffer, 0, 2048));
    put(transfer, new Uint8Array(4096));
    expect(device.left['mr']).toBe(2);
    device.complete();
    transfer.poll();
    transfer.close();
    expect(device.left['mr']).toBe(1);
  });

  test('is given back by 10,000 of them', () => {
    const { device, window, transfer } = open();
    const { left } = device;
    const before = { ...left, mr: 0 };
    const bytes = new Uint8Array(4096);
    for (let i = 0; i < 10_000; i++) {
      const other = window(2);
      put(other, bytes);
      device.complete();
      other.poll();
      other.close();
    }
    expect(left).toEqual(before);
    expect(device.regionsAtOnce).toBe(1);
    transfer.close();
  });

  test('is registered anew when an origin has grown', () => {
    const { device, transfer } = open();
    const buffer: ArrayBuffer & { resize(bytes: number): void } = Reflect.construct(ArrayBuffer, [
      4096,
      { maxByteLength: 65536 },
    ]);
    put(transfer, new Uint8Array(buffer));
    buffer.resize(8192);
    put(transfer, new Uint8Array(buffer));
    expect(device.posted.length).toBe(1);
    device.complete();
    for (const flush = transfer.flush(); !flush.advance(); device.complete());
    expect(device.left['mr']).toBe(1);
  });
});
