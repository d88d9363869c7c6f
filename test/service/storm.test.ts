/**
 * Members of a service, processes and threads, that are killed at random and started again, while all of them do all
 * calls: nobody hangs, no call that was over is lost, no lock stays held, and each lock of a dead member is told of
 * once. The gate has a storm of a minute, `npm run test:services` one of ten: `ONESIDED_TEST_STORM=S` seconds,
 * `ONESIDED_TEST_MEMBERS=N`.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { Service } from '../../src/service/service.ts';
import { listServices } from '../../src/service/service-list.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-storm.js', import.meta.url));
const SECONDS = Number(process.env['ONESIDED_TEST_STORM'] ?? 4);
const MEMBERS = Number(process.env['ONESIDED_TEST_MEMBERS'] ?? 4);
/** Between two kills, on average: each member about every three seconds, in short storms more often. */
const KILL_MS = SECONDS >= 60 ? 3000 / MEMBERS : 200;
/** Milliseconds between calls: what long storms say must have room. */
const PAUSE = SECONDS >= 60 ? 20 : 0;

/** What members say of calls that were over: each at least once. */
const CALLS = ['c', 'm', 'i', 'l', 'w', 'v', 'f', 's', 'p', 'P', 'O', 'D'];

/** Ends hangs. */
const DEADLINE = { timeout: 120_000 + 3000 * SECONDS };

interface Running {
  kill(): void;
  stop(): void;
}

class Storm {
  readonly running = new Set<Running>();
  readonly failures: string[] = [];
  kills = 0;
  readonly #name: string;
  readonly #ends: Promise<void>[] = [];
  /** How often each line without more was said, and what the others say, by their first letter. */
  readonly #counts = new Map<string, number>();
  readonly #said = new Map<string, string[]>();

  constructor(name: string) {
    this.#name = name;
  }

  start(seed: number): void {
    if (seed % 4 === 0) this.#startThread(seed);
    else this.#startProcess(seed);
  }

