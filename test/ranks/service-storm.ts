/**
 * A member of a service that does all calls in random order, until it is killed or told to stop (a line on its standard
 * input; of a thread, a message). It says what has come of each call only when the call is over, by a line that is
 * written before it goes on:
 *
 *     c            a has been added to
 *     m | x PLACE  both numbers under the mutex have been raised; before that, they were made equal after a death
 *     p ID | o ID  an entry was pushed to the queue of entries that may be lost, or popped
 *     P ID | O ID | D ID   the same for entries that must not: pushed, taken (and perhaps given back), done
 *     s KEY        a new key was set; its value is the key
 *     i | l        a number of the map was raised; a call was allowed
 *     w            an element of a window was raised
 *     v | y PLACE  as m and x, under the lock of a part of a window
 *     f            all elements of a part were raised
 *     t MS         a call took so long, longer than any before
 *     ! TEXT       something that must not be
 *
 *     service-storm.js NAME SEED PAUSE
 *
 * PAUSE is milliseconds behind twenty calls each.
 */
import { writeSync } from 'node:fs';
import { parentPort, threadId } from 'node:worker_threads';
import { Lock, Op } from 'onesided';
import { Service } from 'onesided/service';

const [name, seed, pause] = process.argv.slice(2) as [string, string, string];
let state = Number(seed) | 0;
/** 0 … n − 1 */
function random(n: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 8) % n;
}

function say(line: string): void {
  if (parentPort === null) writeSync(1, `${line}\n`);
  else parentPort.postMessage(line);
}

let stops = false;
if (parentPort === null) process.stdin.once('data', () => (stops = true)).unref();
else parentPort.once('message', () => (stops = true)).unref();

const service = await Service.join(name);
const counter = await service.counter('counter');
const [left, right] = [await service.counter('left'), await service.counter('right')];
const mutex = await service.mutex('mutex');
const losing = await service.queue('losing', Int32Array, 64, { length: 2 });
const keeping = await service.queue<number[]>('keeping', { capacity: 64, longest: 40 });
const map = await service.map<string | number>('map', { bytes: 64 << 20 });
const limiter = await service.limiter('limiter', { rate: 1000, per: 1e9 });
const numbers = await service.window('numbers', Int32Array, 16);
const sums = await service.window('sums', Float64Array, 4096);
const ones = new Float64Array(4096).fill(1);
const [one, was] = [Int32Array.of(1), new Int32Array(1)];
/** Each thread of a process has numbers of its own. */
const first = 1_000_000 * threadId;
let next = first;
/** Not used by any other member: its process, and a number of its own. */
const entry = () => Int32Array.of(process.pid, next++);
const words = (value: ArrayLike<number>): string => `${value[0]}.${value[1]}`;

function underMutex(abandoned: number | undefined): void {
  if (abandoned !== undefined) {
    right.exchange(left.value);
    say(`x ${abandoned}`);
  } else if (left.value !== right.value) say(`! ${left.value} and ${right.value} under a mutex that nobody died with`);
  left.add();
  for (let i = random(200); i > 0; i--) counter.value;
  right.add();
}

function underLock(abandoned: number | undefined): void {
  const part = numbers.sharedQuery(1);
  if (abandoned !== undefined) {
    part[1] = part[0];
    say(`y ${abandoned}`);
  } else if (part[0] !== part[1]) say(`! ${part[0]} and ${part[1]} under a lock that nobody died with`);
  part[0]++;
  for (let i = random(200); i > 0; i--) numbers.get(was, 1, 0);
  part[1]++;
}

const calls = [
  () => {
    numbers.fetchAndOp(one, was, 0, 3, Op.SUM);
    say('w');
  },
  () => {
    underLock(numbers.lockSync(1, Lock.EXCLUSIVE, 0, { timeout: 30_000 }).abandoned);
    numbers.unlockSync(1);
    say('v');
  },
  async () => {
    underLock((await numbers.lock(1, Lock.EXCLUSIVE, 0, { timeout: 30_000 })).abandoned);
    await numbers.unlock(1);
    say('v');
  },
  async () => {
    const { abandoned } = await numbers.lockAll(0, { timeout: 30_000 });
    const part = numbers.sharedQuery(1);
    for (const { target, place } of abandoned) {
      if (target !== 1) continue;
      // Nobody writes: whoever holds the lock, too, holds it shared.
      part[1] = part[0];
      say(`y ${place}`);
    }
    await numbers.unlockAll();
  },
  () => {
    sums.accumulate(ones, 2, 0, Op.SUM);
    say('f');
  },
  () => {
    counter.add();
    say('c');
  },
  () => {
    using held = mutex.lockSync({ timeout: 30_000 });
    underMutex(held.abandoned);
    say('m');
  },
  async () => {
    const held = await mutex.lock({ timeout: 30_000 });
    underMutex(held.abandoned);
    held.release();
    say('m');
  },
  () => {
    const mine = entry();
    if (losing.tryPush(mine)) say(`p ${words(mine)}`);
  },
  () => {
    const found = losing.tryPop();
    if (found !== undefined) say(`o ${words(found)}`);
  },
  () => {
    const mine = entry();
    if (keeping.tryPush([...mine])) say(`P ${words(mine)}`);
  },
  () => {
    const key = `${process.pid}.${next++}`;
    map.set(key, key);
    say(`s ${key}`);
  },
  () => {
    map.increment('number');
    say('i');
  },
  () => {
    const key = `${process.pid}.${first + random(next - first + 1)}`;
    const value = map.get(key);
    if (value !== undefined && value !== key) say(`! the value ${value} of ${key}`);
  },
  () => {
    if (limiter.take().allowed) say('l');
  },
  async () => {
    if (keeping.length === 0) return;
    const taken = await keeping.take({ timeout: 100 }).catch(() => undefined);
    if (taken === undefined) return;
    say(`O ${words(taken.entry)}`);
    if (random(8) === 0) await new Promise((resolve) => setTimeout(resolve, random(5)));
    if (random(4) === 0) {
      taken.giveBack();
      return;
    }
    taken.done();
    say(`D ${words(taken.entry)}`);
  },
];
let longest = 0;
say(`joined ${service.place}`);
while (!stops) {
  for (let i = 0; i < 20; i++) {
    const begun = performance.now();
    await calls[random(calls.length)]();
    const took = Math.round(performance.now() - begun);
    if (took > longest) say(`t ${(longest = took)}`);
  }
  await new Promise((resolve) => setTimeout(resolve, Number(pause)));
}
await service.leave();
say('left');
