/** The libraries beside which we measure: what is installed, how its programs are compiled, and how they run. */
import { accessSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { type Report, ROOT, reportIn, run } from './programs.ts';

export interface Peer {
  readonly name: string;
  readonly compiler: string;
  /** What the compiler is told besides. */
  readonly flags?: readonly string[];
  readonly launcher: string;
  /** Debian's packages. */
  readonly packages: string;
  readonly env: NodeJS.ProcessEnv;
  /** Arguments of the launcher. */
  launch(ranks: number): readonly string[];
  /** Tried where the defaults fail, and in words. */
  readonly fallback?: { readonly env: NodeJS.ProcessEnv; readonly words: string } | undefined;
}

/**
 * Both run as they do for somebody who has just installed them. Open MPI refuses root unless told twice, and more ranks
 * than cores unless told once. Its default for windows, osc/rdma over vader, crashes in a 64-bit compare-and-swap
 * (open-mpi/ompi#7967, #11349); its osc/sm does not.
 */
export const PEERS: readonly Peer[] = [
  {
    name: 'mpich',
    compiler: 'mpicc.mpich',
    launcher: 'mpiexec.mpich',
    packages: 'mpich libmpich-dev',
    env: {},
    launch: (ranks) => ['-n', String(ranks)],
  },
  {
    name: 'openmpi',
    compiler: 'mpicc.openmpi',
    launcher: 'mpirun.openmpi',
    packages: 'openmpi-bin libopenmpi-dev',
    env: { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' },
    launch: (ranks) => [...(ranks > availableParallelism() ? ['--oversubscribe'] : []), '-n', String(ranks)],
    fallback: { env: { OMPI_MCA_osc: 'sm' }, words: '--mca osc sm' },
  },
];

/**
 * The same over TCP alone, also between ranks of one host: Open MPI's osc/rdma fails there (MPI_Win_allocate:
 * MPI_ERR_WIN), so windows are made of its messages.
 */
export const TCP_PEERS: readonly Peer[] = PEERS.map((peer) => ({
  ...peer,
  env:
    peer.name === 'mpich'
      ? { ...peer.env, UCX_TLS: 'tcp,self', MPIR_CVAR_NOLOCAL: '1' }
      : { ...peer.env, OMPI_MCA_pml: 'ob1', OMPI_MCA_btl: 'tcp,self', OMPI_MCA_osc: 'pt2pt' },
  fallback: undefined,
}));

/** LPF's commands are in the path, or in `bin/` of the folder that `LPF_HOME` names. */
const LPF_BIN = process.env['LPF_HOME'] === undefined ? '' : `${join(process.env['LPF_HOME'], 'bin')}/`;

/**
 * The engines of LPF (Lightweight Parallel Foundations) that run on one machine without an adapter: threads, and MPI's
 * messages and one-sided calls. Its hybrid engine is left out: with MPICH 4.0.2 its launcher ends before the program
 * begins ("Startup sanity check failed").
 */
export const LPF: readonly Peer[] = ['pthread', 'mpimsg', 'mpirma'].map((engine) => ({
  name: `lpf-${engine}`,
  compiler: `${LPF_BIN}lpfcc`,
  flags: ['-engine', engine],
  launcher: `${LPF_BIN}lpfrun`,
  packages: 'LPF is built from its source (github.com/Algebraic-Programming/LPF)',
  env: PEERS[1].env, // for an LPF over Open MPI
  launch: (ranks) => ['-engine', engine, '-n', String(ranks)],
}));

/** As a distribution compiles programs; those that compute, as one compiles programs that compute. */
const OPTIMIZATION: Readonly<Record<string, string>> = { lu: '-O3', summa: '-O3', mg: '-O3', cg: '-O3', bsp: '-O3' };

const SOURCES = join(ROOT, 'bench/peers');
const BINARIES = join(ROOT, 'build/peers');

/** Whether a command is in the path. It is not run: `hpcc` would run all of its benchmarks, whatever it is asked. */
export function installed(command: string): boolean {
  const folders = isAbsolute(command)
    ? ['']
    : (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return folders.some((folder) => {
    try {
      accessSync(isAbsolute(command) ? command : join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Compiles a program of bench/peers/ unless that has been done. @returns the binary */
export async function compile(program: string, compiler: string, flags: readonly string[] = []): Promise<string> {
  mkdirSync(BINARIES, { recursive: true });
  const binary = join(
    BINARIES,
    `${program}.${[...basename(compiler).split('.').slice(-1), ...flags.slice(1)].join('.')}`,
  );
  const newest = Math.max(...readdirSync(SOURCES).map((name) => modified(join(SOURCES, name))));
  if (modified(binary) < newest) {
    const optimization = OPTIMIZATION[program] ?? '-O2';
    await run(compiler, [...flags, optimization, '-o', binary, join(SOURCES, `${program}.c`), '-lm']);
  }
  return binary;
}

/** Runs one row on a peer. */
export async function runPeer(
  peer: Peer,
  program: string,
  args: readonly string[],
  ranks: number,
  env: NodeJS.ProcessEnv = {},
): Promise<Report> {
  const binary = await compile(program, peer.compiler, peer.flags);
  return reportIn(await run(peer.launcher, [...peer.launch(ranks), binary, ...args], { env: { ...peer.env, ...env } }));
}

/** A plain memcpy, or undefined without a C compiler. */
export async function runMemcpy(args: readonly string[]): Promise<Report | undefined> {
  if (!installed('cc')) return undefined;
  return reportIn(await run(await compile('memcpy', 'cc'), args));
}

/** Two processes with a TCP connection, or undefined without a C compiler. @param args of bench/peers/sockets.c */
export async function runSockets(args: readonly string[]): Promise<Report | undefined> {
  if (!installed('cc')) return undefined;
  return reportIn(await run(await compile('sockets', 'cc'), args));
}

/** Whether Node finds the package `lmdb` from this folder. */
export function lmdbIsInstalled(): boolean {
  try {
    createRequire(join(SOURCES, 'lmdb.mjs')).resolve('lmdb');
    return true;
  } catch {
    return false;
  }
}

/** The map of the benchmark in an LMDB database. @param length samples, and their milliseconds */
export async function runLmdb(processes: number, length: readonly string[]): Promise<Report> {
  return reportIn(await run(process.execPath, [join(SOURCES, 'lmdb.mjs'), String(processes), ...length]));
}
