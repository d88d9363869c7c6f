/**
 * What a rank costs that does nothing: `--wait=FORM` waits for rank 0, which comes after `--for=MS`, and prints the
 * share of a core that its process used meanwhile; `--memory` prints what the process holds, in bytes, when all have
 * talked to each other.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, init, Lock, Op, Window, type WindowInfo } from 'onesided';
import { argument } from './support/cases.ts';

const forms: Record<string, (world: Communicator, window: Window) => unknown> = {
  barrier: (world) => world.barrier(),
  'barrier-sync': (world) => world.barrierSync(),
  fence: (_, window) => window.fence(),
  'fence-sync': (_, window) => window.fenceSync(),
  'notified-fence': (_, window) => window.fence(),
  lock: (_, window) => window.lock(0, Lock.EXCLUSIVE),
  'lock-by-agent': (_, window) => window.lock(0, Lock.EXCLUSIVE),
  'lock-sync': (_, window) => window.lockSync(0, Lock.EXCLUSIVE),
  receive: (world) => world.receive(new Float64Array(1), 0),
  'receive-sync': (world) => world.receiveSync(new Float64Array(1), 0),
  allreduce: (world) => world.allreduce(new Float64Array(1), new Float64Array(1), Op.SUM),
};

const world = await init();

async function waitForRankZero(form: string): Promise<void> {
  const locks = form.startsWith('lock');
  const info: WindowInfo =
    form === 'notified-fence' ? { fence: 'remote-notify' } : form === 'lock-by-agent' ? { lock: 'two-sided' } : {};
  const window = await Window.allocate(world, Float64Array, 10, { info });
  if (world.rank === 0 && locks) await window.lock(0, Lock.EXCLUSIVE);
  world.barrierSync();
  // What Node itself does after a start, compiling and collecting, is over by then.
  await sleep(300);
  if (world.rank === 0) {
    await sleep(Number(argument('for')));
    if (locks) await window.unlock(0);
    else if (form.startsWith('receive'))
      for (let rank = 1; rank < world.size; rank++) world.send(new Float64Array(1), rank);
    else await forms[form](world, window);
  } else {
    const before = process.cpuUsage();
    const began = performance.now();
    await forms[form](world, window);
    const { user, system } = process.cpuUsage(before);
    const milliseconds = performance.now() - began;
    console.log(JSON.stringify({ share: (user + system) / 1000 / milliseconds, milliseconds }));
    if (locks) await window.unlock(0);
  }
  await world.barrier();
  await window.free();
}

async function measureMemory(): Promise<void> {
  const window = await Window.allocate(world, Float64Array, 1000);
  await window.fence();
  window.put(Float64Array.of(1), (world.rank + 1) % world.size, 0);
  await window.fence();
  await world.allreduce(new Float64Array(10), new Float64Array(10), Op.SUM);
  await world.barrier();
  const rollup = readFileSync('/proc/self/smaps_rollup', 'utf8');
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(rollup)?.[1]) * 1024;
  console.log(JSON.stringify({ resident: bytes('Rss'), proportional: bytes('Pss'), shared: bytes('Pss_Shmem') }));
  await world.barrier();
  await window.free();
}

const form = argument('wait');
await (form === undefined ? measureMemory() : waitForRankZero(form));
await world.finalize();
