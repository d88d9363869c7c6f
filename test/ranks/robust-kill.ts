/**
 * Ranks that do everything the library offers, over and over, until one of them is killed. What the others get is
 * printed, with the time.
 *
 * `--seed=N --victim=RANK --place=PLACE --after=N --ending=ENDING`. The victim kills itself when it comes to PLACE for
 * the N-th time; at the place `anywhere` it is killed from outside. All ranks draw the same activities in the same
 * order.
 */
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, init, Lock, Op, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed'));
const victim = Number(argument('victim'));
const wanted = argument('place');
const ending = argument('ending');
const rank = Number(process.env['ONESIDED_RANK']);
/** Draws what all ranks must agree on, and what they need not. */
const agreed = new Random(seed);
const own = new Random(seed, rank + 1);
let passes = Number(argument('after'));
let doing = 'init';

function tell(what: object): void {
  writeSync(1, `${JSON.stringify(what)}\n`);
}

/** Kills this rank if it is the victim and this is where it is to die. */
function place(name: string): void {
  if (rank !== victim || name !== wanted || passes-- > 0) return;
  tell({ died: Date.now(), place: name });
  process.kill(process.pid, 'SIGKILL');
}

/** Works on one window of each kind. */
interface Subject {
  readonly world: Communicator;
  readonly direct: Window<Float64Array>;
  readonly notified: Window<Float64Array>;
}

const WORDS = 256;
const one = Float64Array.of(1);

const activities: Record<string, (subject: Subject) => Promise<void>> = {
  async barrier({ world }) {
    const sync = agreed.chance(0.5);
    place('barrier');
    for (let i = agreed.below(200); i >= 0; i--) {
      if (sync) world.barrierSync();
      else await world.barrier();
    }
    const begun = world.barrier();
    place('in-barrier');
    await begun;
  },

  async fence({ world, direct }) {
    const sync = agreed.chance(0.5);
    for (let i = agreed.below(50); i >= 0; i--) {
      if (sync) direct.fenceSync();
      else await direct.fence();
      const block = new Float64Array(own.between(1, 16));
      for (let k = own.below(20); k >= 0; k--) {
        direct.put(block, own.below(world.size), own.below(WORDS - 16));
        place('put');
      }
    }
    const begun = direct.fence();
    place('in-fence');
    await begun;
    await direct.fence();
  },

  async notifiedFence({ world, notified }) {
    for (let i = agreed.below(10); i >= 0; i--) {
      await notified.fence();
      for (let k = own.below(20); k >= 0; k--) {
        notified.put(one, own.below(world.size), own.below(WORDS));
        place('notified-put');
      }
    }
    const begun = notified.fence();
    place('in-notified-fence');
    await begun;
    await notified.fence();
  },

  async general({ world, direct, notified }) {
    const window = agreed.chance(0.5) ? direct : notified;
    const sync = agreed.chance(0.5);
    const others = world.group.exclude([world.rank]);
    await window.fence(Assert.NO_SUCCEED);
    for (let i = agreed.below(20); i >= 0; i--) {
      window.postSync(others);
      place('exposed');
      if (sync) window.startSync(others);
      else await window.start(others);
      for (let k = own.below(10); k >= 0; k--) {
        window.put(one, others.translate([own.below(others.size)], world.group)[0], own.below(WORDS));
      }
      place('started');
      if (sync) window.completeSync();
      else await window.complete();
      place('completed');
      if (sync) window.waitSync();
      else await window.wait();
    }
    await window.fence();
  },

  async notifications({ world, direct, notified }) {
    const window = agreed.chance(0.5) ? direct : notified;
    const { rank, size } = world;
    await window.lockAll();
    for (let i = agreed.below(20); i >= 0; i--) {
      window.putNotify(one, (rank + 1) % size, own.below(WORDS));
      const waiting = window.waitNotify();
      place('notified');
      await waiting;
      const got = new Float64Array(8);
      await window.rget(got, (rank + 1) % size, own.below(WORDS - 8)).wait();
      place('requested');
    }
    await window.unlockAll();
    await world.barrier();
  },

  async exclusive({ world, direct }) {
    const target = agreed.below(world.size);
    const sync = agreed.chance(0.5);
    const result = new Float64Array(1);
    for (let i = agreed.below(50); i >= 0; i--) {
      if (sync) direct.lockSync(target, Lock.EXCLUSIVE);
      else await direct.lock(target, Lock.EXCLUSIVE);
      place('locked');
      for (let k = own.below(20); k >= 0; k--) direct.put(one, target, own.below(WORDS));
      direct.flushSync(target);
      direct.get(result, target, own.below(WORDS));
      place('get');
      if (sync) direct.unlockSync(target);
      else await direct.unlock(target);
    }
    await world.barrier();
  },

  async queued({ world, direct }) {
    const target = agreed.below(world.size);
    const waiting = direct.lock(target, own.chance(0.5) ? Lock.EXCLUSIVE : Lock.SHARED);
    place('queued');
    await waiting;
    await sleep(own.below(5));
    place('holder');
    await direct.unlock(target);
    await world.barrier();
  },

  async accumulate({ world, direct }) {
    const sync = agreed.chance(0.5);
    if (sync) direct.lockAllSync();
    else await direct.lockAll();
    const block = new Float64Array(64);
    const result = new Float64Array(1);
    for (let k = own.below(200); k >= 0; k--) {
      direct.accumulate(block, own.below(world.size), own.below(WORDS - 64), Op.SUM);
      direct.fetchAndOp(one, result, own.below(world.size), own.below(WORDS), Op.SUM);
      place('accumulate');
    }
    if (sync) direct.unlockAllSync();
    else await direct.unlockAll();
    world.barrierSync();
  },

  /** One rank comes late, the others sleep. */
  async parked({ world, direct }) {
    const late = agreed.below(world.size);
    const how = agreed.below(3);
    if (world.rank === late) await sleep(30);
    const timer = setTimeout(() => place('parked'), 10);
    if (how === 0) await world.barrier();
    else if (how === 1) await direct.fence();
    else world.barrierSync();
    clearTimeout(timer);
  },

  async windows({ world }) {
    const sync = agreed.chance(0.5);
    for (let i = agreed.below(10); i >= 0; i--) {
      if (sync) {
        const window = Window.allocateSync(world, Float64Array, WORDS);
        place('new');
        window.freeSync();
      } else {
        const making = Window.allocate(world, Float64Array, own.below(WORDS));
        place('allocate');
        const window = await making;
        const freeing = window.free();
        place('free');
        await freeing;
      }
    }
  },

  async collectives({ world }) {
    const mine = new Float64Array(1000).fill(world.rank);
    const all = new Float64Array(1000 * world.size);
    for (let i = agreed.below(5); i >= 0; i--) {
      const begun = world.allreduce(mine, new Float64Array(1000), Op.SUM);
      place('allreduce');
      await begun;
      place('collective');
      await world.allgather(mine, all);
      await world.alltoall(all, new Float64Array(all.length));
      place('collective');
      world.broadcastSync(mine, agreed.below(world.size));
    }
  },

  async split({ world }) {
    const begun = world.split(world.rank % 2, -world.rank);
    place('split');
    const half = (await begun)!;
    await half.barrier();
    place('in-half');
    const window = await Window.allocate(half, Int32Array, 10);
    await window.fence();
    await window.free();
    await half.finalize();
  },

  async messages({ world }) {
    const { size } = world;
    const long = new Float64Array(agreed.below(20_000) + 1);
    world.send(long, (world.rank + 1) % size);
    place('message');
    await world.receive(long, (world.rank + size - 1) % size);
  },

  async longMessages({ world }) {
    const { rank, size } = world;
    const long = new Float64Array(250_000 + agreed.below(400_000));
    const begun = world.receive(new Float64Array(long.length), (rank + size - 1) % size);
    world.send(long, (rank + 1) % size);
    place('long-message');
    await begun;
    const all = new Float64Array(100_000 * size);
    const gathered = world.allgather(all.subarray(0, 100_000).slice(), all);
    place('long-allgather');
    await gathered;
    const root = agreed.below(size);
    const broadcast = world.broadcast(long, root);
    place('long-broadcast');
    await broadcast;
  },
};

