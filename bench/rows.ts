/** The benchmark's rows: what is measured, beside what, and what is asked of it. */

export type Unit = 'ns' | 'ms' | 'MB/s' | 'GUP/s' | '%' | 'MiB';

/** A program of ours on our ranks, its arguments without the number of samples. */
export interface RankProgram {
  readonly program:
    | 'ranks/rma'
    | 'ranks/contended'
    | 'ranks/bsp'
    | 'ranks/footprint'
    | 'ranks/lu'
    | 'ranks/summa'
    | 'ranks/mg'
    | 'ranks/cg'
    | 'hpcc/random-access';
  readonly args: readonly string[];
  /** What of its result the samples are, if it writes one: `milliseconds`, unless this says otherwise. */
  readonly field?: 'milliseconds' | 'fetching' | 'gups';
}

/** What a row has to reach. Several are alternatives: one is enough. */
export interface Requirement {
  /** Times the best peer. */
  readonly ratio?: number;
  /** Times a plain memcpy. */
  readonly ofMemcpy?: number;
  /** At most this value, in the row's unit. */
  readonly below?: number;
  /** At most so many times `Row.beside`. */
  readonly timesBeside?: number;
}

export interface Row {
  readonly id: string;
  readonly unit: Unit;
  readonly better: 'lower' | 'higher';
  readonly ranks: number;
  readonly ours: RankProgram;
  /**
   * The peers' program and its first arguments; `hpcc` and the words of its table; of `bsp`, engines of LPF are peers.
   * Rows with the same peer share what was measured of it.
   */
  readonly peer?: {
    readonly program: 'rma' | 'contended' | 'bsp' | 'footprint' | 'lu' | 'summa' | 'mg' | 'cg' | 'hpcc';
    readonly args: readonly string[];
  };
  /** What bench/peers/memcpy.c is asked for. */
  readonly memcpy?: string;
  /** What bench/peers/sockets.c is asked for. */
  readonly sockets?: string;
  /** An earlier row that this one is compared with: that of the `Sync` form, or of a quiet machine. */
  readonly beside?: string;
  /** Programs that keep a core busy each, meanwhile. */
  readonly busy?: number;
  readonly required?: Requirement;
}

/** The table of the RandomAccess rows. */
const TABLE_WORDS = 2 ** 24;

function rma(name: string, ranks: number, required?: Requirement, more: Partial<Row> = {}): Row {
  const bandwidth = name.includes('bandwidth');
  return {
    id: name,
    unit: bandwidth ? 'MB/s' : 'ns',
    better: bandwidth ? 'higher' : 'lower',
    ranks,
    ours: { program: 'ranks/rma', args: [name] },
    peer: { program: 'rma', args: [name] },
    ...(required === undefined ? {} : { required }),
    ...more,
  };
}

/** A row that the programs know by another name. */
function named(id: string, name: string, required: Requirement): Row {
  return rma(id, 2, required, { ours: { program: 'ranks/rma', args: [name] }, peer: { program: 'rma', args: [name] } });
}

/** The promise forms of a row, beside the same peers. */
function awaited(name: string, ranks: number, required?: Requirement): Row {
  return rma(`${name}-async`, ranks, required, { peer: { program: 'rma', args: [name] }, beside: name });
}

function bandwidth(direction: 'put' | 'get', bytes: number): Row {
  const name = `${direction}-bandwidth/${bytes}`;
  if (bytes <= 8) return rma(name, 2, { ratio: 1 });
  return rma(name, 2, { ratio: 1, ofMemcpy: 0.9 }, { memcpy: `${direction}/${bytes}` });
}

function gups(variant: string, required?: Requirement): Row {
  return {
    id: `gups/${variant}`,
    unit: 'GUP/s',
    better: 'higher',
    ranks: 2,
    ours: {
      program: 'hpcc/random-access',
      args: ['--variant', variant, '--words', String(TABLE_WORDS)],
      field: 'gups',
    },
    peer: { program: 'hpcc', args: [String(TABLE_WORDS)] },
    ...(required === undefined ? {} : { required }),
  };
}

/** SPLASH LU of n × n in blocks of 128. Without other ranks it is little else than its kernel. */
function lu(id: string, n: number, ranks: number, required?: Requirement): Row {
  const [size, block] = [String(n), '128'];
  return {
    id: `${id}/${n}`,
    unit: 'ms',
    better: 'lower',
    ranks,
    ours: { program: 'ranks/lu', args: ['--n', size, '--block', block] },
    peer: { program: 'lu', args: [size, block] },
    ...(required === undefined ? {} : { required }),
  };
}

