/** Slurm for one test file: its daemons on this machine, with a folder and ports of their own. Needs root. */
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/ports.ts';

export interface Slurm {
  /** What `srun` needs in its environment. */
  readonly environment: Record<string, string>;
  stop(): void;
}

/** @param nodes of how many CPUs the one node says that it has */
export async function startSlurm(cpus: number): Promise<Slurm> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-slurm-'));
  chmodSync(folder, 0o755);
  for (const name of ['munge', 'state', 'spool']) mkdirSync(join(folder, name), { mode: 0o755 });
  const munge = (name: string): string => join(folder, 'munge', name);
  writeFileSync(munge('key'), randomBytes(128), { mode: 0o400 });
  const host = hostname().split('.')[0];
  const file = join(folder, 'slurm.conf');
  const lines = {
    ClusterName: 'test',
    SlurmctldHost: `${host}(127.0.0.1)`,
    SlurmUser: 'root',
    SlurmdUser: 'root',
    AuthType: 'auth/munge',
    AuthInfo: `socket=${munge('socket')}`,
    CredType: 'cred/munge',
    StateSaveLocation: join(folder, 'state'),
    SlurmdSpoolDir: join(folder, 'spool'),
    SlurmctldPidFile: join(folder, 'slurmctld.pid'),
    SlurmdPidFile: join(folder, 'slurmd.pid'),
    SlurmctldLogFile: join(folder, 'slurmctld.log'),
    SlurmdLogFile: join(folder, 'slurmd.log'),
    SlurmctldPort: await freePort(),
    SlurmdPort: await freePort(),
    ProctrackType: 'proctrack/linuxproc',
    TaskPlugin: 'task/none',
    JobAcctGatherType: 'jobacct_gather/none',
    AccountingStorageType: 'accounting_storage/none',
    ReturnToService: 2,
    // What the machine has is not asked for: a rank for each of these CPUs is what the tests want.
    SlurmdParameters: 'config_overrides',
    NodeName: `${host} NodeAddr=127.0.0.1 CPUs=${Math.max(cpus, availableParallelism())}`,
    PartitionName: `all Nodes=${host} Default=YES State=UP OverSubscribe=FORCE:8`,
  };
  const text = Object.entries(lines).map(([key, value]) => `${key}=${value}\n`);
  writeFileSync(file, text.join(''));
  const environment = { SLURM_CONF: file };
  const run = (program: string, ...args: string[]): void =>
    void execFileSync(program, args, { stdio: 'ignore', env: { ...process.env, ...environment } });
  const stop = (): void => {
    for (const pid of [join(folder, 'slurmd.pid'), join(folder, 'slurmctld.pid'), munge('pid')]) endDaemon(pid);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const names = ['key', 'socket', 'pid', 'log', 'seed'] as const;
    const flags = { key: 'key-file', socket: 'socket', pid: 'pid-file', log: 'log-file', seed: 'seed-file' };
    run('munged', ...names.map((name) => `--${flags[name]}=${munge(name)}`));
    run('slurmctld', '-c');
    run('slurmd');
    await untilIdle(environment);
  } catch (error) {
    stop();
    throw error;
  }
  return { environment, stop };
}

async function untilIdle(environment: Record<string, string>): Promise<void> {
  let said = '';
  for (let attempt = 0; attempt < 150; attempt++) {
    const { stdout, stderr } = spawnSync('sinfo', ['-h', '-o', '%t'], { env: { ...process.env, ...environment } });
    said = `${stdout}${stderr}`.trim();
    if (said === 'idle') return;
    await sleep(200);
  }
  throw new Error(`Slurm does not come up: ${said}`);
}

function endDaemon(file: string): void {
  try {
    const pid = Number(readFileSync(file, 'utf8'));
    process.kill(pid, 'SIGTERM');
    for (let attempt = 0; attempt < 50; attempt++) {
      process.kill(pid, 0);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    }
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended, or never began.
  }
}
