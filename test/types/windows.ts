/**
 * What the compiler says of windows, locks and operations: `npm run check` reads this file, and nobody runs it. Each
 * `@ts-expect-error` is a line that must not compile.
 */
import {
  type Communicator,
  Datatype,
  Lock,
  type LockEpoch,
  Op,
  type TypedArray,
  type TypedArrayConstructor,
  Window,
} from 'onesided';

export async function locks(win: Window): Promise<void> {
  await win.lock(0, Lock.EXCLUSIVE);
  win.lockSync(0, Lock.SHARED);
  const type: Lock = Math.random() < 0.5 ? Lock.SHARED : Lock.EXCLUSIVE;
  await win.locked(0, type);
  // @ts-expect-error the other way round
  await win.lock(Lock.EXCLUSIVE, 0);
  // @ts-expect-error likewise
  win.lockSync(Lock.EXCLUSIVE, 0);
  // @ts-expect-error a lock type is one of `Lock`, not any number: it could be a rank
  await win.lock(0, 1);
  // @ts-expect-error a lock type is not a rank
  await win.flush(Lock.SHARED);
  // @ts-expect-error a lock type is one of `Lock`, not any number
  await win.locked(0, 0);
}

export async function elements(comm: Communicator): Promise<void> {
  const win = await Window.allocate(comm, Float64Array, 8);
  const doubles: Float64Array = win.local;
  const singles = new Float32Array(1);
  win.put(doubles, 0, 0);
  win.put(new Float64Array(new SharedArrayBuffer(8)), 0, 0);
  win.get(doubles.subarray(1), 0, 0);
  win.getAccumulate(new Float64Array(1), new Float64Array(new SharedArrayBuffer(8)), 0, 0, Op.SUM);
  win.getAccumulate(null, new Float64Array(1), 0, 0, Op.NO_OP);
  win.fetchAndOp(null, new Float64Array(1), 0, 0, Op.NO_OP);
  await win.rput(doubles, 0, 0).wait();
  win.putNotify(doubles, 0, 0);
  // @ts-expect-error singles among doubles
  win.put(singles, 0, 0);
  // @ts-expect-error likewise
  win.get(singles, 0, 0);
  // @ts-expect-error likewise
  win.putNotify(singles, 0, 0);
  // @ts-expect-error likewise
  win.rput(singles, 0, 0);
  // @ts-expect-error likewise
  win.rget(singles, 0, 0);
  // @ts-expect-error likewise
  win.accumulate(singles, 0, 0, Op.SUM);
  // @ts-expect-error likewise
  win.raccumulate(singles, 0, 0, Op.SUM);
  // @ts-expect-error the result is of singles
  win.getAccumulate(doubles, singles, 0, 0, Op.SUM);
  // @ts-expect-error likewise
  win.fetchAndOp(doubles, singles, 0, 0, Op.SUM);
  // @ts-expect-error bytes among doubles
  win.put(new Uint8Array(8), 0, 0);
  // @ts-expect-error it is not said of which elements
  win.put(doubles as TypedArray, 0, 0);

  // A layout says what the bytes are.
  const layout = { origin: { type: Datatype.FLOAT32 }, target: { type: Datatype.FLOAT32 } };
  win.put(singles, 0, 0, layout);
  win.accumulate(singles, 0, 0, Op.SUM, layout);
  win.accumulate(new Uint8Array(8), 0, 0, Op.BXOR, { origin: { type: Datatype.INT32, count: 2 } });
  win.getAccumulate(new Uint8Array(16), new Uint8Array(16), 0, 0, Op.MINLOC, {
    origin: { type: Datatype.DOUBLE_INT },
    target: { type: Datatype.DOUBLE_INT },
  });
  // So does a window of which no elements are said.
  const any: Window = win;
  any.put(singles, 0, 0);

  const over = await Window.create(comm, new Int32Array(4));
  over.put(Int32Array.of(1), 0, 0);
  // @ts-expect-error unsigned among signed integers
  over.put(Uint32Array.of(1), 0, 0);
  const shared = Window.allocateSharedSync(comm, Int16Array, 4);
  shared.put(shared.sharedQuery(0), 0, 0);
  // @ts-expect-error
  shared.put(Int32Array.of(1), 0, 0);
}

