/** The programs of the dissertation's chapter 10 (§10.3): two ranks, epochs of start and complete. */
import { type Communicator, Window, type WindowInfo } from 'onesided';

export type Schedule = NonNullable<WindowInfo['schedule']>;

export interface ScheduledOptions {
  readonly schedule: Schedule;
  /** Of each put and get. */
  readonly bytes: number;
  /** What rank 0, or each in turn, issues in an epoch, in this order. */
  readonly puts: number;
  readonly gets: number;
  readonly epochs: number;
  readonly warm: number;
}

/** Each operation has memory of its own, at both ends. */
async function opened(
  world: Communicator,
  { schedule, bytes, puts, gets }: ScheduledOptions,
): Promise<{ readonly win: Window<Uint8Array>; issue(): void }> {
  const all = puts + gets;
  const win = await Window.allocate(world, Uint8Array, all * bytes, { info: { schedule } });
  const origins = Array.from({ length: all }, () => new Uint8Array(bytes));
  return {
    win,
    issue: () => {
      for (let i = 0; i < puts; i++) win.put(origins[i], 1 - world.rank, i * bytes);
      for (let i = puts; i < all; i++) win.get(origins[i], 1 - world.rank, i * bytes);
    },
  };
}

/** Pattern 1: rank 0 accesses rank 1 again and again. @returns million bytes a second, puts and gets together */
export async function throughput(world: Communicator, options: ScheduledOptions): Promise<number> {
  const { bytes, puts, gets, epochs, warm } = options;
  const { win, issue } = await opened(world, options);
  const other = win.group.include([1 - world.rank]);
  let began = 0;
  for (let i = -warm; i < epochs; i++) {
    if (i === 0) began = world.now();
    if (world.rank === 0) {
      await win.start(other);
      issue();
      await win.complete();
    } else {
      win.post(other);
      await win.wait();
    }
  }
  const took = world.now() - began;
  await world.barrier();
  await win.free();
  return (epochs * (puts + gets) * bytes) / took;
}

/**
 * Pattern 2 with gets that travel with the message that completes the origin's epoch and do not wait for the target's
 * post: plain messages, since no schedule of the library does so. The target's processor answers. @returns as `inTurns`
 */
export async function eagerGets(
  world: Communicator,
  { bytes, epochs, warm }: Pick<ScheduledOptions, 'bytes' | 'epochs' | 'warm'>,
): Promise<number> {
  const other = 1 - world.rank;
  const [request, data] = [8, bytes].map((length) => new Uint8Array(length));
  const access = async (): Promise<void> => {
    world.send(request, other);
    await world.receive(data, other);
  };
  const expose = async (): Promise<void> => {
    await world.receive(request, other);
    world.send(data, other);
  };
  let began = 0;
  for (let i = -warm; i < epochs; i++) {
    if (i === 0) began = world.now();
    await (world.rank === 0 ? access() : expose());
    await (world.rank === 0 ? expose() : access());
  }
  const took = (world.now() - began) / epochs;
  await world.barrier();
  return took;
}

/** Pattern 2: each accesses the other in turn. @returns microseconds of an iteration, which is an epoch of each */
export async function inTurns(world: Communicator, options: ScheduledOptions): Promise<number> {
  const { epochs, warm } = options;
  const { win, issue } = await opened(world, options);
  const other = win.group.include([1 - world.rank]);
  let began = 0;
  const access = async (): Promise<void> => {
    await win.start(other);
    issue();
    await win.complete();
  };
  const expose = async (): Promise<void> => {
    win.post(other);
    await win.wait();
  };
  for (let i = -warm; i < epochs; i++) {
    if (i === 0) began = world.now();
    await (world.rank === 0 ? access() : expose());
    await (world.rank === 0 ? expose() : access());
  }
  const took = (world.now() - began) / epochs;
  await world.barrier();
  await win.free();
  return took;
}
