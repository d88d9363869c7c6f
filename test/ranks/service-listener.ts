/**
 * A member of a service whose listeners throw or leave, and who says what comes of that.
 *
 *     service-listener.js throw|leave NAME
 */
import { once } from 'node:events';
import { Service } from 'onesided/service';

const [does, name] = process.argv.slice(2) as [string, string];
const service = await Service.join(name);
// To listen keeps no process from ending. Longer than any test.
const stay = setTimeout(() => {}, 300_000);

if (does === 'throw') {
  service.on('join', () => {
    throw new Error('mine');
  });
  const uncaught = once(process, 'uncaughtException');
  const other = await Service.join(name);
  console.log(`uncaught: ${((await uncaught) as [Error])[0].message}`);
  const told = new Promise<void>((resolve) => {
    service.on('leave', ({ place }) => {
      console.log(`leave ${place}`);
      resolve();
    });
  });
  await other.leave();
  await told;
  await service.leave();
} else {
  const left = new Promise<void>((resolve) => {
    service.on('join', async ({ place }) => {
      console.log(`join ${place}`);
      await service.leave();
      console.log('left');
      resolve();
    });
  });
  const others = await Promise.all([Service.join(name), Service.join(name)]);
  await left;
  await Promise.all(others.map((other) => other.leave()));
}
clearTimeout(stay);
