/** The figures of the dissertation's §8.4: layouts that a helper at the target serves while its program computes. */
import { type Fabric, runTasks } from 'onesided/fabrics';
import { modelledMachine } from '../patterns/machine.ts';
import { summa } from '../summa/summa.ts';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach, show } from './figure.ts';
import { ASSISTED_WAYS, type AssistedWay, type SquareOptions, squareOverlap, squareTime } from './squares.ts';

const NAME = 'infinihost-pci-x';
const EDGES = [32, 64, 128, 256, 512];
/** Microseconds that a busy target computes. */
const BUSY = 20_000;
/** Of the bandwidth with an idle target: at least so much is unharmed, at most so much has dropped. */
const UNHARMED = 0.9;
const DROPPED = 0.7;
const FILES = ['src/transfer/layouts/host-assisted.ts', 'src/transfer/layouts/sgrs.ts', 'src/transfer/layouts/pack.ts'];
/** §8.4 has the second dimension of a rectangular product at 512, and square ones up to 2000. */
const ORDERS = [128, 256, 512, 1024, 2000];
const SECOND = 512;
/** "four nodes with two processes each" */
const RANKS = 8;
const PANEL = 128;
/**
 * Operations a nanosecond of a process: what a tuned product reaches of the 6 that a Xeon of 3.0 GHz can do. The
 * dissertation gives none.
 */
const PRODUCT_GFLOPS = 4;
/** What it can do at most, and the orders that are tried with it. */
const PEAK_GFLOPS = 6;
const PEAK_ORDERS = ORDERS.filter((order) => order <= 1024);
/** Of the products that are done, and compared element by element, with each way and shape; others are charged. */
const VERIFIED = 256;

/**
 * The dissertation's helper is a thread beside the processes. While a node has more processors than processes, it
 * polls:
 * what has come is found after the time of one look. Its testbed has two processors a node.
 */
function withServer(): Fabric {
  const fabric = fabricOf(NAME);
  return { ...fabric, host: { ...fabric.host, helper: 2, interrupt: fabric.host.lookAgain } };
}

/**
 * Two processes a node leave the helper no processor: the adapter's event wakes it, and its time is a computation's.
 * Between them, memory is shared.
 */
function twoProcesses(): Fabric {
  const fabric = fabricOf(NAME);
  return { ...fabric, node: { ...fabric.node, ranks: 2, rdmaByMemory: 1 } };
}

/** Said where it is so, for these numbers are not those of the fabric. */
const SERVER =
  'The helper polls on a processor that the program leaves idle, as the server of the library of §8.3 does, and ' +
  'finds what has come after `host.lookAgain`, a free number (`host.helper` is 2, and `host.interrupt` this, not 5 µs)';

const options = () => ({ fabric: withServer(), seed: 1 });
const text = (values: readonly number[]): string => values.map(show).join(', ');
const range = (values: readonly number[]): string => `${show(Math.min(...values))} to ${show(Math.max(...values))}`;
const byWay = async <V>(run: (way: AssistedWay) => Promise<V>): Promise<Record<AssistedWay, V>> => {
  const found = await forEach(ASSISTED_WAYS, run);
  return Object.fromEntries(ASSISTED_WAYS.map((way, i) => [way, found[i]])) as Record<AssistedWay, V>;
};

/** MB/s by edge, and by how much the longest computation of the target was longer than its work. */
async function bandwidths(of: Omit<SquareOptions, 'edge'>, busy: number) {
  let late = 0;
  const rates = await forEach(EDGES, async (edge) => {
    const [took, computed] = await runTasks(2, (world) => squareTime(world, { ...of, edge }, busy), options());
    late = Math.max(late, busy === 0 ? 0 : computed - busy);
    return (8 * edge * edge) / took;
  });
  return { rates, late };
}