/** The product of n × n matrices by panels of 64, or what of its time rank 0 has spent in its gets. */
function summa(id: 'summa' | 'summa-gets', n: number, required?: Requirement): Row {
  const [size, panel] = [String(n), '64'];
  const gets = id === 'summa-gets';
  return {
    id: `${id}/${n}`,
    unit: 'ms',
    better: 'lower',
    ranks: 2,
    ours: {
      program: 'ranks/summa',
      args: ['--m', size, '--n', size, '--k', size, '--panel', panel],
      ...(gets && { field: 'fetching' }),
    },
    peer: { program: 'summa', args: [size, panel, gets ? 'gets' : 'product'] },
    ...(required === undefined ? {} : { required }),
  };
}

/** A NAS kernel, verified, in a style that both sides have. */
function nas(kernel: 'mg' | 'cg', style: 'messages' | 'blocking', name: 'S' | 'W'): Row {
  return {
    id: `${kernel}-${style}/${name}`,
    unit: 'ms',
    better: 'lower',
    ranks: 2,
    ours: { program: `ranks/${kernel}`, args: ['--class', name, '--style', style] },
    peer: { program: kernel, args: [name, style] },
  };
}

function footprint(id: string, unit: Unit, ranks: number, ours: string, peer: string, required?: Requirement): Row {
  return {
    id,
    unit,
    better: 'lower',
    ranks,
    ours: { program: 'ranks/footprint', args: [ours] },
    peer: { program: 'footprint', args: [peer] },
    ...(required === undefined ? {} : { required }),
  };
}

/** A bulk-synchronous program, beside LPF. @param peer LPF's row */
function bsp(id: string, unit: Unit, required?: Requirement, peer = id): Row {
  return {
    ...{ id, unit, better: 'lower', ranks: 2 },
    ours: { program: 'ranks/bsp', args: [id] },
    peer: { program: 'bsp', args: [peer] },
    ...(required === undefined ? {} : { required }),
  };
}

/**
 * Locks that all ranks want. With another program on a core, a row may take twice what the ranks' share of the two
 * cores explains: ranks and program are weighed alike.
 */
function contended(what: 'lock' | 'map', ranks: number, busy: 0 | 1): Row {
  const quiet = `${what}-quiet/${ranks}`;
  const cores = 2;
  const share = (ranks * cores) / (ranks + busy) / Math.min(ranks, cores);
  return {
    id: busy === 0 ? quiet : `${what}-busy/${ranks}`,
    unit: 'ns',
    better: 'lower',
    ranks,
    ours: { program: 'ranks/contended', args: [what] },
    peer: { program: 'contended', args: [what] },
    required: busy === 0 ? { ratio: 1 } : { ratio: 1, timesBeside: 2 / share },
    ...(busy > 0 && { busy, beside: quiet }),
  };
}

/** A row over TCP, beside sockets. */
function overTcp(direction: 'put' | 'get', bytes: number): Row {
  return rma(`${direction}-flush/${bytes}`, 2, { ratio: 1 }, { sockets: `${direction}/${bytes}` });
}

/** With `--tcp`: ranks that reach each other by TCP alone. The target waits in a barrier. */
export const TCP_ROWS: readonly Row[] = [
  ...[8, 65536, 1048576].flatMap((bytes) => [overTcp('put', bytes), overTcp('get', bytes)]),
  ...['fop-flush/8', 'cas-flush/8', 'acc-flush/8', 'getacc-flush/8', 'acc-flush-double/8'].map((name) =>
    rma(name, 2, { ratio: 1 }),
  ),
  ...['lock-put-unlock/8', 'lockall-put/8', 'fence-put-fence/8', 'pscw-put/8'].map((name) =>
    rma(name, 2, { ratio: 1 }),
  ),
  // 16 of them before the flush.
  rma('puts-flush/8', 2, { ratio: 1 }),
  rma('put-bandwidth/8', 2, { ratio: 1 }),
  rma('put-bandwidth/65536', 2, { ratio: 1 }),
  rma('put-bandwidth/1048576', 2, { ratio: 1 }),
  rma('get-bandwidth/1048576', 2, { ratio: 1 }),
  rma('put-vector/64x64', 2, { ratio: 1 }),
  rma('barrier/2', 2, { ratio: 1 }),
  { ...gups('aggregated', { ratio: 1 }), ...smallTable('aggregated') },
  lu('lu', 1024, 2, { ratio: 1 }),
];