  #startProcess(seed: number): void {
    const args = [PROGRAM, this.#name, String(seed), String(PAUSE)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const running = { kill: () => void child.kill('SIGKILL'), stop: () => void child.stdin.end('stop\n') };
    this.running.add(running);
    // One that was killed reads nothing.
    child.stdin.on('error', () => {});
    let out = '';
    let complaint = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (out + text).split('\n');
      // What was not written to its end was not said.
      out = lines.pop()!;
      for (const line of lines) this.#hear(line);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    const ended = new Promise<void>((resolve) => {
      child.on('close', (code, signal) => {
        this.running.delete(running);
        if (signal !== 'SIGKILL' && code !== 0) this.failures.push(`exit code ${code}: ${complaint}`);
        resolve();
      });
    });
    this.#ends.push(ended);
  }

  #startThread(seed: number): void {
    const worker = new Worker(PROGRAM, { argv: [this.#name, String(seed), String(PAUSE)] });
    let isKilled = false;
    const kill = (): void => {
      isKilled = true;
      void worker.terminate();
    };
    const running = { kill, stop: () => worker.postMessage('stop') };
    this.running.add(running);
    worker.on('message', (line: string) => this.#hear(line));
    worker.on('error', (error) => this.failures.push(`thread: ${error}`));
    const ended = new Promise<void>((resolve) => {
      worker.on('exit', (code) => {
        this.running.delete(running);
        if (!isKilled && code !== 0) this.failures.push(`thread: exit code ${code}`);
        resolve();
      });
    });
    this.#ends.push(ended);
  }

  #hear(line: string): void {
    if (line.length === 1) this.#counts.set(line, this.count(line) + 1);
    else {
      const said = this.#said.get(line[0]);
      if (said === undefined) this.#said.set(line[0], [line.slice(2)]);
      else said.push(line.slice(2));
    }
  }

  async stop(): Promise<void> {
    for (const running of this.running) running.stop();
    await Promise.all(this.#ends);
  }

  said(what: string): string[] {
    return this.#said.get(what) ?? [];
  }

  count(line: string): number {
    return this.#counts.get(line) ?? 0;
  }

  /** Whether each of these was said. */
  hasSaid(lines: readonly string[]): boolean {
    return lines.every((line) => this.#counts.has(line) || this.#said.has(line));
  }
}

/** Bytes of the service's file. */
function memoryOf(name: string): number | undefined {
  return listServices(loadNative()!, 'test').find((service) => service.name === name)?.bytes;
}

function longest(storm: Storm): number {
  return storm.said('t').reduce((most, ms) => Math.max(most, Number(ms)), 0);
}

describe.skipIf(loadNative() === undefined)('services', () => {
  const name = `test-${randomUUID()}`;
  const storm = new Storm(name);
  afterAll(() => {
    for (const running of storm.running) running.kill();
  });

  it('go on while members are killed, lose nothing that was done, and keep no lock', DEADLINE, async () => {
    const random = randomBelow(seedOfRun());
    // Keeps the service while all others are dead.
    const service = await Service.join(name);
    const told = { join: 0, leave: 0, death: 0 };
    for (const event of ['join', 'leave', 'death'] as const) service.on(event, () => told[event]++);
    for (let i = 0; i < MEMBERS; i++) storm.start(random(2 ** 24));
    // One has made all that is shared. On a busy machine, members take longer to start than they live.
    while (storm.said('j').length === 0) await sleep(10);
    const end = performance.now() + 1000 * SECONDS;
    while (performance.now() < end || !storm.hasSaid(CALLS)) {
      await sleep(2 * KILL_MS * (random(1000) / 1000));
      const victims = [...storm.running];
      const victim = victims[random(victims.length)];
      storm.running.delete(victim);
      victim.kill();
      storm.kills++;
      storm.start(random(2 ** 24));
    }
    const bytes = memoryOf(name);
    await storm.stop();
    if (SECONDS >= 60) console.info(`${storm.kills} kills; the longest call took ${longest(storm)} ms`);
    expect(storm.failures).toEqual([]);
    expect(storm.said('!')).toEqual([]);

    // Each kill can have cut off one call behind its effect and before its line.
    const counted = (await service.counter('counter')).value;
    expect(counted).toBeGreaterThanOrEqual(storm.count('c'));
    expect(counted).toBeLessThanOrEqual(storm.count('c') + storm.kills);
    const mutex = await service.mutex('mutex');
    const last = mutex.lockSync();
    const abandoned = storm.said('x').length + (last.abandoned === undefined ? 0 : 1);
    last.release();
    expect(abandoned).toBeLessThanOrEqual(storm.kills);
    const raised = (await service.counter('left')).value;
    expect(raised).toBeGreaterThanOrEqual(storm.count('m'));
    expect(raised).toBeLessThanOrEqual(storm.count('m') + storm.kills);

    const map = await service.map<string | number>('map', { bytes: 64 << 20 });
    // It had room for all: some 70 bytes each.
    expect(map.statistics().evicted).toBe(0);
    expect(storm.said('s').filter((key) => map.get(key) !== key)).toEqual([]);
    const increments = map.get('number') as number;
    expect(increments).toBeGreaterThanOrEqual(storm.count('i'));
    expect(increments).toBeLessThanOrEqual(storm.count('i') + storm.kills);
    const limiter = await service.limiter('limiter', { rate: 1000, per: 1e9 });
    let left = 0;
    while (limiter.take().allowed) left++;
    expect(left + storm.count('l')).toBeLessThanOrEqual(1000);
    expect(left + storm.count('l') + storm.kills).toBeGreaterThanOrEqual(1000);

    const losing = await service.queue('losing', Int32Array, 64, { length: 2 });
    const popped = storm.said('o');
    for (let found = losing.tryPop(); found !== undefined; found = losing.tryPop())
      popped.push(`${found[0]}.${found[1]}`);
    expect(new Set(popped).size).toBe(popped.length);
    const got = new Set(popped);
    const lost = storm.said('p').filter((id) => !got.has(id));
    expect(lost.length).toBeLessThanOrEqual(storm.kills);

    const keeping = await service.queue<number[]>('keeping', { capacity: 64, longest: 40 });
    const rest: string[] = [];
    keeping.close();
    for (let found = await keeping.take(); found !== undefined; found = await keeping.take()) {
      rest.push(`${found.entry[0]}.${found.entry[1]}`);
      found.done();
    }
    expect(new Set(rest).size).toBe(rest.length);
    const done = storm.said('D');
    // Given again only where its taker had not said that it was done: a kill can come between.
    const over = new Set(done);
    const twice = done.length - over.size + rest.filter((id) => over.has(id)).length;
    expect(twice).toBeLessThanOrEqual(storm.kills);
    const there = new Set([...done, ...rest, ...storm.said('O')]);
    expect(storm.said('P').filter((id) => !there.has(id))).toEqual([]);
    // Of those that were taken and not done, the taker was killed behind `done` and before its line.
    const taken = storm.said('O').filter((id) => !over.has(id) && !rest.includes(id));
    expect(new Set(taken).size).toBeLessThanOrEqual(storm.kills);

    const numbers = await service.window('numbers', Int32Array, 16);
    const pair = numbers.sharedQuery(1);
    if (numbers.lockSync(1, Lock.EXCLUSIVE).abandoned === undefined) expect(pair[0]).toBe(pair[1]);
    numbers.unlockSync(1);
    expect(storm.said('y').length).toBeLessThanOrEqual(storm.kills);
    const sums = (await service.window('sums', Float64Array, 4096)).sharedQuery(2);
    for (const [line, least, most] of [
      ['w', numbers.sharedQuery(0)[3], numbers.sharedQuery(0)[3]],
      ['v', pair[0], pair[0]],
      ['f', Math.min(...sums), Math.max(...sums)],
    ] as const) {
      expect(least, line).toBeGreaterThanOrEqual(storm.count(line));
      expect(most, line).toBeLessThanOrEqual(storm.count(line) + storm.kills);
    }
    expect(memoryOf(name)).toBe(bytes);
    expect(service.members()).toEqual([{ place: service.place, pid: process.pid }]);
    // Those that were told to stop are the only ones that leave; some are killed before they have joined.
    expect(told.leave).toBe(MEMBERS);
    expect(told.death).toBeLessThanOrEqual(storm.kills);
    expect(told.join).toBe(told.leave + told.death);
    await service.leave();
  });
});
