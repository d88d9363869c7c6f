/**
 * The threads that keep the control memory of ranks on several hosts, here of several "ranks" in one process: over real
 * connections, also with those who should not be there.
 */
import { randomBytes } from 'node:crypto';
import { connect as connectPlainly, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type Control,
  controlBytes,
  declareFailed,
  FailKind,
  formatControl,
  Header,
  RankState,
  Slot,
  viewControl,
} from '../../src/job/control-region.ts';
import type { ControlWorkerData, News, Order } from '../../src/start/control-worker.ts';
import { clientOptions } from '../../src/start/secure.ts';

const PROGRAM = new URL('../../dist/start/control-worker.js', import.meta.url);
const ended: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

/** Waits for what must come; the test's own deadline ends a wait in vain. */
async function until(what: () => boolean): Promise<void> {
  while (!what()) await sleep(5);
}

class Rank {
  readonly control: Control;
  readonly worker: Worker;
  readonly flag = new SharedArrayBuffer(4);
  readonly #rank: number;
  readonly #news: News[] = [];

  constructor(rank: number, size: number, secret: string, silenceMs = 10_000) {
    const buffer = new SharedArrayBuffer(controlBytes(size, { rank }));
    this.#rank = rank;
    this.control = viewControl(buffer, size, { rank });
    formatControl(this.control);
    const workerData: ControlWorkerData = { buffer, flag: this.flag, rank, size, secret, silenceMs };
    this.worker = new Worker(PROGRAM, { workerData });
    this.worker.on('message', (news: News) => this.#news.push(news));
    ended.push(() => this.worker.terminate());
  }

  async news(): Promise<News> {
    await until(() => this.#news.length > 0);
    return this.#news.shift()!;
  }

  order(order: Order): void {
    this.worker.postMessage(order);
  }

  /** What the rank itself writes. */
  setState(state: number): void {
    const { header, slots, slotWords } = this.control;
    Atomics.store(slots, this.#rank * slotWords + Slot.STATE, state);
    Atomics.add(header, state === RankState.JOINED ? Header.JOINED : Header.FINALIZED, 1);
  }

  publish(peer: number, number: number): void {
    Atomics.store(this.control.connections, this.control.connectionAt(this.#rank, peer), number);
  }

  connection(from: number): number {
    return Atomics.load(this.control.connections, this.control.connectionAt(from, this.#rank));
  }

  stateOf(rank: number): number {
    return Atomics.load(this.control.slots, rank * this.control.slotWords + Slot.STATE);
  }

  get joined(): number {
    return Atomics.load(this.control.header, Header.JOINED);
  }

  /** The rank that failed first, as far as this one knows. */
  get failed(): number | undefined {
    const failed = Atomics.load(this.control.header, Header.FAILED);
    return failed === 0 ? undefined : failed - 1;
  }

  /** Leaves; resolves when it has said everything. */
  async leave(): Promise<void> {
    this.order('leave');
    await until(() => Atomics.load(new Int32Array(this.flag), 0) === 1);
  }
}

interface Job {
  readonly ranks: Rank[];
  readonly port: number;
  readonly secret: string;
  readonly silenceMs?: number | undefined;
}

async function startHub(size: number, silenceMs?: number): Promise<Job> {
  const secret = randomBytes(16).toString('hex');
  const hub = new Rank(0, size, secret, silenceMs);
  const { port, failure } = await hub.news();
  expect(failure).toBeUndefined();
  return { ranks: [hub], port: port!, secret, silenceMs };
}

async function addMember({ ranks, port, secret, silenceMs }: Job, rank: number): Promise<void> {
  const member = new Rank(rank, ranks[0].control.size, secret, silenceMs);
  ranks[rank] = member;
  member.order({ hub: { hosts: ['127.0.0.1'], port } });
  expect(await member.news()).toEqual({ joined: true });
}

/** All ranks are connected, and have joined. */
async function startJob(size: number): Promise<Job> {
  const job = await startHub(size);
  for (let rank = 1; rank < size; rank++) await addMember(job, rank);
  for (const rank of job.ranks) rank.setState(RankState.JOINED);
  await until(() => job.ranks.every(({ joined }) => joined === size));
  return job;
}

/** A connection that knows the secret and says what the test likes. */
async function intruder({ port, secret }: Job, ...lines: string[]): Promise<TLSSocket> {
  const socket = connect(clientOptions('127.0.0.1', port, secret));
  ended.push(() => socket.destroy());
  socket.on('error', () => {}).resume();
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  for (const line of lines) socket.write(`${line}\n`);
  return socket;
}

const gone = (socket: Socket): Promise<void> => until(() => socket.closed);

describe('the workers of a job on several hosts', () => {
  test('bring every rank and every queue pair number to those whom it concerns', async () => {
    const { ranks } = await startJob(4);
    for (const [from, rank] of ranks.entries()) {
      for (let to = 0; to < 4; to++) if (to !== from) rank.publish(to, 2 * (100 * from + to));
    }
    await sleep(20);
    for (const [from, rank] of ranks.entries()) {
      for (let to = 0; to < 4; to++) if (to !== from) rank.publish(to, 2 * (100 * from + to) + 1);
    }
    await until(() =>
      ranks.every((rank, to) =>
        ranks.every((_, from) => from === to || rank.connection(from) === 2 * (100 * from + to) + 1),
      ),
    );
    for (const rank of ranks) expect(rank.failed).toBeUndefined();
  });

  test('say why a member cannot reach rank 0', async () => {
    const job = await startHub(2);
    const { port } = job;
    await job.ranks[0].worker.terminate();
    const member = new Rank(1, 2, job.secret);
    member.order({ hub: { hosts: ['127.0.0.1', 'localhost'], port } });
    const { failure } = await member.news();
    expect(failure).toContain(`127.0.0.1:${port} (`);
    expect(failure).toMatch(/localhost:\d+ \(.*ECONNREFUSED/);
    expect(member.failed).toBeUndefined();
  });

  test('let a member fail that has another secret, and tell it nothing', async () => {
    const job = await startHub(2);
    const member = new Rank(1, 2, 'a secret of another job');
    member.order({ hub: { hosts: ['127.0.0.1'], port: job.port } });
    const { failure, joined } = await member.news();
    expect(joined).toBeUndefined();
    expect(failure).toContain(`127.0.0.1:${job.port} (`);
    await addMember(job, 1);
    expect(job.ranks[0].failed).toBeUndefined();
  });

  test('tell all of a rank whose process has ended', async () => {
    const { ranks } = await startJob(3);
    await ranks[1].worker.terminate();
    await until(() => ranks[0].failed === 1 && ranks[2].failed === 1);
  });

  test('tell all of the end of rank 0', async () => {
    const { ranks } = await startJob(3);
    await ranks[0].worker.terminate();
    await until(() => ranks[1].failed === 0 && ranks[2].failed === 0);
  });

  test('tell all, and the rank itself, that one has been given up by another', async () => {
    const { ranks } = await startJob(4);
    declareFailed(ranks[3].control, 2, FailKind.UNREACHABLE, 3);
    const { slotWords } = ranks[3].control;
    await until(() => ranks.every(({ failed }) => failed === 2));
    for (const { control } of ranks) {
      expect(Atomics.load(control.slots, 2 * slotWords + Slot.FAIL_KIND)).toBe(FailKind.UNREACHABLE);
      expect(Atomics.load(control.slots, 2 * slotWords + Slot.FAIL_VALUE)).toBe(3);
    }
  });

  test('find no failure when all leave in agreement, rank 0 first', async () => {
    const { ranks } = await startJob(3);
    for (const rank of ranks) {
      rank.setState(RankState.FINALIZED);
      await rank.leave();
      expect(rank.failed).toBeUndefined();
    }
    await until(() => ranks[2].stateOf(1) === RankState.FINALIZED && ranks[2].stateOf(0) === RankState.FINALIZED);
    expect(ranks[2].failed).toBeUndefined();
  });

  test('go on when rank 0 has left: of one that dies while the others finalize, they learn', async () => {
    const { ranks } = await startJob(3);
    ranks[0].setState(RankState.FINALIZED);
    await ranks[0].leave();
    await ranks[1].worker.terminate();
    await until(() => ranks[2].failed === 1);
  });

  test('tell of a rank that leaves without the others', async () => {
    const { ranks } = await startJob(3);
    await ranks[2].leave();
    await until(() => ranks[0].failed === 2 && ranks[1].failed === 2);
  });

  test('take a rank that says nothing any more for failed', async () => {
    const job = await startHub(3, 3000);
    await addMember(job, 1);
    const silent = await intruder(job, '{"hello":2}', '{"from":2,"state":1,"pid":1}');
    await until(() => job.ranks[1].stateOf(2) === RankState.JOINED);
    await until(() => job.ranks[0].failed === 2 && job.ranks[1].failed === 2);
    await gone(silent);
  });

  test('are not disturbed by strangers, however many, and do not keep them', async () => {
    const job = await startHub(2);
    const strangers = Array.from({ length: 400 }, (_, i) => {
      const socket = connectPlainly(job.port, '127.0.0.1');
      socket.on('error', () => {}).resume();
      if (i % 2 === 0) socket.write(`GET / HTTP/1.1\r\n${'x'.repeat(i * 100)}\n{"hello":1}\n`);
      return socket;
    });
    ended.push(() => strangers.forEach((socket) => void socket.destroy()));
    await addMember(job, 1);
    // Half of them say nothing at all, and are the ones that could stay.
    await until(() => strangers.filter(({ closed }) => !closed).length <= 130);
    for (const rank of job.ranks) rank.setState(RankState.JOINED);
    await until(() => job.ranks.every(({ joined }) => joined === 2));
    for (const { failed } of job.ranks) expect(failed).toBeUndefined();
  });

  test('end a connection that knows the secret and is no rank, or one that is there already', async () => {
    const job = await startJob(3);
    const lines = [
      'garbage',
      '[]',
      '{}',
      '{"hello":0}',
      '{"hello":3}',
      '{"hello":"1"}',
      '{"hello":1}',
      'x'.repeat(100_000),
    ];
    for (const line of lines) await gone(await intruder(job, line));
    job.ranks[1].publish(2, 42);
    await until(() => job.ranks[2].connection(1) === 42);
    for (const { failed } of job.ranks) expect(failed).toBeUndefined();
  });
});

describe('joining a job on several hosts', () => {
  const load = () =>
    import(/* @vite-ignore */ new URL('../../dist/start/distributed.js', import.meta.url).href) as Promise<
      typeof import('../../src/start/distributed.ts')
    >;
  const HOSTS = ['127.0.0.1'];

  test('is an error of init, with what was tried and what to do, where rank 0 cannot be reached', async () => {
    const { DistributedControl } = await load();
    const hub = new DistributedControl(0, 2);
    const { port, secret } = await hub.listen(HOSTS);
    hub.close();
    const member = new DistributedControl(1, 2);
    ended.push(() => member.close());
    const patience = { signal: new AbortController().signal };
    await expect(member.join({ hosts: ['127.0.0.1'], port, secret }, patience)).rejects.toMatchObject({
      code: 'ERR_COMM',
      message: expect.stringMatching(/^init: rank 1 cannot connect to rank 0 at 127\.0\.0\.1:\d+ \(.*; firewalls must/),
    });
  });

  test("ends with the caller's patience", async () => {
    const { DistributedControl } = await load();
    const member = new DistributedControl(1, 2);
    ended.push(() => member.close());
    const controller = new AbortController();
    const joining = member.join({ hosts: ['192.0.2.1'], port: 9, secret: 'x' }, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(joining).rejects.toThrow('enough');
  });

  test('takes the addresses that the provider says first', async () => {
    const { DistributedControl } = await load();
    const hub = new DistributedControl(0, 2);
    ended.push(() => hub.close());
    const { hosts } = await hub.listen(['192.0.2.7']);
    expect(hosts[0]).toBe('192.0.2.7');
    expect(hosts.at(-1)).toBe('127.0.0.1');
    expect(hosts.filter((host) => /^fe80|^169\.254/.test(host))).toEqual([]);
  });
});
