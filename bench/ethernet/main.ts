/**
 * `npm run bench:ethernet [-- --hosts 4] [--steps 50] [--only switch] [--docs docs [--redraw]]`: supersteps of
 * onesided/bsp over TCP (libfabric) between network namespaces of this machine, a process each: the relations of BSP
 * over TCP/IP, with the paces of `pacing`. Beside them MPI's messages, supersteps of LPF, and one write to a socket.
 *
 *   --hosts N   processes, each in a namespace of its own (default: 4)
 *   --steps N   supersteps that are measured (default: 50)
 *   --only TEXT networks whose name has that text
 *   --docs DIR  writes results-real-ethernet.md there, and the numbers to figures/real-ethernet.json
 *   --redraw    writes the page again from the numbers that DIR has, and measures nothing
 *
 * Needs root, iproute2 and libfabric. MPICH, Open MPI and LPF (`LPF_HOME`) are measured where they are installed.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BspOptions } from 'onesided/bsp';
import { LONG, type Measured, SHORT, spreadOf } from '../figures/shifts.ts';
import { inRange, orExplain } from '../options.ts';
import { compile, installed, LPF, PEERS, type Peer } from '../peers.ts';
import { ProgramError, ROOT, reportIn, run } from '../programs.ts';
import { cells, type Found, machineOf, type Row, together } from './found.ts';
import { addressOf, hostOf, NETWORKS, type Network, onNetwork, whyNot } from './networks.ts';
import { draw, write } from './page.ts';

const { hosts, steps, only, docs, redraw } = orExplain(() => {
  const { values } = parseArgs({
    options: {
      hosts: { type: 'string', default: '4' },
      steps: { type: 'string', default: '50' },
      only: { type: 'string', default: '' },
      docs: { type: 'string' },
      redraw: { type: 'boolean', default: false },
    },
  });
  const read = { ...values, hosts: Number(values.hosts), steps: Number(values.steps) };
  inRange('--hosts', read.hosts, 2, 16);
  inRange('--steps', read.steps, 5, 1000);
  if (read.redraw && read.docs === undefined) throw new RangeError('--redraw needs --docs DIR');
  return read;
});

/** Supersteps before those that are measured: `auto` has tried all then. */
const WARM = 61;
/** Microseconds of a frame of 1,518 bytes with what is between frames, at 10 Mbit/s. */
const FRAME_10 = 1230;
const MPI_WARM = 5;
const PEER_SECONDS = 60;

const isInstalled = ({ compiler, launcher }: Peer): boolean => installed(compiler) && installed(launcher);
const MPI = PEERS.filter(isInstalled);
/** LPF's engines that reach other hosts without an adapter. */
const BETWEEN_HOSTS = LPF.filter((one) => one.name !== 'lpf-pthread' && isInstalled(one));

const RELATIONS = [
  { name: `shift, ${4 * LONG} bytes`, words: LONG, pattern: 'shift' },
  { name: `shift, ${4 * SHORT} bytes`, words: SHORT, pattern: 'shift' },
  { name: `total exchange, ${4 * SHORT} bytes`, words: SHORT, pattern: 'total' },
] as const;
type Relation = (typeof RELATIONS)[number];

const frameOf = ({ rate }: Network): number => (FRAME_10 * 10) / Number.parseInt(rate, 10);

/** By their names: options of `begin`, and whether it is warmed up as `auto` is. */
function waysOn(network: Network): Readonly<Record<string, BspOptions>> {
  const frame = frameOf(network);
  return {
    none: {},
    'packets, unpaced': { pacing: { slot: 0 } },
    'Q = 1, a frame': { pacing: { slot: frame, Q: 1 } },
    'Q = senders, a frame': { pacing: { slot: frame } },
    "'slots'": { pacing: 'slots' },
    "'auto'": { pacing: 'auto' },
  };
}

