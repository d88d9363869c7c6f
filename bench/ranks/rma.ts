/**
 * The benchmark's loops on our windows (rma-rows.ts), operation for operation those of bench/peers/rma.c, whose rules
 * hold here, too.
 *
 *   onesided run -n 2 build/programs/bench/ranks/rma.js -- ROW SAMPLES [MS [WARM-UP]] [--noncontiguous SCHEME]
 *
 * prints one line of JSON from rank 0: { row, unit, iterations, samples: [...] }. Rows that end in `-async` are the
 * same with the promise forms, awaited.
 */
import { parseArgs } from 'node:util';
import {
  type Communicator,
  Datatype,
  init,
  Lock,
  type TypedArray,
  type TypedArrayConstructor,
  Window,
  type WindowInfo,
} from 'onesided';
import { ROWS, type Row, TARGET } from './rma-rows.ts';
import { measure } from './samples.ts';

/** How far the operations of a bandwidth row reach into the window, in bytes. */
const REACH = 4 << 20;
/** Elements of the smallest window. */
const PAGE = 4096;

function pattern(i: number): number {
  return (i * 7 + 3) & 0xff;
}

function bytesOf(array: TypedArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** An operation's elements at the target: as bench/peers/rma.c lays them out. */
interface Places {
  readonly type: Datatype | undefined;
  /** Bytes of the window. */
  readonly bytes: number;
  /** Where byte i of an operation lies. */
  readonly of: (i: number) => number;
}

function placesOf(row: Row, rows: number, columns: number, bytes: number): Places {
  switch (row.shape) {
    case 'vector':
      return {
        type: Datatype.vector(rows, columns, 2 * columns, Datatype.UINT8),
        bytes: 2 * bytes,
        of: (i) => Math.floor(i / columns) * 2 * columns + (i % columns),
      };
    case 'subarray': {
      const of = (element: number): number =>
        (rows / 2 + Math.floor(element / columns)) * 2 * columns + columns / 2 + (element % columns);
      return {
        type: Datatype.subarray([2 * rows, 2 * columns], [rows, columns], [rows / 2, columns / 2], Datatype.FLOAT64),
        bytes: 4 * bytes,
        of: (i) => 8 * of(i >> 3) + (i & 7),
      };
    }
    case 'scattered': {
      const of = (element: number): number => (element * 40503 + 12345) % (16 * rows);
      const displacements = Int32Array.from({ length: rows }, (_, i) => of(i));
      return {
        type: Datatype.indexedBlock(1, displacements, row.element === 'int64' ? Datatype.INT64 : Datatype.FLOAT64),
        bytes: 16 * bytes,
        of: (i) => 8 * of(i >> 3) + (i & 7),
      };
    }
    default:
      return { type: undefined, bytes, of: (i) => i };
  }
}

async function run(
  world: Communicator,
  id: string,
  samples: number,
  block: number,
  warmUpMs: number | undefined,
  info: WindowInfo,
): Promise<void> {
  // `put-flush/8-async` is the row `put-flush-async` with operations of 8 bytes.
  const [, name, digits, times = '1', suffix = ''] = /^([a-z-]+)\/(\d+)(?:x(\d+))?(-async)?$/.exec(id) ?? [];
  const row = ROWS[`${name}${suffix}`];
  if (row === undefined) throw new Error(`no row ${id}`);
  const [rows, columns] = [Number(digits), Number(times)];
  const { shape, element, ownMemory = false } = row;
  const bytes = rows * columns * (shape === 'subarray' || shape === 'scattered' ? 8 : 1);
  const depth = row.depth ?? 1;
  let places = depth;
  while (places > 1 && places * bytes > REACH) places /= 2;
  const layout = placesOf(row, rows, columns, bytes);

  // 8 bytes are one element of 64 bits; more are bytes, unless the row says otherwise.
  const type: TypedArrayConstructor =
    element === 'int64'
      ? BigInt64Array
      : element === 'float64' || shape === 'subarray' || (bytes === 8 && shape === undefined)
        ? Float64Array
        : Uint8Array;
  const size = type.BYTES_PER_ELEMENT;
  const length = row.check === 'contended' ? 1 : bytes / size;
  const windowBytes = Math.max(layout.bytes * places, PAGE * 8);
  const allocate = (): Promise<Window> => {
    if (ownMemory) return Window.create(world, new type(new ArrayBuffer(windowBytes)));
    return Window.allocate(world, type, windowBytes / size, { info });
  };
  const window = row.epoch === 'none' ? undefined : await allocate();
  // Of more than 8 bytes it begins at a page, as the peers' does: copies whose sink does not begin with a cache line
  // take up to a tenth longer.
  const origin: TypedArray = length === 1 ? new type(new ArrayBuffer(size)) : world.allocMem(type, length);
  if (origin instanceof BigInt64Array) origin.fill(1n);
  else if (element === 'float64') (origin as Float64Array).fill(1);
  else if (row.check === 'written') fillWithPattern(bytesOf(origin));
  if (row.check === 'read' && window !== undefined) {
    const local = bytesOf(window.local);
    for (let i = 0; i < places * bytes; i++) local[layout.of(i)] = pattern(i % bytes);
  }
  world.barrierSync();

  const together = row.epoch !== 'lock-all' && row.epoch !== 'per operation';
  const transfer = layout.type === undefined ? undefined : { target: { type: layout.type } };
  const loop = row.loop({ world, window: window as Window, origin, length, places, layout: transfer, pieces: rows });
  const inLockAll = row.epoch === 'lock-all' || row.epoch === 'all';
  if (inLockAll) window!.lockAllSync();
  const measured =
    together || world.rank === 0
      ? await measure(loop, samples, block, together ? world : undefined, warmUpMs)
      : undefined;
  if (inLockAll) window!.unlockAllSync();
  world.barrierSync();

  const total = Float64Array.of(measured?.total ?? 0);
  world.broadcastSync(total, 0);
  if (window !== undefined) {
    window.lockSync(world.rank, Lock.SHARED);
    if (row.check === 'read' && world.rank === 0 && !bytesOf(origin).every((byte, i) => byte === pattern(i % bytes))) {
      throw new Error('get brought something else than the window holds');
    }
    if (world.rank === TARGET) checkTarget(world, row, window.local, layout, bytes, places, total[0]);
    window.unlockSync(world.rank);
    await window.free();
  }
  if (world.rank === 0 && measured !== undefined) {
    const bandwidth = depth > 1;
    const values = measured.seconds.map((s) => (bandwidth ? (bytes * depth) / s / 1e6 : s * 1e9));
    const unit = bandwidth ? 'MB/s' : 'ns';
    console.log(JSON.stringify({ row: id, unit, iterations: measured.iterations, samples: values }));
  }
}

function fillWithPattern(bytes: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = pattern(i);
}

/** Whether everything has arrived at the target that must have: a loop that moved nothing is an error, not a record. */
function checkTarget(
  world: Communicator,
  row: Row,
  local: TypedArray,
  layout: Places,
  bytes: number,
  places: number,
  total: number,
): void {
  const found = bytesOf(local);
  const sum = (i: number): number => Number(local[i]);
  const sums = { counted: [0], 'all counted': [] as number[], contended: [] as number[] };
  for (let i = 0; i < bytes / 8; i++) sums['all counted'].push(layout.of(8 * i) / 8);
  for (let rank = 0; rank < world.size; rank++) sums.contended.push(8 * rank);
  const { check } = row;
  if (check === 'written') {
    for (let i = 0; i < places * bytes; i++) {
      if (found[layout.of(i)] !== pattern(i % bytes)) throw new Error('put did not arrive');
    }
  } else if (check === 'swapped') {
    if (sum(0) !== 1) throw new Error('the swap did not happen');
  } else if (check === 'counted' || check === 'all counted' || check === 'contended') {
    for (const i of sums[check]) {
      if (sum(i) !== total) throw new Error(`the sum in element ${i} is ${sum(i)}, not ${total}`);
    }
  }
}

const { values: hints, positionals } = parseArgs({
  options: { noncontiguous: { type: 'string' } },
  allowPositionals: true,
});
const [id = '', samples = '5', milliseconds = '20', warmUp] = positionals;
const world = await init();
await run(world, id, Number(samples), Number(milliseconds) / 1e3, warmUp === undefined ? undefined : Number(warmUp), {
  ...hints,
} as WindowInfo);
await world.finalize();
