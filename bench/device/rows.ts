/** What is measured on a device, beside what, and what is asked of it. */
import type { Requirement, Unit } from '../rows.ts';

export type PerftestCommand = 'ib_write_lat' | 'ib_atomic_lat' | 'ib_write_bw';

export interface DeviceRow {
  readonly id: string;
  readonly unit: Unit;
  readonly better: 'lower' | 'higher';
  /** `verbs` is without a window; the others make theirs on the device. */
  readonly ours: {
    readonly program: 'ranks/verbs' | 'ranks/rma' | 'ranks/barrier-compute' | 'hpcc/random-access';
    readonly args: readonly string[];
  };
  /** Two, if it does not say. */
  readonly ranks?: number;
  readonly peer?:
    | { readonly name: 'perftest'; readonly command: PerftestCommand; readonly bytes: number }
    | { readonly name: 'verbs'; readonly row: string }
    /** The same program of ours, in another way. */
    | { readonly name: 'messages'; readonly args: readonly string[] };
  readonly required?: Requirement;
  /** Both ranks wait for each other in each iteration, and look again and again meanwhile. */
  readonly together: boolean;
  /** An iteration takes so long that V8 has compiled everything only after thousands of millions of instructions. */
  readonly long?: boolean;
}

function perftest(name: string, ours: string, command: PerftestCommand, unit: 'ns' | 'MB/s', ratio: number): DeviceRow {
  return {
    id: `rdma-${name}`,
    unit,
    better: unit === 'ns' ? 'lower' : 'higher',
    ours: { program: 'ranks/verbs', args: [ours] },
    peer: { name: 'perftest', command, bytes: Number(ours.split('/')[1]) },
    required: { ratio },
    together: command === 'ib_write_lat',
  };
}

/**
 * A row of bench/ranks/rma.ts.
 * @param peer of bench/peers/verbs.c
 */
function window(row: string, peer = row): DeviceRow {
  return {
    id: `rdma-${row}`,
    unit: 'ns',
    better: 'lower',
    ours: { program: 'ranks/rma', args: [row] },
    peer: { name: 'verbs', row: peer },
    required: { ratio: 0.8 },
    together: row.startsWith('fence'),
  };
}

/**
 * How a layout of many pieces moves: by a scheme of ours (hint `noncontiguous`), and by the same in C (`likeC`). With
 * both ranks on one core, who waits for the other yields, so instructions are those of both.
 */
function layout(row: string, scheme: string, likeC: '' | '-pack' | '-sgrs'): DeviceRow {
  const [name, size] = row.split('/');
  return {
    id: `rdma-${row}-${scheme}`,
    unit: 'ns',
    better: 'lower',
    ours: { program: 'ranks/rma', args: [row, '--noncontiguous', scheme] },
    peer: { name: 'verbs', row: `${name}${likeC}/${size}` },
    required: { ratio: 0.8 },
    together: false,
    long: true,
  };
}

/** Each scheme beside itself in C; `auto` beside the one that it takes on Soft-RoCE. */
function layouts(row: string, auto: '' | '-pack' | '-sgrs'): DeviceRow[] {
  return [
    layout(row, 'multi-write', ''),
    layout(row, 'pack', '-pack'),
    layout(row, 'sgrs', '-sgrs'),
    layout(row, 'auto', auto),
  ];
}

/**
 * What is left of a barrier of four ranks behind a computation, by a thread of the addon beside the ranks' own messages
 * (report on NIC-based barriers, N1): of two ranks, each message leaves at once whatever carries the barrier out. On
 * fewer than eight cores threads and ranks share them, and it is also the scheduler that is measured.
 */
function barrierBehind(microseconds: number): DeviceRow {
  const args = (kind: string): string[] => [kind, String(microseconds)];
  return {
    id: `rdma-barrier-compute/${microseconds}`,
    unit: 'ns',
    better: 'lower',
    ours: { program: 'ranks/barrier-compute', args: args('adapter') },
    ranks: 4,
    peer: { name: 'messages', args: args('messages') },
    together: true,
  };
}

export const DEVICE_ROWS: readonly DeviceRow[] = [
  perftest('verbs-write/8', 'write/8', 'ib_write_lat', 'ns', 0.7),
  perftest('verbs-atomic', 'atomic/8', 'ib_atomic_lat', 'ns', 0.7),
  perftest('verbs-bandwidth/65536', 'bandwidth/65536', 'ib_write_bw', 'MB/s', 0.9),
  window('put-flush/8'),
  window('put-flush/65536'),
  window('get-flush/8'),
  window('acc-flush-double/8'),
  window('lock-put-unlock/8'),
  window('fence-put-fence/8'),
  barrierBehind(0),
  barrierBehind(2_000),
  barrierBehind(10_000),
  ...['2x8', '8x8', '64x64'].flatMap((pieces) => [
    window(`separate-puts/${pieces}`, `put-vector/${pieces}`),
    window(`aggregate-puts/${pieces}`, `put-vector/${pieces}`),
  ]),
  ...layouts('put-vector/64x64', '-pack'),
  ...layouts('put-vector/128x1024', ''),
  ...layouts('get-vector/128x1024', ''),
  {
    id: 'rdma-gups/aggregated',
    unit: 'GUP/s',
    better: 'higher',
    ours: { program: 'hpcc/random-access', args: ['--variant', 'aggregated', '--words', '2^12'] },
    together: true,
  },
];
