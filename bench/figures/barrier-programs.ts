/**
 * Barriers as the report on NIC-based barriers measures them: back to back, after some that warm up. Here ranks also
 * come apart at random, lose packets, and compute.
 */
import { type Communicator, Op } from 'onesided';
import { type BarrierOptions, type Fabric, processorUse, runTasks } from 'onesided/fabrics';
import { randomOf } from './chance.ts';

/** Microseconds after which all ranks can begin at one time. */
const TOGETHER = 100_000;
const NOTHING = new Uint8Array(0);

/** A step of a schedule: tells a rank, or waits for it. */
type Step = readonly [sends: boolean, peer: number];

/** Whom a rank tells and waits for, with messages of its processor. */
export type HostSchedule = (rank: number, size: number) => readonly Step[];

export const hostDissemination: HostSchedule = (rank, size) => {
  const steps: Step[] = [];
  for (let distance = 1; distance < size; distance *= 2)
    steps.push([true, (rank + distance) % size], [false, (rank - distance + size) % size]);
  return steps;
};

export const hostPairwise: HostSchedule = (rank, size) => {
  const most = 2 ** Math.floor(Math.log2(size));
  if (rank >= most) {
    return [
      [true, rank - most],
      [false, rank - most],
    ];
  }
  const steps: Step[] = [];
  const other: Step[] = rank + most < size ? [[false, rank + most]] : [];
  for (let distance = 1; distance < most; distance *= 2) steps.push([true, rank ^ distance], [false, rank ^ distance]);
  return [...other, ...steps, ...other.map(([, peer]): Step => [true, peer])];
};

export const hostTree =
  (degree: number): HostSchedule =>
  (rank, size) => {
    const first = degree * rank + 1;
    const children = Array.from({ length: Math.max(0, Math.min(degree, size - first)) }, (_, i) => first + i);
    const parent = Math.floor((rank - 1) / degree);
    const up: Step[] =
      rank === 0
        ? []
        : [
            [true, parent],
            [false, parent],
          ];
    return [...children.map((child): Step => [false, child]), ...up, ...children.map((child): Step => [true, child])];
  };

/** One barrier by messages of the ranks' processors. */
async function hostBarrier(world: Communicator, steps: readonly Step[]): Promise<void> {
  for (const [sends, peer] of steps) {
    if (sends) world.send(NOTHING, peer);
    else await world.receive(NOTHING, peer);
  }
}

export interface Way {
  /** Barriers of the library. */
  readonly options?: BarrierOptions;
  /** Or by messages of the processors. */
  readonly host?: HostSchedule;
}

export interface Measured {
  /** Microseconds a barrier: from when the last rank had begun to when the last had ended. */
  readonly time: number;
  /** Of all adapters, a barrier. */
  readonly packets: number;
  readonly nacks: number;
  readonly resent: number;
  /** Microseconds that a rank's processor spends in the library, a barrier. */
  readonly processor: number;
}

export interface Conditions {
  readonly barriers?: number;
  /** Barriers before those. */
  readonly warm?: number;
  readonly seed?: number;
  /** The share of packets that is lost. */
  readonly loss?: number;
  /** Each rank comes so many microseconds late at most, before each barrier. */
  readonly skew?: number;
  /** Ranks begin so many microseconds apart at most, once; 0: at one time. */
  readonly apart?: number;
  /** Microseconds that each rank computes between entering a barrier and waiting for it. */
  readonly compute?: number;
}

export async function barriers(fabric: Fabric, size: number, way: Way, conditions: Conditions = {}): Promise<Measured> {
  const { barriers = 100, warm = 20, seed = 1, loss = 0, skew = 0, apart = 0, compute = 0 } = conditions;
  const found = await runTasks(
    size,
    async (world) => {
      const { rank } = world;
      const random = randomOf(1000 * seed + rank);
      for (let i = 0; i < 8; i++) random();
      const steps = way.host?.(rank, size);
      const barrier = (): Promise<void> => (steps === undefined ? world.barrier() : hostBarrier(world, steps));
      const once = async (): Promise<void> => {
        if (skew > 0) await world.compute(skew * random());
        const going = barrier();
        if (compute > 0) await world.compute(compute);
        await going;
      };
      const latest = new Float64Array(1);
      await world.allreduce(Float64Array.of(world.now()), latest, Op.MAX);
      await world.compute(latest[0] + TOGETHER - world.now() + apart * random());
      for (let i = 0; i < warm; i++) await once();
      const before = { ...world.statistics().adapter };
      const processor = processorUse(world).library;
      const began = world.now();
      for (let i = 0; i < barriers; i++) await once();
      const ended = world.now();
      const after = world.statistics().adapter;
      const counted = (name: 'packets' | 'nacks' | 'resent'): number => (after?.[name] ?? 0) - (before[name] ?? 0);
      return {
        began,
        ended,
        ...{ packets: counted('packets'), nacks: counted('nacks'), resent: counted('resent') },
        processor: processorUse(world).library - processor,
      };
    },
    { fabric, seed, faults: { loss }, ...way.options, barrierNackAfter: way.options?.barrierNackAfter ?? 1 },
  );
  const sum = (name: 'packets' | 'nacks' | 'resent' | 'processor'): number =>
    found.reduce((all, one) => all + one[name], 0) / barriers;
  return {
    time: (Math.max(...found.map(({ ended }) => ended)) - Math.max(...found.map(({ began }) => began))) / barriers,
    ...{ packets: sum('packets'), nacks: sum('nacks'), resent: sum('resent') },
    processor: sum('processor') / size,
  };
}

/** Microseconds a barrier, back to back, of ranks that begin together, or some microseconds apart at most. */
export async function backToBack(fabric: Fabric, size: number, way: Way, apart = 0): Promise<number> {
  return (await barriers(fabric, size, way, { apart })).time;
}
