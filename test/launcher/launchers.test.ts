/**
 * The launchers people have: MPICH's mpiexec (PMI-1), Open MPI's mpirun (PMIx) and Slurm's srun (PMI-2, PMIx) start
 * `node program.js`, and the ranks find each other. One that is not installed is not tested, and the test's name says
 * what to install; with ONESIDED_TEST_LAUNCHERS=1 (`npm run test:launchers`) all must be there.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { PROGRAM } from '../robustness/members.ts';
import { type Finished, leftWith, marker, processesWith } from './command.ts';
import { type Slurm, startSlurm } from './slurm.ts';

const EXAMPLE = fileURLToPath(new URL('../../examples/jacobi.js', import.meta.url));
const STEPS = fileURLToPath(new URL('../../build/programs/test/ranks/bsp-steps.js', import.meta.url));
const RANKS = 4;

// Slurm's daemons take some seconds to come up.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

interface Launcher {
  readonly name: string;
  /** Debian's packages. */
  readonly packages: string;
  /** The command before `node program.js`; nothing if it is not there. */
  readonly command: readonly string[] | undefined;
  environment?(): Promise<Record<string, string>>;
}

/** The first of the programs that is there and whose version says this. */
function find(pattern: RegExp, ...programs: string[]): string | undefined {
  return programs.find((program) => {
    const { stdout, stderr, error } = spawnSync(program, ['--version'], { encoding: 'utf8' });
    return error === undefined && pattern.test(`${stdout}${stderr}`);
  });
}

let slurm: Promise<Slurm> | undefined;
afterAll(async () => (await slurm)?.stop());
const slurmEnvironment = async (): Promise<Record<string, string>> => {
  slurm ??= startSlurm(2 * RANKS);
  return (await slurm).environment;
};

const hydra = find(/HYDRA/, 'mpiexec.mpich', 'mpiexec.hydra', 'mpiexec');
const orte = find(/Open MPI|open-mpi/, 'mpirun.openmpi', 'mpirun');
const isRoot = process.getuid?.() === 0;
const hasSlurm = ['slurmd', 'slurmctld', 'munged'].every((name) => spawnSync('which', [name]).status === 0);
const srun = isRoot && hasSlurm ? 'srun' : undefined;
const asRoot = { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
const SLURM_PACKAGES = 'slurmctld slurmd slurm-client munge';

const launchers: Launcher[] = [
  { name: 'mpiexec (PMI-1)', packages: 'mpich', command: hydra && [hydra, '-n', String(RANKS)] },
  {
    name: 'mpirun (PMIx)',
    packages: 'openmpi-bin',
    command: orte && [orte, '--oversubscribe', '-n', String(RANKS)],
    environment: async () => asRoot,
  },
  ...['pmi2', 'pmix'].map((mpi) => ({
    name: `srun --mpi=${mpi}`,
    packages: isRoot ? SLURM_PACKAGES : `${SLURM_PACKAGES}, and this only by root`,
    command: srun && [srun, `--mpi=${mpi}`, '-n', String(RANKS)],
    environment: slurmEnvironment,
  })),
].map((launcher) => ({ ...launcher, command: launcher.command || undefined }));

async function start(
  { command, environment }: Launcher,
  args: readonly string[],
  own: Readonly<Record<string, string>> = {},
) {
  const [program, ...rest] = command!;
  const child = spawn(program, [...rest, process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, FORCE_COLOR: '0', ...(await environment?.()), ...own },
  });
  const out = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (out.stderr += text));
  const finished = new Promise<Finished>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, ...out }));
  });
  return { child, out, finished };
}

function linesOf(stdout: string): { rank?: number; size?: number; done?: boolean; working?: boolean }[] {
  return [...stdout.matchAll(/^\{.*\}$/gm)].map(([line]) => JSON.parse(line));
}

describe.skipIf(loadNative() === undefined)('a job', () => {
  for (const launcher of launchers) {
    const { name, packages, command } = launcher;
    if (command === undefined) {
      // A failure where all are asked for, except for what an ordinary user cannot do.
      it.skipIf(process.env['ONESIDED_TEST_LAUNCHERS'] !== '1' || !isRoot)(`of ${name}: needs ${packages}`, () => {
        expect(command, `apt-get install ${packages}`).toBeDefined();
      });
      continue;
    }
    describe(`of ${name}`, () => {
      it(`is one world of ${RANKS} ranks, and ends with code 0`, async () => {
        const { finished } = await start(launcher, [PROGRAM, '--how=work']);
        const { code, stdout, stderr } = await finished;
        const lines = linesOf(stdout);
        const joined = lines.filter(({ rank }) => rank !== undefined);
        expect(joined.map(({ rank }) => rank).sort(), stdout + stderr).toEqual([0, 1, 2, 3]);
        expect(joined.map(({ size }) => size)).toEqual(joined.map(() => RANKS));
        expect(lines.filter(({ done }) => done)).toHaveLength(RANKS);
        expect(stderr).toBe('');
        expect(code).toBe(0);
      });

      it('runs an example unchanged', async () => {
        const { code, stdout, stderr } = await (await start(launcher, [EXAMPLE])).finished;
        expect(code, stdout + stderr).toBe(0);
        expect(stdout).toMatch(/\S/);
      });

      it('reports its supersteps', async () => {
        const folder = mkdtempSync(join(tmpdir(), 'onesided-launched-'));
        try {
          const job = await start(launcher, [STEPS], { ONESIDED_BSP_REPORT: join(folder, 'steps') });
          const { code, stdout, stderr } = await job.finished;
          expect(code, stdout + stderr).toBe(0);
          expect(stderr).toMatch(/BSP computation of 4 processes, shared delivery: 5 supersteps/);
          expect(readdirSync(folder).sort()).toEqual(['steps.json', 'steps.svg']);
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      });

      it('can stand beside another one', async () => {
        const jobs = await Promise.all([1, 2].map(() => start(launcher, [PROGRAM, '--how=work'])));
        for (const { finished } of jobs) {
          const { code, stdout, stderr } = await finished;
          expect(code, stdout + stderr).toBe(0);
        }
      });

      it('of which a rank is killed ends, not with code 0, and leaves nothing', async () => {
        const mark = marker();
        const job = await start(launcher, [PROGRAM, '--how=loop', mark]);
        while (linesOf(job.out.stdout).filter(({ working }) => working).length < RANKS) await sleep(20);
        const victim = processesWith(mark).find((pid) =>
          linesOf(job.out.stdout).some((line) => 'pid' in line && line.pid === pid),
        );
        process.kill(victim!, 'SIGKILL');
        const { code } = await job.finished;
        expect(code).not.toBe(0);
        expect(await leftWith(mark)).toEqual([]);
      });
    });
  }
});
