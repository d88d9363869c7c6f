/**
 * A member of a service that does one thing, says "ready" and waits for its end.
 *
 *     service-member.js NAME hold|take|end|stop
 *
 * `stop` stops this process inside `update` of a map.
 */
import { writeSync } from 'node:fs';
import { Service } from 'onesided/service';

const [name, does] = process.argv.slice(2) as [string, string];
const service = await Service.join(name);
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
if (does === 'stop') {
  const map = await service.map<number>('numbers', { bytes: 1 << 20 });
  map.update('stopped', (value) => {
    writeSync(1, 'ready\n');
    process.kill(process.pid, 'SIGSTOP');
    return (value ?? 0) + 1;
  });
}
console.log('ready');
// Longer than any test.
if (does !== 'end') setTimeout(() => {}, 300_000);
