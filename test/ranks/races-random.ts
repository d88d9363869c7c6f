/**
 * Random programs on tasks: each without a race, and once more with one synchronization left out, so that there is one.
 * `node --import onesided/races races-random.js FIRST COUNT` prints, for each seed, how many races were found in each.
 *
 * A program is a number of phases. In a phase each element of each part has one rank that may change it, or is read by
 * anybody, or is updated by anybody. Between two phases all ranks synchronize, in a way that is drawn; and one element
 * is put by one rank in the first and read or changed by another one in the second, so that they race where that is
 * left out.
 */
import { type Communicator, Lock, Op, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { Random } from './support/random.ts';

const ELEMENTS = 12;
const KINDS = ['fence', 'flush', 'barrier', 'lock', 'message', 'wait', 'origin', 'result'] as const;
type Kind = (typeof KINDS)[number];

interface Action {
  readonly rank: number;
  readonly does: 'put' | 'get' | 'accumulate' | 'load' | 'store' | 'fetch';
  readonly target: number;
  readonly element: number;
}

interface Phase {
  readonly actions: readonly Action[];
  /** The element that one rank puts, and another one uses behind the synchronization. */
  readonly writer: number;
  readonly reader: number;
  readonly target: number;
  readonly kind: Kind;
  readonly reads: boolean;
}

interface Program {
  readonly size: number;
  readonly phases: readonly Phase[];
}

function draw(seed: number): Program {
  const random = new Random(seed);
  const size = 2 + random.below(3);
  const phases = Array.from({ length: 2 + random.below(3) }, () => {
    const actions: Action[] = [];
    for (let target = 0; target < size; target++) {
      // The last elements are those of the synchronization.
      for (let element = 0; element < ELEMENTS - 2; element++) {
        const way = random.below(4);
        const owner = random.below(size);
        for (let i = random.below(3); i > 0; i--) {
          const rank = way === 0 ? owner : random.below(size);
          const remote = way === 0 ? 'put' : way === 1 ? 'get' : 'accumulate';
          const local = way === 0 ? 'store' : 'load';
          // One operation of the one that changes it: two would need a flush between them.
          if (way === 0 && i > 1) continue;
          const does = way < 2 && rank === target && random.chance(0.5) ? local : remote;
          actions.push({ rank, does: way === 3 && random.chance(0.5) ? 'fetch' : does, target, element });
        }
      }
    }
    const writer = random.below(size);
    const reader = (writer + 1 + random.below(size - 1)) % size;
    const target = random.chance(0.5) ? reader : random.below(size);
    return { actions, writer, reader, target, kind: KINDS[random.below(KINDS.length)], reads: random.chance(0.7) };
  });
  return { size, phases };
}

/** @param without the phase whose synchronization is left out; −1: none */
async function run({ phases }: Program, world: Communicator, without: number): Promise<void> {
  const { rank } = world;
  const win = await Window.allocate(world, Int32Array, ELEMENTS, { name: 'random' });
  await win.lockAll();
  for (const [number, phase] of phases.entries()) {
    await act(phase.actions, win, rank);
    await win.flushAll();
    await world.barrier();
    await synchronize(phase, world, win, number === without);
    await win.flushAll();
    await world.barrier();
  }
  await win.unlockAll();
  await world.barrier();
  await win.free();
}

async function act(actions: readonly Action[], win: Window<Int32Array>, rank: number): Promise<void> {
  for (const { rank: who, does, target, element } of actions) {
    if (who !== rank) continue;
    if (does === 'put') win.put(Int32Array.of(rank), target, element);
    else if (does === 'get') win.get(new Int32Array(1), target, element);
    else if (does === 'accumulate') win.accumulate(Int32Array.of(1), target, element, Op.SUM);
    else if (does === 'fetch') win.fetchAndOp(Int32Array.of(1), new Int32Array(1), target, element, Op.SUM);
    else if (does === 'load') void win.local[element];
    else win.local[element] = rank;
  }
}

const LAST = ELEMENTS - 1;

async function synchronize(phase: Phase, world: Communicator, win: Window<Int32Array>, isOut: boolean): Promise<void> {
  const { writer, reader, target, kind, reads } = phase;
  const { rank } = world;
  const value = Int32Array.of(rank);
  const use = (): void => {
    if (reader === target && reads) void win.local[LAST];
    else if (reader === target) win.local[LAST] = 5;
    else if (reads) win.get(new Int32Array(1), target, LAST);
    else win.put(Int32Array.of(7), target, LAST);
  };
  switch (kind) {
    case 'fence':
      await win.unlockAll();
      await win.fence();
      if (rank === writer) win.put(value, target, LAST);
      if (!isOut) await win.fence();
      if (rank === reader) use();
      await win.fence();
      await win.lockAll();
      return;
    case 'flush':
    case 'barrier':
      if (rank === writer) win.put(value, target, LAST);
      if (rank === writer && !(isOut && kind === 'flush')) await win.flush(target);
      if (!(isOut && kind === 'barrier')) await world.barrier();
      if (rank === reader) use();
      return;
    case 'message':
      if (rank === writer) {
        win.put(value, target, LAST);
        await win.flush(target);
        if (!isOut) world.send(value, reader);
      }
      if (rank === reader) {
        if (!isOut) await world.receive(value, writer);
        use();
      }
      return;
    case 'lock': {
      await win.unlockAll();
      const type = isOut ? Lock.SHARED : Lock.EXCLUSIVE;
      for (const who of [writer, reader]) {
        if (rank !== who) continue;
        await win.lock(target, type);
        win.put(value, target, LAST);
        await win.unlock(target);
      }
      await world.barrier();
      await win.lockAll();
      return;
    }
    case 'wait': {
      if (rank !== writer) return;
      const request = win.rget(value, target, LAST);
      if (!isOut) await request.wait();
      value[0] = 3;
      await request.wait();
      return;
    }
    case 'origin':
      if (rank !== writer) return;
      win.put(value, target, LAST);
      if (!isOut) await win.flushLocal(target);
      value[0] = 3;
      return;
    default:
      if (rank !== writer) return;
      win.get(value, target, LAST);
      if (!isOut) await win.flush(target);
      void value[0];
  }
}

const [first = '1', count = '10', fabric = 'connectx-16-cores'] = process.argv.slice(2);
for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const program = draw(seed);
  const without = seed % program.phases.length;
  const found: number[] = [];
  for (const left of [-1, without]) {
    await runTasks(program.size, (world) => run(program, world, left), {
      ...{ fabric, seed, order: 'random' },
      races: {
        report: ({ races }) => {
          found.push(races.length);
          if (left < 0 && races.length > 0) console.log(JSON.stringify(races));
        },
      },
    });
  }
  console.log(JSON.stringify({ seed, kind: program.phases[without].kind, free: found[0], racy: found[1] }));
}