/** Of 2 MiB: an update takes a round trip. */
function smallTable(variant: string): Pick<Row, 'ours' | 'peer'> {
  const words = String(2 ** 18);
  return {
    ours: { program: 'hpcc/random-access', args: ['--variant', variant, '--words', words], field: 'gups' },
    peer: { program: 'hpcc', args: [words] },
  };
}

export const ROWS: readonly Row[] = [
  rma('put-flush/8', 2, { ratio: 1.5 }),
  rma('get-flush/8', 2, { ratio: 1.5 }),
  rma('fop-flush/8', 2, { ratio: 1 }),
  rma('cas-flush/8', 2, { ratio: 1 }),
  rma('acc-flush/8', 2, { ratio: 1 }),
  rma('acc-flush-double/8', 2),
  rma('lock-put-unlock/8', 2, { ratio: 1 }),
  rma('lock-shared-put-unlock/8', 2),
  rma('fence-put-fence/8', 2, { ratio: 3 }),
  rma('put-flush/65536', 2, { ratio: 0.95 }),
  rma('put-flush/1048576', 2, { ratio: 0.95 }),
  rma('get-flush/65536', 2, { ratio: 0.95 }),
  rma('get-flush/1048576', 2, { ratio: 0.95 }),
  ...[8, 65536, 1048576].map((bytes) => bandwidth('put', bytes)),
  ...[8, 65536, 1048576].map((bytes) => bandwidth('get', bytes)),
  rma('pscw-put/8', 2, { ratio: 2 }),
  rma('lockall-put/8', 2, { ratio: 1 }),
  rma('rput-wait/8', 2, { ratio: 1 }),
  rma('getacc-flush/8', 2, { ratio: 1 }),
  named('sync', 'sync/8', { ratio: 1 }),
  named('acc-flush/65536', 'acc-doubles/65536', { ratio: 1 }),
  named('getacc-flush/65536', 'getacc-doubles/65536', { ratio: 1 }),
  rma('acc-contended/2', 2, { ratio: 3 }),
  rma('acc-contended/4', 4, { ratio: 3 }),
  rma('put-vector/64x64', 2, { ratio: 2 }),
  rma('get-vector/128x1024', 2, { ratio: 2 }),
  rma('put-subarray/512x512', 2, { ratio: 2 }),
  rma('acc-indexed/1024', 2, { ratio: 2 }),
  rma('acc-indexed-integer/1024', 2),
  rma('put-usermemory/8', 2, { ratio: 1 }),
  rma('put-usermemory/65536', 2, { ratio: 1 }),
  rma('put-usermemory/1048576', 2, { ratio: 1 }),
  ...([0, 1] as const).flatMap((busy) => [
    contended('lock', 2, busy),
    contended('lock', 4, busy),
    contended('map', 2, busy),
  ]),
  rma('barrier/2', 2, { ratio: 1 }),
  rma('barrier/8', 8, { ratio: 1 }),
  rma('ibarrier-compute/20', 2),
  gups('aggregated', { ratio: 4 }),
  gups('accumulate'),
  gups('get-modify-put'),
  gups('fetch-and-add'),
  lu('lu', 2048, 2, { ratio: 1 }),
  lu('lu-alone', 2048, 1),
  summa('summa', 1024, { ratio: 1 }),
  summa('summa-gets', 1024),
  ...(['S', 'W'] as const).flatMap((name) =>
    (['mg', 'cg'] as const).flatMap((kernel) => [nas(kernel, 'messages', name), nas(kernel, 'blocking', name)]),
  ),
  awaited('put-flush/8', 2),
  awaited('get-flush/8', 2),
  awaited('lock-put-unlock/8', 2),
  awaited('fence-put-fence/8', 2, { timesBeside: 2 }),
  awaited('barrier/2', 2),
  awaited('barrier/8', 8),
  footprint('idle-parked', '%', 2, 'idle', 'idle', { below: 1 }),
  footprint('idle-parked-async', '%', 2, 'idle-async', 'idle', { below: 1 }),
  footprint('memory/2', 'MiB', 2, 'memory', 'memory'),
  footprint('memory/8', 'MiB', 8, 'memory', 'memory'),
  bsp('bsp-l/2', 'ns', { ratio: 1 }),
  bsp('bsp-g/2', 'ns', { ratio: 1 }),
  bsp('bsp-g-put/2', 'ns', undefined, 'bsp-g/2'),
  bsp('bsp-fft/2^18', 'ms', { ratio: 1 }),
];
