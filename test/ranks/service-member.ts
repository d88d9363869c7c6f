/**
 * A member of a service that does one thing, says "ready" and waits for its end.
 *
 *     service-member.js NAME hold|take|jobs|brief|end|kept|stop|exclusive|shared|all|accumulate|notified
 *
 * `jobs` does jobs up to the one with the number 2, which it never ends; `brief` takes one, and ends soon; `kept` has
 * its memory kept; `stop` stops this process inside `update` of a map; `exclusive`, `shared` and `all` hold locks of a
 * window, and have stored in the part at place 0; `accumulate` adds to all of that part for ever; `notified` waits for
 * a notification.
 */
import { writeSync } from 'node:fs';
import { Lock, Op } from 'onesided';
import { Service } from 'onesided/service';

const [name, does] = process.argv.slice(2) as [string, string];
const service = await Service.join(name, does === 'kept' ? { keep: 30 } : undefined);
const hits = await service.counter('hits');
hits.add(3);
if (does === 'hold') await (await service.mutex('log')).lock();
if (does === 'take') {
  const queue = await service.queue('q', Int32Array, 8);
  await queue.pop();
  (await queue.take())!.done();
  await queue.take();
  await queue.take();
}
if (does === 'jobs') {
  const jobs = await service.queue<{ n: number }>('jobs', { capacity: 8 });
  for await (const { entry } of jobs.takes()) {
    if (entry.n < 2) continue;
    writeSync(1, 'ready\n');
    await new Promise(() => {});
  }
}
if (does === 'brief') {
  await (await service.queue('jobs', { capacity: 8 })).take();
  setTimeout(() => process.exit(3), 300);
}
if (does === 'stop') {
  const map = await service.map<number>('numbers', { bytes: 1 << 20 });
  map.update('stopped', (value) => {
    writeSync(1, 'ready\n');
    process.kill(process.pid, 'SIGSTOP');
    return (value ?? 0) + 1;
  });
}
if (does === 'exclusive' || does === 'shared' || does === 'all') {
  const win = await service.window('w', Float64Array, 1000);
  if (does === 'all') await win.lockAll();
  else await win.lock(0, does === 'shared' ? Lock.SHARED : Lock.EXCLUSIVE);
  win.put(Float64Array.of(service.place + 0.5), 0, service.place);
  win.local[0] = 7;
}
if (does === 'accumulate') {
  const win = await service.window('sums', Float64Array, 1 << 16);
  const ones = new Float64Array(1 << 16).fill(1);
  writeSync(1, 'ready\n');
  for (;;) win.accumulate(ones, 0, 0, Op.SUM);
}
if (does === 'notified') {
  const win = await service.window('w', Float64Array, 1000);
  writeSync(1, 'ready\n');
  await win.waitNotify(2);
  win.putNotify(win.local.slice(0, 1), 0);
}
console.log('ready');
// Longer than any test.
if (does !== 'end') setTimeout(() => {}, 300_000);
