/**
 * Rank `--who=RANK` ends badly, `--how=…`, while the others wait, `--others=…`. They print what they get, and throw it.
 */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, init, Lock, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

const who = Number(argument('who'));
const how = argument('how')!;
const rank = Number(process.env['ONESIDED_RANK']);

function tell(what: object): void {
  writeSync(1, `[${rank}] ${JSON.stringify(what)}\n`);
}

const without: Record<string, () => unknown> = {
  'throw-before-init': () => {
    throw new Error('before init');
  },
  'exit-0-before-init': () => process.exit(0),
  'exit-6-before-init': () => process.exit(6),
  'return-before-init': () => {},
  'spin-before-init': spin,
};

const within: Record<string, (world: Communicator, window: Window) => unknown> = {
  throw: () => {
    throw new Error('no way');
  },
  'throw-later': async () => {
    await sleep(20);
    throw new Error('no way, later');
  },
  'throw-in-timer': () => {
    setTimeout(() => {
      throw new Error('no way, from a timer');
    }, 10);
    return new Promise(() => {});
  },
  'unhandled-rejection': () => {
    void Promise.reject(new Error('nobody handles this'));
    return sleep(10_000);
  },
  'exit-0': () => process.exit(0),
  'exit-5': () => process.exit(5),
  'exit-256': () => process.exit(256),
  'exit-4294967296': () => process.exit(2 ** 32),
  'exit-in-handler': (world) => {
    setTimeout(() => process.exit(4), 20);
    return world.barrier();
  },
  return: () => {},
  'never-settles': () => new Promise(() => {}),
  abort: () => process.abort(),
  'exit-in-fence-epoch': (_, window) => {
    window.fenceSync();
    window.put(Float64Array.of(1), (rank + 1) % window.group.size, 0);
    process.exit(3);
  },
  'exit-0-in-lock': async (_, window) => {
    await window.lock(0, Lock.EXCLUSIVE);
    window.put(Float64Array.of(1), 0, 0);
    process.exit(0);
  },
  'throw-in-lock': async (_, window) => {
    await window.lock(0, Lock.EXCLUSIVE);
    throw new Error('with the lock');
  },
  'spin-in-lock': async (_, window) => {
    await window.lock(0, Lock.EXCLUSIVE);
    spin();
  },
  spin,
  memory: () => {
    const kept: number[][] = [];
    for (;;) kept.push(new Array<number>(10_000).fill(kept.length));
  },
  'wrong-call': (_, window) => {
    window.put(Float64Array.of(1), 99, 0);
  },
};

function spin(): void {
  tell({ spinning: true });
  for (;;);
}

const others: Record<string, (world: Communicator, window: Window) => unknown> = {
  barrier: (world) => world.barrier(),
  'barrier-sync': (world) => world.barrierSync(),
  fence: (_, window) => window.fence(),
  'fence-sync': (_, window) => window.fenceSync(),
  lock: (_, window) => window.lock(0, Lock.EXCLUSIVE),
  'lock-sync': (_, window) => window.lockSync(0, Lock.EXCLUSIVE),
  receive: (world) => world.receive(new Float64Array(1), who),
  'two-fences': async (_, window) => {
    await window.fence();
    await window.fence();
  },
  allocate: (world) => Window.allocate(world, Int32Array, 100),
  finalize: (world) => world.finalize(),
};

async function main(): Promise<void> {
  if (rank === who && how in without) {
    without[how]();
    return;
  }
  const world = await init();
  const window = await Window.allocate(world, Float64Array, 8);
  if (rank === who) await within[how](world, window);
  else {
    // Whoever waits for a lock gives the one who is to hold it time to take it.
    if (argument('others')!.startsWith('lock')) await sleep(200);
    await others[argument('others')!](world, window);
    tell({ waited: true });
  }
}

async function mainOfOthers(): Promise<void> {
  try {
    await main();
  } catch (error) {
    const { code, message } = error as RmaError;
    tell({ code: code ?? String(error), message });
    throw error;
  }
}

await (rank === who ? main() : mainOfOthers());
