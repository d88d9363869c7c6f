/** Our own figure of layouts: whether `noncontiguous: 'auto'` chooses well, over a grid of sizes and pieces. */
import { type Communicator, Datatype, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach } from './figure.ts';

const FABRICS = ['infinihost-64', 'infinihost-express', 'infinihost-pci-x', 'connectx-16-cores', 'bsp-ib-16'] as const;
const CALLS = ['put', 'get'] as const;
const FIXED = ['multi-write', 'pack', 'sgrs'] as const;
const WAYS = [...FIXED, 'auto'] as const;
type Way = (typeof WAYS)[number];
const PIECES = [2, 4, 8, 12, 16, 32, 64, 128, 256, 512];
/** Of a piece. */
const BYTES = [16, 64, 256, 1024, 4096];
/** Elements of a row: twice as long as the longest piece. */
const ROW = 2048;
/** The last of them is measured, when connections are made and the layout is known. */
const CALLED = 3;
/** How much longer than the quickest fixed one. */
const ALLOWED = 1.1;
/** Of the places where it fails, those that are named. */
const SHOWN = 4;

/** A put or a get of a column with its flush, in a place of the grid. */
interface Cell {
  readonly call: (typeof CALLS)[number];
  readonly pieces: number;
  readonly bytes: number;
}
const GRID: readonly Cell[] = CALLS.flatMap((call) =>
  PIECES.flatMap((pieces) => BYTES.map((bytes) => ({ call, pieces, bytes }))),
);

/** Rank 0 calls, the last rank is the target. @returns microseconds of each place of the grid, at rank 0 */
async function columns(world: Communicator, noncontiguous: Way): Promise<number[]> {
  const last = world.size - 1;
  const rows = world.rank === last ? Math.max(...PIECES) : 0;
  const win = await Window.allocate(world, Int32Array, rows * ROW, { info: { noncontiguous } });
  await win.lockAll();
  await world.barrier();
  const times =
    world.rank > 0
      ? []
      : await forEach(GRID, async ({ call, pieces, bytes }) => {
          const target = { type: Datatype.vector(pieces, bytes / 4, ROW, Datatype.INT32) };
          const data = new Int32Array((pieces * bytes) / 4);
          let began = 0;
          for (let i = 0; i < CALLED; i++) {
            began = world.now();
            win[call](data, last, 0, { target });
            await win.flush(last);
          }
          return world.now() - began;
        });
  await world.barrier();
  await win.unlockAll();
  await win.free();
  return times;
}

/** Which fixed way is the quickest, by bytes of a piece: `pack from 16`, `sgrs from 256`. */
function crossover(times: Readonly<Record<Way, readonly number[]>>, call: Cell['call'], pieces: number): string[] {
  const places = GRID.flatMap((cell, i) => (cell.call === call && cell.pieces === pieces ? [i] : []));
  const quickest = places.map((i) => FIXED.reduce((best, way) => (times[way][i] < times[best][i] ? way : best)));
  return quickest.flatMap((way, k) => (k > 0 && quickest[k - 1] === way ? [] : [`${way} from ${BYTES[k]} bytes`]));
}

/** A fabric's times, and those of a way over the quickest fixed one, in each place of the grid. */
interface GridTimes {
  readonly name: string;
  readonly times: Readonly<Record<Way, readonly number[]>>;
  over(way: Way): number[];
}

async function gridOn(name: (typeof FABRICS)[number]): Promise<GridTimes> {
  const fabric = fabricOf(name);
  // On two nodes.
  const ranks = fabric.node.ranks + 1;
  const run = async (way: Way): Promise<number[]> =>
    (await runTasks(ranks, (world) => columns(world, way), { fabric, seed: 1 }))[0];
  const found = await forEach(WAYS, run);
  const times = Object.fromEntries(WAYS.map((way, i) => [way, found[i]])) as Record<Way, number[]>;
  const best = GRID.map((_, i) => Math.min(...FIXED.map((way) => times[way][i])));
  return { name, times, over: (way) => times[way].map((time, i) => time / best[i]) };
}

export const automatic: Figure = {
  id: 'O.2',
  claim: "`noncontiguous: 'auto'` is never worse than the best fixed scheme by more than 10 %",
  source: 'ours; the schemes of dissertation §8.1 and §8.3',
  caption:
    'Puts and gets of columns with their flush, by the number of pieces: ' +
    `time relative to the fastest fixed scheme, at the worst of pieces of ${BYTES.join(', ')} bytes.`,
  expected:
    `auto takes at most ${ALLOWED} times as long as the quickest of ${FIXED.join(', ')}, ` +
    `at each place of a grid of ${PIECES.join(', ')} pieces of ${BYTES.join(', ')} bytes, puts and gets, ` +
    'on each fabric of the package',
  schemes: ['src/transfer/layouts/way-costs.ts', 'bench/figures/automatic.ts'],
  necessary: async () => (await gridOn('connectx-16-cores')).over('auto').every((factor) => factor <= ALLOWED),
  async measure() {
    const all = await forEach(FABRICS, gridOn);
    const worst = (values: readonly number[], call: Cell['call'], pieces: number): number =>
      Math.max(...values.filter((_, i) => GRID[i].call === call && GRID[i].pieces === pieces));
    const failures = all.flatMap(({ name, over }) => {
      const places = over('auto').map((factor, i) => ({ factor, ...GRID[i] }));
      const worse = places.filter(({ factor }) => factor > ALLOWED).sort((a, b) => b.factor - a.factor);
      return worse.length === 0 ? [] : [{ name, count: worse.length, told: worse.slice(0, SHOWN) }];
    });
    const count = failures.reduce((sum, one) => sum + one.count, 0);
    const where = failures.map(
      (one) =>
        `${one.name} at ${one.count} of ${GRID.length} places, most at ` +
        one.told
          .map(({ call, pieces, bytes, factor }) => `a ${call} of ${pieces} × ${bytes} bytes (${factor.toFixed(2)})`)
          .join(', '),
    );
    const most = (way: Way): string => Math.max(...all.flatMap(({ over }) => over(way))).toFixed(2);
    return {
      chart: {
        kind: 'lines',
        x: { name: 'pieces', places: PIECES },
        y: { name: 'times as long as the quickest', logarithmic: true },
        also: Object.fromEntries(
          all.map(({ name, times }) => [`the quickest put of 16 pieces: ${name}`, crossover(times, 'put', 16)]),
        ),
        series: all.flatMap(({ name, over }) =>
          CALLS.flatMap((call) =>
            WAYS.map((way) => ({
              name: `${name}, ${call}, ${way}`,
              values: PIECES.map((pieces) => worst(over(way), call, pieces)),
            })),
          ),
        ),
      },
      measured:
        `of ${all.length * GRID.length} places auto is worse by more than 10 % at ${count}; ` +
        `it takes at most ${most('auto')} times as long as the quickest, ` +
        `${FIXED.map((way) => `${way} ${most(way)}`).join(', ')}. ` +
        `${failures.length === 0 ? 'It fails nowhere' : `It fails on ${where.join('; ')}`}`,
      holds: failures.length === 0,
      note:
        'when its window is made, auto measures what the fixed ways take between rank 0 and the last rank at some ' +
        'places of such a grid, and draws straight lines between them. A window with auto has a second connection, ' +
        'which must be polled as well: that is what auto loses on the shortest transfers. What a look takes there ' +
        '(`host.pollConnection`) has no source. The target waits in the library, where `host-assisted` is the same ' +
        'as `sgrs`',
    };
  },
};
