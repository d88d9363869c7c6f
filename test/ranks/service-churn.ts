/**
 * Members come and go: `service-churn.js NAME SEED JOINS [PER_MINUTE]`. This process is a member all the time, starts
 * others, three at a time, each of which joins and leaves some times and then ends in one of all ways, and
 * joins and leaves itself. After each sixth of the joins it prints what it and the service hold, as a line of JSON.
 *
 * `service-churn.js NAME SEED member` is one of the others.
 */
import { spawn } from 'node:child_process';
import { fstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Op } from 'onesided';
import { Service } from 'onesided/service';

const [name, seed, joins, perMinute] = process.argv.slice(2) as [string, string, string, string | undefined];
/** Joins of one process, or of this one, before the next. */
const TURN = 8;
const AT_A_TIME = 3;
const PARTS = 6;

let state = Number(seed);
function below(n: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 8) % n;
}

/** Uses all that there is. Who leaves or ends may hold the mutex: others take it over. */
async function use(service: Service, releases = below(4) > 0): Promise<void> {
  (await service.counter('hits')).add();
  const map = await service.map<number>('map', { bytes: 1 << 20 });
  map.update(`key ${below(100)}`, (before) => (before ?? 0) + 1);
  const queue = await service.queue('queue', Int32Array, 16);
  queue.tryPush(Int32Array.of(below(100)));
  queue.tryPop();
  const win = await service.window('window', Float64Array, 64);
  win.accumulate(Float64Array.of(1), below(service.places), 0, Op.SUM);
  win.putNotify(Float64Array.of(1), service.place, 1);
  (await service.limiter('limiter', { rate: 1000, per: 1000 })).take('key');
  const held = await (await service.mutex('mutex')).lock();
  if (releases) held.release();
}

if (joins === 'member') {
  for (let i = 0; i < TURN; i++) {
    const service = await Service.join(name);
    await use(service);
    if (i < TURN - 1) await service.leave();
    // The last ends with the process: by itself, with an error, or killed.
    else if (below(3) === 0) process.kill(process.pid, 'SIGKILL');
    else process.exit(below(2));
  }
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const stays = await Service.join(name, { places: 32 });
stays.on('join', () => {});
await use(stays, true);

/** What this process has, and the service. */
async function holds(): Promise<void> {
  // Dead members are found by a look.
  await (await stays.mutex('mutex')).withLock(() => {});
  while (stays.members().length > 1) await sleep(10);
  // Finalizers run later.
  for (let i = 0; i < 3; i++) {
    collect();
    await sleep(20);
  }
  const fds = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [{ fd: Number(fd), to: readlinkSync(`/proc/self/fd/${fd}`) }];
    } catch {
      return [];
    }
  });
  const file = fds.find(({ to }) => to.includes('onesided-service'))!;
  const { size, blocks } = fstatSync(file.fd);
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage();
  const report = {
    done,
    fds: fds.length,
    threads: readdirSync('/proc/self/task').length,
    mappings: readFileSync('/proc/self/maps', 'utf8').match(/memfd:onesided-service/g)!.length,
    listeners: process.listenerCount('exit'),
    members: stays.members().map(({ place }) => place),
    highest,
    size,
    blocks,
    heapUsed,
    external,
    arrayBuffers,
    rss,
  };
  console.log(JSON.stringify(report));
}

let highest = 0;
let done = 0;
let started = 0;
/** Of this part of the run. */
let until = 0;
const began = performance.now();

async function others(): Promise<void> {
  while (started < until) {
    started += TURN;
    const own = String(below(1 << 20));
    const child = spawn(process.execPath, [process.argv[1], name, own, 'member'], { stdio: 'inherit' });
    await new Promise((resolve) => child.once('exit', resolve));
    await turned();
  }
}

async function again(): Promise<void> {
  while (started < until) {
    started += TURN;
    for (let i = 0; i < TURN; i++) {
      await using service = await Service.join(name);
      highest = Math.max(highest, service.place);
      await use(service);
    }
    await turned();
  }
}

/** Goes on not before its time, if there is a pace. */
async function turned(): Promise<void> {
  done += TURN;
  const at = perMinute === undefined ? 0 : (60_000 * done) / Number(perMinute);
  await sleep(Math.max(0, at - (performance.now() - began)));
}

for (let part = 1; part <= PARTS; part++) {
  until = (Number(joins) * part) / PARTS;
  await Promise.all([again(), ...Array.from({ length: AT_A_TIME }, others)]);
  await holds();
}
await stays.leave();
