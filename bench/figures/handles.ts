/** The programs of the dissertation's chapter 9: what handles cost, and what a get that does not block hides. */
import { type Communicator, Datatype, Request, Window, type WindowInfo } from 'onesided';
import { overlapOf, type Point } from '../patterns/overlap.ts';
import { median } from '../statistics.ts';

/** How operations are waited for: by a flush, one by one, all of a handle. */
export const HANDLES = ['implicit', 'explicit', 'aggregate'] as const;
export type Handle = (typeof HANDLES)[number];

export interface HandledOptions {
  readonly handle: Handle;
  readonly operation: 'put' | 'get';
  /** Of an operation. */
  readonly bytes: number;
  /** Operations to rank 1, to or from places that are not adjacent. */
  readonly operations: number;
  readonly samples: number;
  /** Microseconds of a computation in which everything else happens; 0: the processor's time is not measured. */
  readonly compute: number;
}

export interface Handled {
  /** Microseconds from the first call until all are complete. */
  readonly took: number;
  /** Microseconds that the calls add to a computation in which everything else happens. */
  readonly processor: number;
  /** Whether the data are right. */
  readonly right: boolean;
}

/** Rank 0 puts to rank 1, or gets from it. */
export async function handled(world: Communicator, options: HandledOptions): Promise<Handled> {
  const { handle, operation, bytes, operations, samples, compute } = options;
  const win = await Window.allocate(world, Uint8Array, 2 * bytes * operations);
  const origins = Array.from({ length: operations }, (_, i) =>
    new Uint8Array(bytes).fill(operation === 'put' ? i + 1 : 0),
  );
  if (operation === 'get') win.local.set(win.local.map((_, at) => 1 + at / (2 * bytes)));
  await win.lockAll();
  await world.barrier();
  // Full with the last operation, so that all are posted before the computation.
  const batch = win.aggregate(1, { limit: operations });
  const once = async (computed: number): Promise<number> => {
    const began = world.now();
    const requests: Request[] = [];
    for (let i = 0; i < operations; i++) {
      if (handle === 'aggregate') batch[operation](origins[i], 2 * i * bytes);
      else if (handle === 'implicit') win[operation](origins[i], 1, 2 * i * bytes);
      else requests.push(win[operation === 'put' ? 'rput' : 'rget'](origins[i], 1, 2 * i * bytes));
    }
    if (computed > 0) await world.compute(computed);
    if (handle === 'aggregate') await batch.wait();
    else if (handle === 'explicit') await Request.waitAll(requests);
    else await win.flushLocal(1);
    return world.now() - began - computed;
  };
  const [times, processor]: [number[], number[]] = [[], []];
  for (let sample = 0; sample <= samples && world.rank === 0; sample++) {
    times.push(await once(0));
    if (compute > 0) processor.push(await once(compute));
  }
  await win.unlockAll();
  await world.barrier();
  const right = (i: number): boolean => {
    const found = operation === 'get' ? origins[i] : win.local.subarray(2 * i * bytes, (2 * i + 1) * bytes);
    return found.every((byte) => byte === ((i + 1) & 255));
  };
  const looks = world.rank === (operation === 'get' ? 0 : 1);
  const all = !looks || origins.every((_, i) => right(i));
  await win.free();
  const middle = (values: readonly number[]): number => (values.length > 0 ? median(values.slice(1)) : 0);
  return { took: middle(times), processor: middle(processor), right: all };
}

export interface HeldBackOptions {
  readonly operations: number;
  /** Of the handle. */
  readonly limit: number;
  /** Microseconds after which the target looks: processes do not begin at one time (default: 100). */
  readonly after?: number;
}

export interface HeldBack {
  /** Of the operations, those that the target had before the wait, and after it. */
  readonly before: number;
  readonly after: number;
}

/** What has arrived of puts of a handle at rank 1 before a wait, and after it. */
export async function heldBack(
  world: Communicator,
  { operations, limit, after: late = 100 }: HeldBackOptions,
): Promise<HeldBack> {
  const win = await Window.allocate(world, Uint8Array, 2 * operations);
  const arrived = (): number => win.local.filter((byte) => byte !== 0).length;
  await win.lockAll();
  await world.barrier();
  const batch = win.aggregate(1, { limit });
  const one = Uint8Array.of(1);
  if (world.rank === 0) for (let i = 0; i < operations; i++) batch.put(one, 2 * i);
  await world.compute(late);
  const before = arrived();
  await world.barrier();
  if (world.rank === 0) {
    await batch.wait();
    await win.flush(1);
  }
  await world.barrier();
  const after = arrived();
  await win.unlockAll();
  await win.free();
  return { before, after };
}

/**
 * A get that the origin's processor takes no part in, one whose data the library packs and unpacks, and messages: a
 * request, and its answer.
 */
export const PROTOCOLS = ['direct', 'buffered', 'messages'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface HidingOptions {
  readonly protocol: Protocol;
  /** A multiple of 512. */
  readonly bytes: number;
  readonly samples: number;
}

/** Bytes of a piece of what is packed. */
const PIECE = 256;
const TENTHS = 15;

/** @returns % of the time of a get of rank 0 that computation between its call and its wait hides */
export async function hiding(world: Communicator, { protocol, bytes, samples }: HidingOptions): Promise<number> {
  const info: WindowInfo = protocol === 'buffered' ? { noncontiguous: 'pack' } : {};
  const win = await Window.allocate(world, Uint8Array, 2 * bytes, { info });
  win.local.fill(7);
  const found = new Uint8Array(bytes);
  const type = Datatype.vector(bytes / PIECE, PIECE, 2 * PIECE, Datatype.UINT8);
  const [ask, content] = [new Uint8Array(8), new Uint8Array(bytes).fill(7)];
  await win.lockAll();
  await world.barrier();
  const get = async (compute: number): Promise<void> => {
    found.fill(0);
    if (protocol === 'messages') {
      world.send(ask, 1);
      if (compute > 0) await world.compute(compute);
      // The library has nobody who receives for it while it computes, as MPI's libraries had nobody.
      await world.receive(found, 1);
      return;
    }
    const request = protocol === 'direct' ? win.rget(found, 1, 0) : win.rget(found, 1, 0, { target: { type } });
    if (compute > 0) await world.compute(compute);
    await request.wait();
  };
  const measure = async (compute: number): Promise<number> => {
    const times: number[] = [];
    await world.barrier();
    for (let sample = -1; sample < samples; sample++) {
      if (world.rank === 0) {
        const began = world.now();
        await get(compute);
        if (sample >= 0) times.push(world.now() - began);
        if (found.some((byte) => byte !== 7)) throw new Error(`${protocol} of ${bytes} bytes: the data are wrong`);
      } else if (protocol === 'messages') {
        await world.receive(ask, 0);
        world.send(content, 0);
      }
    }
    await world.barrier();
    const time = Float64Array.of(times.length === 0 ? 0 : median(times));
    await world.broadcast(time, 0);
    return time[0];
  };
  const points: Point[] = [];
  for (let tenth = 1; tenth <= TENTHS; tenth++) {
    const base = await measure(0);
    const compute = (base * tenth) / 10;
    points.push({ base, compute, total: await measure(compute) });
  }
  await win.unlockAll();
  await world.barrier();
  await win.free();
  return overlapOf(points);
}