const ACTIVITY_OF: Record<string, string> = {
  barrier: 'barrier',
  'in-barrier': 'barrier',
  put: 'fence',
  'in-fence': 'fence',
  'notified-put': 'notifiedFence',
  'in-notified-fence': 'notifiedFence',
  exposed: 'general',
  started: 'general',
  completed: 'general',
  notified: 'notifications',
  requested: 'notifications',
  locked: 'exclusive',
  get: 'exclusive',
  queued: 'queued',
  holder: 'queued',
  accumulate: 'accumulate',
  parked: 'parked',
  new: 'windows',
  allocate: 'windows',
  free: 'windows',
  allreduce: 'collectives',
  collective: 'collectives',
  split: 'split',
  'in-half': 'split',
  message: 'messages',
  'long-message': 'longMessages',
  'long-allgather': 'longMessages',
  'long-broadcast': 'longMessages',
};

async function work(world: Communicator): Promise<void> {
  const direct = await Window.allocate(world, Float64Array, WORDS, { name: 'direct' });
  const notified = await Window.allocate(world, Float64Array, WORDS, { info: { fence: 'remote-notify' } });
  const subject = { world, direct, notified };
  const names = Object.keys(activities);
  const rounds = wanted === 'finalize' ? 3 : Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const drawn = agreed.pick(names);
    doing = agreed.chance(0.5) ? (ACTIVITY_OF[wanted!] ?? drawn) : drawn;
    await activities[doing](subject);
  }
  doing = 'finalize';
  place('finalize');
  await world.finalize();
}

async function end(world: Communicator | undefined, error: unknown): Promise<void> {
  if (ending === 'rethrow') throw error;
  if (ending === 'exit') process.exit(0);
  if (ending === 'finalize') await world?.finalize().catch(() => {});
  // Otherwise the program goes on, and ends when nothing holds it.
}

if (victim >= 0) tell(rank === victim ? { pid: process.pid } : { began: true });
let world: Communicator | undefined;
try {
  place('before-init');
  const joining = init();
  place('init');
  world = await joining;
  await work(world);
  tell({ done: true });
} catch (error) {
  const { code, message } = error as RmaError;
  tell({ caught: Date.now(), code: code ?? String(error), message, doing });
  await end(world, error);
}
