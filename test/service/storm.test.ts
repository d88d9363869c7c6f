/**
 * Members of a service that are killed at random and started again, while all of them do all calls: nobody hangs, no
 * call that was over is lost, no lock stays held, and each lock of a dead member is told of once.
 * `ONESIDED_TEST_STORM=S` lets it last S seconds.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { Service } from '../../src/service/service.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';

const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/service-storm.js', import.meta.url));
const SECONDS = Number(process.env['ONESIDED_TEST_STORM'] ?? 4);
const MEMBERS = 4;
/** Between two kills, on average. */
const KILL_MS = 200;

class Storm {
  readonly lines: string[] = [];
  readonly running = new Set<ChildProcess>();
  readonly #name: string;
  readonly #ends: Promise<void>[] = [];
  readonly failures: string[] = [];
  kills = 0;

  constructor(name: string) {
    this.#name = name;
  }

  start(seed: number): void {
    const child = spawn(process.execPath, [PROGRAM, this.#name, String(seed)], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.running.add(child);
    // One that was killed reads nothing.
    child.stdin.on('error', () => {});
    let out = '';
    let complaint = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text));
    const ended = new Promise<void>((resolve) => {
      child.on('close', (code, signal) => {
        this.running.delete(child);
        // What was not written to its end was not said.
        this.lines.push(...out.split('\n').slice(0, -1));
        if (signal !== 'SIGKILL' && code !== 0) this.failures.push(`exit code ${code}: ${complaint}`);
        resolve();
      });
    });
    this.#ends.push(ended);
  }

  async stop(): Promise<void> {
    for (const child of this.running) child.stdin!.end('stop\n');
    await Promise.all(this.#ends);
  }

  said(what: string): string[] {
    return this.lines.filter((line) => line.startsWith(`${what} `)).map((line) => line.slice(what.length + 1));
  }

  count(line: string): number {
    return this.lines.filter((other) => other === line).length;
  }
}

describe.skipIf(loadNative() === undefined)('services', () => {
  const name = `test-${randomUUID()}`;
  const storm = new Storm(name);
  afterAll(() => {
    for (const child of storm.running) child.kill('SIGKILL');
  });

  it('go on while members are killed, lose nothing that was done, and keep no lock', async () => {
    const random = randomBelow(seedOfRun());
    // Keeps the service while all others are dead.
    const service = await Service.join(name);
    const told = { join: 0, leave: 0, death: 0 };
    for (const event of ['join', 'leave', 'death'] as const) service.on(event, () => told[event]++);
    for (let i = 0; i < MEMBERS; i++) storm.start(random(2 ** 24));
    const end = performance.now() + 1000 * SECONDS;
    while (performance.now() < end) {
      await sleep(2 * KILL_MS * (random(1000) / 1000));
      const victims = [...storm.running];
      const victim = victims[random(victims.length)];
      storm.running.delete(victim);
      victim.kill('SIGKILL');
      storm.kills++;
      storm.start(random(2 ** 24));
    }
    await storm.stop();
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

    const map = await service.map<string | number>('map', { bytes: 8 << 20 });
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
    const lost = storm.said('p').filter((id) => !popped.includes(id));
    expect(lost.length).toBeLessThanOrEqual(storm.kills);

    const keeping = await service.queue('keeping', Int32Array, 64, { length: 2 });
    const rest: string[] = [];
    keeping.close();
    for (let found = await keeping.take(); found !== undefined; found = await keeping.take()) {
      rest.push(`${found.entry[0]}.${found.entry[1]}`);
      found.done();
    }
    expect(new Set(rest).size).toBe(rest.length);
    const done = storm.said('D');
    // Given again only where its taker had not said that it was done: a kill can come between.
    const twice = done.length - new Set(done).size + rest.filter((id) => done.includes(id)).length;
    expect(twice).toBeLessThanOrEqual(storm.kills);
    const there = new Set([...done, ...rest, ...storm.said('O')]);
    expect(storm.said('P').filter((id) => !there.has(id))).toEqual([]);
    // Of those that were taken and not done, the taker was killed behind `done` and before its line.
    const taken = storm.said('O').filter((id) => !done.includes(id) && !rest.includes(id));
    expect(new Set(taken).size).toBeLessThanOrEqual(storm.kills);
    expect(service.members()).toEqual([{ place: service.place, pid: process.pid }]);
    // Those that were told to stop are the only ones that leave; some are killed before they have joined.
    expect(told.leave).toBe(MEMBERS);
    expect(told.death).toBeLessThanOrEqual(storm.kills);
    expect(told.join).toBe(told.leave + told.death);
    await service.leave();
  });
});