export async function bytes(comm: Communicator, other: TypedArray): Promise<void> {
  const windows: Window<Uint8Array>[] = [
    await Window.allocate(comm, Uint8Array, 8),
    await Window.create(comm, new ArrayBuffer(8)),
    await Window.create(comm, Buffer.alloc(8)),
    await Window.create(comm, new DataView(new ArrayBuffer(8))),
    await Window.create(comm, null),
    await Window.createDynamic(comm),
  ];
  for (const win of windows) {
    win.put(Float64Array.of(1), 0, 0);
    win.put(Buffer.from('text'), 0, 0);
    win.get(other, 0, 0);
    win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
    win.fetchAndOp(BigInt64Array.of(1n), new BigInt64Array(1), 0, 0, Op.BXOR);
    win.compareAndSwap(Int32Array.of(1), Int32Array.of(1), new Int32Array(1), 0, 0);
    // @ts-expect-error these are floats, whatever the window
    win.accumulate(Float64Array.of(1), 0, 0, Op.BXOR);
    // @ts-expect-error of another type than the origin
    win.fetchAndOp(BigInt64Array.of(1n), new Int32Array(1), 0, 0, Op.SUM);
  }
}

export function operations(floats: Window<Float32Array>, integers: Window<BigUint64Array>): void {
  const single = Float32Array.of(1);
  const whole = BigUint64Array.of(1n);
  for (const op of [Op.SUM, Op.PROD, Op.MIN, Op.MAX, Op.REPLACE, Op.NO_OP]) {
    floats.accumulate(single, 0, 0, op);
    integers.accumulate(whole, 0, 0, op);
  }
  for (const op of [Op.LAND, Op.LOR, Op.LXOR, Op.BAND, Op.BOR, Op.BXOR]) {
    integers.accumulate(whole, 0, 0, op);
    // @ts-expect-error not defined on floats
    floats.accumulate(single, 0, 0, op);
    // @ts-expect-error likewise
    floats.fetchAndOp(single, single, 0, 0, op);
    // @ts-expect-error likewise
    floats.getAccumulate(single, single, 0, 0, op);
  }
  // @ts-expect-error for pairs, which a layout describes
  integers.accumulate(whole, 0, 0, Op.MINLOC);
  integers.compareAndSwap(whole, whole, whole, 0, 0);
  // @ts-expect-error not for floats
  floats.compareAndSwap(single, single, single, 0, 0);
  // @ts-expect-error an operation is none of its name
  floats.accumulate(single, 0, 0, 'SUM');
}

export async function epochs(win: Window<Float64Array>): Promise<void> {
  await using epoch: LockEpoch<Float64Array> = await win.locked(0);
  epoch.put(new Float64Array(1), 0);
  // @ts-expect-error singles among doubles
  epoch.put(new Float32Array(1), 0);
  // @ts-expect-error bits of doubles
  epoch.accumulate(new Float64Array(1), 0, Op.BOR);
  epoch.accumulate(new Uint8Array(8), 0, Op.BOR, { origin: { type: Datatype.INT64 } });
  await using all = await win.lockedAll();
  all.put(new Float64Array(1), 0, 0);
  // @ts-expect-error singles among doubles
  all.get(new Float32Array(1), 0, 0);
}

/** Programs that leave the elements open. */
export async function generic<T extends TypedArray>(
  comm: Communicator,
  type: TypedArrayConstructor<T>,
  origin: T,
): Promise<T> {
  const win = await Window.allocate(comm, type, 8);
  win.put(origin, 0, 0);
  win.accumulate(origin, 0, 0, Op.SUM);
  win.getAccumulate(origin, origin, 0, 0, Op.REPLACE);
  takesAny(win);
  return win.local;
}

export function takesAny(win: Window): number {
  win.put(Int32Array.of(1), 0, 0);
  return win.dispUnit;
}

export async function takesDoubles(comm: Communicator): Promise<void> {
  const use = (win: Window<Float64Array>): number => win.local[0];
  use(await Window.allocate(comm, Float64Array, 1));
  use(await Window.create(comm, new Float64Array(1)));
  // @ts-expect-error a window of singles
  use(await Window.allocate(comm, Float32Array, 1));
}