/** Milliseconds of a product of each order, m × SECOND or square. */
async function products(
  way: AssistedWay,
  square: boolean,
  { orders = ORDERS, gflops = PRODUCT_GFLOPS } = {},
): Promise<number[]> {
  const fabric = twoProcesses();
  const run = async (m: number, onlyCharged: boolean): Promise<number> => {
    const n = square ? m : SECOND;
    const common = { panel: PANEL, samples: 1, gflops, info: { noncontiguous: way } };
    const shape = { m, n, k: n, onlyCharged, ...common };
    const [result] = await runTasks(RANKS, (world) => summa(world, shape, modelledMachine(world)), { fabric, seed: 1 });
    if (result.errors > 0) throw new Error(`SUMMA ${m} × ${n}, ${way}: ${result.errors} elements are wrong`);
    return result.microseconds / 1000;
  };
  await run(VERIFIED, false);
  return forEach(orders, (m) => run(m, true));
}

const edges = { name: 'rows and columns of the square', places: EDGES };

export const assisted: readonly Figure[] = [
  {
    id: 'D8.8',
    claim: 'host-assisted zero-copy get and put: above buffered, and unharmed by a busy target while buffered drops',
    source: 'dissertation figures 8.15 to 8.18',
    caption:
      'Bandwidth of gets and puts of a square part of a matrix, with an idle target and with one that computes for ' +
      `${BUSY / 1000} ms.`,
    expected:
      'host-assisted has more bandwidth than buffered (pack) at each size, for gets and puts. With a busy target it ' +
      `keeps at least ${UNHARMED} of what it has with an idle one, at each size, and buffered at most ${DROPPED}`,
    schemes: [...FILES, 'bench/figures/squares.ts'],
    async measure() {
      const all = await forEach(['get', 'put'] as const, async (operation) => ({
        operation,
        idle: await byWay((way) => bandwidths({ way, operation }, 0)),
        busy: await byWay((way) => bandwidths({ way, operation }, BUSY)),
      }));
      const cases = all.map(({ operation, idle, busy }) => {
        const kept = (way: AssistedWay): number[] => busy[way].rates.map((rate, k) => rate / idle[way].rates[k]);
        const above = idle['host-assisted'].rates.map((rate, k) => rate / idle.pack.rates[k]);
        return { operation, above, assisted: kept('host-assisted'), buffered: kept('pack') };
      });
      const late = Math.max(...all.map(({ busy }) => busy['host-assisted'].late));
      const holds = cases.every(
        (one) =>
          one.above.every((factor) => factor > 1) &&
          one.assisted.every((part) => part >= UNHARMED) &&
          one.buffered.every((part) => part <= DROPPED),
      );
      return {
        chart: {
          kind: 'lines',
          x: edges,
          y: { name: 'million bytes a second', logarithmic: true },
          series: all.flatMap(({ operation, idle, busy }) =>
            ASSISTED_WAYS.flatMap((way) => [
              { name: `${operation}, ${way}, idle`, values: idle[way].rates },
              { name: `${operation}, ${way}, busy`, values: busy[way].rates, like: `${operation}, ${way}, idle` },
            ]),
          ),
        },
        measured: `${cases
          .map(
            ({ operation, above, assisted, buffered }) =>
              `${operation}: host-assisted has ${range(above)} times buffered's bandwidth; with a busy target it ` +
              `keeps at least ${show(Math.min(...assisted))} of it, buffered at most ${show(Math.max(...buffered))}`,
          )
          .join('. ')}. The target's computation takes ${show(late)} µs longer at most`,
        holds,
        note:
          `${SERVER}. It was woken after 5 µs in an earlier version. Buffered transfers have no helper here and wait ` +
          'for the end of the computation; those of the dissertation have a thread that copies meanwhile, and lose ' +
          'less',
      };
    },
  },
  {
    id: 'D8.9',
    claim: 'overlap: host-assisted highest',
    source: 'dissertation figure 8.19',
    caption: "Share of a get's time that computation between its call and its wait hides.",
    expected:
      'host-assisted hides more than buffered (pack) at each size. The figure of the dissertation compares these ' +
      'two; a request for each row is drawn beside them',
    schemes: [...FILES, 'bench/figures/squares.ts'],
    async measure() {
      const found = await byWay((way) =>
        forEach(EDGES, async (edge) => {
          const run = { way, operation: 'get', edge } as const;
          const [overlap] = await runTasks(2, (world) => squareOverlap(world, run), options());
          return overlap;
        }),
      );
      const least = (way: AssistedWay): boolean => found['host-assisted'].every((value, k) => value > found[way][k]);
      return {
        chart: {
          kind: 'lines',
          x: edges,
          y: { name: 'overlap (%)' },
          series: ASSISTED_WAYS.map((name) => ({ name, values: found[name] })),
        },
        measured:
          `${EDGES.join(', ')} rows and columns, %: ` +
          `${ASSISTED_WAYS.map((way) => `${way} ${text(found[way])}`).join('; ')}. ` +
          `Host-assisted is ${least('pack') ? '' : 'not '}above buffered at each size, and ` +
          `${least('multi-write') ? '' : 'not '}above multi-write`,
        holds: least('pack'),
        note:
          'the criterion was changed: host-assisted had to be above multi-write (a request for each row) as well, ' +
          `which the dissertation does not compare with. ${SERVER}`,
      };
    },
  },
  {
    id: 'D8.10',
    claim: 'SUMMA matrix multiplication, square and rectangular: host-assisted best',
    source: 'dissertation figures 8.20 and 8.21',
    caption: `Time of a product of matrices on ${RANKS / 2} nodes with 2 processes each, panels of ${PANEL} columns.`,
    expected: 'with host-assisted gets a product takes the least time, square and rectangular, at each order',
    schemes: [...FILES, 'bench/summa/summa.ts'],
    async measure() {
      const shapes = await forEach(['square', 'rectangular'] as const, async (shape) => ({
        shape,
        times: await byWay((way) => products(way, shape === 'square')),
      }));
      const other = (times: Readonly<Record<AssistedWay, readonly number[]>>, k: number): number =>
        Math.min(times.pack[k], times['multi-write'][k]);
      const isFastest = (times: Readonly<Record<AssistedWay, readonly number[]>>, k: number): boolean =>
        times['host-assisted'][k] < other(times, k);
      const best = shapes.every(({ times }) => ORDERS.every((_, k) => isFastest(times, k)));
      const peak = await forEach(shapes, async ({ shape, times }) => {
        const at = { orders: PEAK_ORDERS, gflops: PEAK_GFLOPS };
        const found = await byWay((way) => products(way, shape === 'square', at));
        const fastest = PEAK_ORDERS.filter((_, k) => isFastest(found, k));
        const before = PEAK_ORDERS.filter((_, k) => isFastest(times, k));
        const names = (orders: readonly number[]): string => orders.join(', ') || 'no order';
        return `${shape} at ${names(fastest)} (with ${PRODUCT_GFLOPS}: at ${names(before)})`;
      });
      return {
        chart: {
          kind: 'lines',
          x: { name: 'first dimension', places: ORDERS },
          y: { name: 'time (ms)', logarithmic: true },
          series: shapes.flatMap(({ shape, times }) =>
            ASSISTED_WAYS.map((way) => ({ name: `${shape}, ${way}`, values: times[way] })),
          ),
        },
        measured: `${shapes
          .map(({ shape, times }) => {
            const of = ORDERS.map((_, k) => 100 * (times['host-assisted'][k] / other(times, k) - 1));
            const where = ORDERS.filter((_, k) => of[k] < 0).join(', ');
            return (
              `${shape}: host-assisted is the fastest at ${where || 'no order'}; it takes ` +
              `${of.map((value) => value.toFixed(1).replace('-', '−')).join(', ')} % longer than the best of the others`
            );
          })
          .join('. ')} (orders ${ORDERS.join(', ')})`,
        holds: best,
        note:
          'where computation hides all gets, the ways differ only by what each costs the processors of the target: ' +
          'two processes leave the helper none, so that a get that is served interrupts a computation (the fabric ' +
          'has two ranks a node here, which share memory: `node.ranks` 2, `node.rdmaByMemory` 1). Two things ' +
          'that decide are not known. The dissertation gives no rate of the arithmetic, which is charged at ' +
          `${PRODUCT_GFLOPS} GFLOP/s a process; with ${PEAK_GFLOPS}, the peak of its processors, host-assisted is ` +
          `the fastest, of the orders up to ${PEAK_ORDERS.at(-1)}, ${peak.join(' and ')}. And its largest chunk ` +
          '"was determined dynamically, depending on memory availability and the number of processors", from 128 on; ' +
          `here it has ${PANEL} columns always. An earlier version had 8 nodes with one process, orders up to 512, ` +
          'and 1 GFLOP/s',
      };
    },
  },
];