async function ours(relation: Relation, options: BspOptions): Promise<Found> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-ethernet-'));
  try {
    const json = join(folder, 'result.json');
    const list = Array.from({ length: hosts }, (_, host) => `${hostOf(host)}:1`).join(',');
    const { words, pattern } = relation;
    const warm = options.pacing === 'auto' ? WARM : MPI_WARM;
    const shift = JSON.stringify({ words, pattern, warm, steps, options: { delivery: 'packed', ...options } });
    const program = [join(ROOT, 'build/programs/bench/ranks/figure.js'), '--', '--program', 'shifted'];
    const where = ['--hosts', list, '--ssh', 'ip netns exec', '--provider', 'libfabric'];
    const args = [join(ROOT, 'dist/cli/main.js'), 'run', ...where, ...program, '--options', shift, '--json', json];
    await run(process.execPath, args, { seconds: 120 });
    return together(
      Array.from({ length: hosts }, (_, rank) => JSON.parse(readFileSync(`${json}.${rank}`, 'utf8')) as Measured[]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whose launcher it is: LPF's calls that of the MPI it was built with, which MPICH's says of itself. */
function isHydra({ name, launcher }: Peer): boolean {
  if (name === 'mpich') return true;
  if (name === 'openmpi') return false;
  const shown = spawnSync(launcher, ['-show', '-engine', 'mpimsg', '-n', '1', 'true'], { encoding: 'utf8' }).stdout;
  return spawnSync(shown.split(' ')[0], ['--version'], { encoding: 'utf8' }).stdout.startsWith('HYDRA');
}

/** Arguments with which MPI's launcher starts a process on each host, by a command that takes an address for a name. */
function onHosts(hydra: boolean, agent: string, addresses: string): string[] {
  if (hydra) return ['-launcher', 'rsh', '-launcher-exec', agent, '-hosts', addresses];
  const parameters = {
    plm_rsh_agent: agent,
    btl: 'tcp,self',
    pml: 'ob1',
    btl_tcp_if_include: 'eth0',
    oob_tcp_if_include: 'eth0',
  };
  return ['--host', addresses, ...Object.entries(parameters).flatMap((one) => ['--mca', ...one])];
}

/** A program of bench/peers/, shift.c or superstep.c, on all hosts. */
async function peer(one: Peer, program: 'shift' | 'superstep', row: string, bytes: number): Promise<Found> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-ethernet-'));
  try {
    const agent = join(folder, 'agent');
    // `agent ADDRESS COMMAND…`: the last number of an address is that of its host, and one.
    const prefix = hostOf(0).slice(0, -1);
    const text = `#!/bin/sh\nhost=$(( \${1##*.} - 1 ))\nshift\nexec ip netns exec "${prefix}$host" sh -c "$*"\n`;
    writeFileSync(agent, text, { mode: 0o755 });
    const addresses = Array.from({ length: hosts }, (_, host) => addressOf(host)).join(',');
    const mpi = onHosts(isHydra(one), agent, addresses);
    // LPF's launcher hands on what begins so.
    const launch = program === 'superstep' ? mpi.map((argument) => `-mpirun,${argument}`) : mpi;
    const binary = await compile(program, one.compiler, one.flags);
    const args = [row, `${bytes}`, `${steps}`, `${MPI_WARM}`, ...(row === 'write' ? [addresses] : [])];
    const command = [one.launcher, ...one.launch(hosts), ...launch, binary, ...args];
    const env = { ...one.env, UCX_TLS: 'tcp,self', UCX_NET_DEVICES: 'eth0' };
    const out = await untilReported(['netns', 'exec', hostOf(0), ...command], env);
    return { superstep: spreadOf(reportIn(out).samples), errors: 0 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Runs `ip` until it has printed a report, then ends it: MPICH 4.0.2 over UCX often waits in MPI_Finalize for ever, for
 * what other processes send in calls of MPI only.
 */
function untilReported(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('ip', args, {
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, err] = ['', ''];
    const end = (): void => void process.kill(-child.pid!, 'SIGKILL');
    const timer = setTimeout(end, 1000 * PEER_SECONDS);
    child.stderr.on('data', (text: Buffer) => (err += text));
    child.stdout.on('data', (text: Buffer) => {
      out += text;
      if (out.includes(']}')) end();
    });
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(timer);
      if (out.includes(']}')) resolve(out);
      else reject(new ProgramError(`no report: ${err.trim().split('\n').at(-1)}`));
    });
  });
}

const rows: Row[] = [];
const loadBefore = loadavg()[0];

async function row(network: string, relation: string, way: string, measure: () => Promise<Found>): Promise<void> {
  try {
    rows.push({ network, relation, way, ...(await measure()) });
  } catch (error) {
    rows.push({ network, relation, way, failed: (error as Error).message });
  }
  console.log(cells(rows.at(-1)!).join(' · '));
}

if (redraw) {
  draw(docs!);
  process.exit();
}
const reason = whyNot();
if (reason !== undefined) {
  console.error(`bench:ethernet: ${reason}`);
  process.exit(2);
}
for (const network of NETWORKS.filter(({ name }) => name.includes(only))) {
  await onNetwork(network, hosts, async () => {
    for (const relation of RELATIONS) {
      for (const [way, options] of Object.entries(waysOn(network))) {
        await row(network.name, relation.name, way, () => ours(relation, options));
      }
      const [call, program] = relation.pattern === 'shift' ? ['Sendrecv', 'shift'] : ['Alltoall', 'total'];
      const bytes = 4 * relation.words;
      for (const one of MPI) {
        await row(network.name, relation.name, `${one.name}, MPI_${call}`, () => peer(one, 'shift', program, bytes));
      }
      for (const one of BETWEEN_HOSTS) {
        await row(network.name, relation.name, `${one.name}, lpf_put`, () => peer(one, 'superstep', program, bytes));
      }
      if (MPI.length === 0 || relation.pattern !== 'shift') continue;
      await row(network.name, relation.name, 'one write to a socket', () => peer(MPI[0], 'shift', 'write', bytes));
    }
  });
}
const wrong = rows.reduce((sum, { errors = 0 }) => sum + errors, 0);
console.log(
  `${rows.length} rows, ${rows.filter(({ failed }) => failed !== undefined).length} failed, ${wrong} values wrong`,
);
if (docs !== undefined) {
  write(docs, { ...machineOf(hosts, steps, loadBefore), rows });
  draw(docs);
}
