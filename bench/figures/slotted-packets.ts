/**
 * When packets leave in a superstep that is paced (BSP over TCP/IP, section 3): T2. Packets are seen where the library
 * posts them to its device.
 */
import type { Communicator } from 'onesided';
import { begin } from 'onesided/bsp';
import { type Fabric, runTasks } from 'onesided/fabrics';
import { contextOf, type QueuePair } from 'onesided/verbs';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach, show } from './figure.ts';
import { frameOf, LONG, PACKET, SEEDS, SHORT } from './shifts.ts';
import { BUS } from './slot-times.ts';

/** A packet that has left. */
interface Left {
  readonly member: number;
  /** Microseconds, by the clock of its process. */
  readonly time: number;
  readonly bytes: number;
}

type Prototype = Record<'wrAddSge' | 'wrComplete', (this: QueuePair, ...numbers: number[]) => void>;

/**
 * Notes packets: of all that a computation posts, they are the requests whose entries are added one by one. All ranks
 * are tasks of this thread, with queue pairs of one class.
 */
class Desk {
  readonly left: Left[] = [];
  readonly #worlds: Communicator[] = [];
  #restore: (() => void) | undefined;
  #bytes = 0;

  /** Each rank calls this first. */
  join(world: Communicator): void {
    this.#worlds[contextOf(world).member] = world;
    if (this.#restore !== undefined) return;
    const context = contextOf(world);
    const pd = context.allocPd();
    const cq = context.createCq(1);
    const qp = pd.createQueuePair({ sendCq: cq, recvCq: cq });
    const prototype = Object.getPrototypeOf(qp) as Prototype;
    const { wrAddSge, wrComplete } = prototype;
    this.#restore = () => Object.assign(prototype, { wrAddSge, wrComplete });
    const desk = this;
    prototype.wrAddSge = function (...numbers) {
      desk.#bytes += numbers[2];
      wrAddSge.apply(this, numbers);
    };
    prototype.wrComplete = function () {
      const bytes = desk.#bytes;
      desk.#bytes = 0;
      const { member } = this.address;
      if (bytes > 0) desk.left.push({ member, time: desk.#worlds[member].now(), bytes });
      wrComplete.apply(this);
    };
    qp.destroy();
  }

  close(): void {
    this.#restore?.();
  }
}

interface Observed {
  readonly left: readonly Left[];
  /** Of the busiest process, as all know it. */
  readonly most: number;
  /** Packets that left before their slot was over, and all. */
  readonly kept: number;
  readonly packets: number;
}

/** Packets of a cyclic shift, after a superstep that makes connections. */
async function observed(fabric: Fabric, processes: number, words: number, slot: number, seed = 1): Promise<Observed> {
  const desk = new Desk();
  try {
    const all = await runTasks(
      processes,
      async (world) => {
        desk.join(world);
        const bsp = await begin(world, { delivery: 'packed', counts: 'tree', pacing: { slot } });
        const variable = new Float32Array(words);
        bsp.pushReg(variable);
        await bsp.sync();
        const mine = new Float32Array(words);
        const put = (count: number): void => bsp.put((bsp.pid + 1) % processes, mine, variable, 0, count);
        put(1);
        await bsp.sync();
        const before = bsp.statistics().pacing!;
        const from = desk.left.length;
        put(words);
        await bsp.sync();
        const { most, kept, packets } = bsp.statistics().pacing!;
        await bsp.end();
        return { from, most, kept: kept - before.kept, packets: packets - before.packets };
      },
      { fabric, seed },
    );
    const sum = (of: (one: { kept: number; packets: number }) => number): number =>
      all.reduce((total, one) => total + of(one), 0);
    return {
      left: desk.left.slice(Math.max(...all.map(({ from }) => from))),
      most: all[0].most,
      kept: sum(({ kept }) => kept),
      packets: sum(({ packets }) => packets),
    };
  } finally {
    desk.close();
  }
}

/**
 * The slots that the packets of a process left in, from 0 on in each cycle: those that have one packet in each.
 * Undefined if there are none such.
 */
function slotsOf(times: readonly number[], slots: number, slot: number): number[] | undefined {
  const places = times.map((time) => Math.round((time - times[0]) / slot));
  for (let first = 0; first < slots; first++) {
    if (places.every((place, cycle) => Math.floor((place + first) / slots) === cycle)) {
      return places.map((place) => (place + first) % slots);
    }
  }
  return undefined;
}

const byProcess = (left: readonly Left[], processes: number): number[][] =>
  Array.from({ length: processes }, (_, member) => left.filter((one) => one.member === member).map(({ time }) => time));

/** Of what a bus carries at most, what all packets are that leave between the first and the last one. */
function loadOf(left: readonly Left[], slot: number, frame: number): number {
  const times = left.map(({ time }) => time);
  return (left.length * frame) / (Math.max(...times) - Math.min(...times) + slot);
}

/** Exceeded by chance in one of a hundred, by the number of slots. */
const CHI_SQUARE: Readonly<Record<number, number>> = { 2: 6.635, 4: 11.345, 6: 15.086, 8: 18.475 };

function chiSquare(drawn: readonly number[], slots: number): number {
  const expected = drawn.length / slots;
  const counts = new Array<number>(slots).fill(0);
  for (const one of drawn) counts[one]++;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

const RELATIONS = 100;

/** Supersteps in which some processes put something to some others. @returns in how many all have known how many */
async function sendersKnown(fabric: Fabric): Promise<number> {
  const processes = 8;
  const found = await runTasks(
    processes,
    async (world) => {
      const bsp = await begin(world, { delivery: 'packed', counts: 'tree', pacing: { slot: 1500 } });
      const variable = new Float32Array(1000);
      bsp.pushReg(variable);
      await bsp.sync();
      const mine = new Float32Array(1000);
      let state = 1;
      // All draw the same numbers.
      const below = (most: number): number => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return Math.floor((state / 2 ** 32) * most);
      };
      let right = 0;
      for (let relation = 0; relation < RELATIONS; relation++) {
        const share = below(5);
        let senders = 0;
        for (let source = 0; source < processes; source++) {
          const sends = below(4) < share;
          const [target, words] = [(source + 1 + below(processes - 1)) % processes, 1 + below(999)];
          if (!sends) continue;
          senders++;
          if (source === bsp.pid) bsp.put(target, mine, variable, 0, words);
        }
        await bsp.sync();
        if (bsp.statistics().pacing!.senders === senders) right++;
      }
      await bsp.end();
      return right;
    },
    { fabric, seed: 1 },
  );
  return Math.min(...found);
}

const PROCESSES = [2, 4, 6, 8];
const SLOT = 1500;
/** Cycles that are drawn. */
const DRAWN = 12;
const LOADS = [700, 800, 1000, 1200, 1400, 1600, 1800, 2000];

const t2: Figure = {
  id: 'T2',
  claim:
    'all processes know by a reduction how many of them send; data go in packets of at most 1,418 bytes, and each ' +
    'process sends one in a random slot of each cycle of as many slots',
  source: 'BSP over TCP/IP §2 and §3',
  caption:
    'Packets of four processes in the first cycles of a superstep, slots of 1500 µs, by the time at which they ' +
    'leave; and the load that 2, 4 and 8 processes offer to a bus of 10 Mbit/s against the length of slots, 1 being ' +
    'all it carries. Words of 4 bytes.',
  expected:
    `in ${RELATIONS} random relations all processes know how many send; no packet has more than 1,418 bytes; 25,000 ` +
    'words are 71 packets, 8,333 words 24; each process sends one in each cycle, within its slot, on 2, 4, 6 and 8 ' +
    'processes; slots are drawn uniformly (χ² at 1 %); at slots of a frame and more the load is within 5 % of frame ' +
    'by slot',
  schemes: ['src/bsp/delivery/paced-carrier.ts', 'src/bsp/delivery/slots.ts', 'src/bsp/delivery/totals.ts'],
  async measure() {
    const fabric = fabricOf(BUS);
    const frame = frameOf(fabric);
    const seeds = Array.from({ length: SEEDS }, (_, k) => k + 1);
    const all = await forEach(PROCESSES, async (processes) => {
      const runs = await forEach(seeds, (seed) => observed(fabric, processes, LONG, SLOT, seed));
      const drawn = runs.flatMap(({ left }) =>
        byProcess(left, processes).map((times) => slotsOf(times, processes, SLOT)),
      );
      const chi = drawn.includes(undefined) ? Number.POSITIVE_INFINITY : chiSquare(drawn.flat() as number[], processes);
      return { processes, runs, drawn, chi };
    });
    const short = await observed(fabric, 4, SHORT, SLOT);
    const loads = await forEach([2, 4, 8], (processes) =>
      forEach(LOADS, async (slot) => loadOf((await observed(fabric, processes, LONG, slot)).left, slot, frame)),
    );
    const runs = all.flatMap((one) => one.runs);
    const known = await sendersKnown(fabric);
    const longest = Math.max(...runs.flatMap(({ left }) => left.map(({ bytes }) => bytes)));
    const ofAll = (of: (run: Observed) => boolean): boolean => runs.every(of);
    const oneEach = all.every(({ drawn }) => drawn.every((slots) => slots !== undefined));
    const off = Math.max(
      ...loads.flatMap((line) =>
        line.map((load, k) => (LOADS[k] < frame ? 0 : Math.abs((load * LOADS[k]) / frame - 1))),
      ),
    );
    const { left } = all[1].runs[0];
    const first = Math.min(...left.map(({ time }) => time));
    const shown = byProcess(left, 4).map((times) =>
      times.slice(0, DRAWN).map((time) => Number(((time - first) / 1000).toFixed(2))),
    );
    const places = [...new Set(shown.flat())].sort((a, b) => a - b);
    return {
      chart: {
        kind: 'lines',
        x: { name: 'time (ms)', places },
        y: { name: 'process' },
        series: shown.map((times, member) => ({
          name: `process ${member}`,
          values: places.map((place) => (times.includes(place) ? member + 1 : null)),
        })),
        beside: {
          kind: 'lines',
          x: { name: 'slot (µs)', places: LOADS },
          y: { name: 'offered load' },
          series: [
            ...loads.map((values, k) => ({ name: `p = ${[2, 4, 8][k]}`, values })),
            { name: 'frame by slot', values: LOADS.map((slot) => frame / slot) },
          ],
        },
      },
      measured:
        `in ${known} of ${RELATIONS} relations all knew how many send; the longest packet has ${longest} bytes; ` +
        `25,000 words are ${[...new Set(runs.map(({ most }) => most))].join(' and ')} packets, 8,333 words ` +
        `${short.most}; ${oneEach ? 'each process sends one in each cycle' : 'not all cycles have one packet'}, ` +
        `${runs.reduce((sum, { kept }) => sum + kept, 0)} of ` +
        `${runs.reduce((sum, { packets }) => sum + packets, 0)} within their slots; χ² of slots is ` +
        `${all.map(({ chi }) => chi.toFixed(2)).join(', ')} for 2, 4, 6 and 8, at most ` +
        `${PROCESSES.map((processes) => CHI_SQUARE[processes].toFixed(2)).join(', ')} in 99 of 100; the load is ` +
        `within ${show(100 * off)} % of frame by slot`,
      holds:
        known === RELATIONS &&
        longest <= PACKET &&
        ofAll(({ most, packets, kept, left: seen }) => most === 71 && kept === packets && seen.length === packets) &&
        short.most === 24 &&
        oneEach &&
        all.every(({ processes, chi }) => chi < CHI_SQUARE[processes]) &&
        off <= 0.05,
      note:
        'cycles of a process begin when it has the counts, which processes have some milliseconds apart. In virtual ' +
        'time a process is always in time for its slot; real ranks are late',
    };
  },
};

export const slottedPackets: readonly Figure[] = [t2];
