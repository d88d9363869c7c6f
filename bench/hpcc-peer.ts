/**
 * HPC Challenge's own RandomAccess, of Debian's package `hpcc` (on Open MPI): the peer of our GUPS rows.
 *
 * hpcc always runs all of its benchmarks, MPI RandomAccess first; it is stopped when that has reported. It chooses the
 * table: the largest power of two of words that is not above N², N being the size of Linpack's matrix, if the process
 * grid has all ranks.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Peer } from './peers.ts';
import { ProgramError, type Report, ROOT } from './programs.ts';

const DEADLINE = 120;

/** The input file: one small problem, whose matrix makes a table of `words`. */
export function input(words: number, ranks: number): string {
  const n = Math.ceil(Math.sqrt(words) * 1.02);
  const lines: readonly (readonly [value: string | number, meaning: string])[] = [
    ['HPL', ''],
    ['Input', ''],
    ['HPL.out', 'ignored'],
    [8, 'ignored'],
    [1, 'matrices'],
    [n, 'N'],
    [1, 'block sizes'],
    [80, 'NB'],
    [0, 'row-major'],
    [1, 'grids'],
    [1, 'P'],
    [ranks, 'Q'],
    [16, 'threshold'],
    [1, 'panel factorizations'],
    [1, 'Crout'],
    [1, 'stopping criteria'],
    [4, 'NBMIN'],
    [1, 'divisors'],
    [2, 'NDIV'],
    [1, 'recursive factorizations'],
    [1, 'Crout'],
    [1, 'broadcasts'],
    [1, '1-ring'],
    [1, 'look-ahead depths'],
    [1, 'depth'],
    [2, 'swap'],
    [64, 'swapping threshold'],
    [0, 'L1 transposed'],
    [0, 'U transposed'],
    [1, 'equilibration'],
    [8, 'alignment'],
    ['#', 'ignored'],
    [0, 'more matrices for PTRANS'],
    [n, 'N'],
    [0, 'more block sizes for PTRANS'],
    [80, 'NB'],
  ];
  return lines.map(([value, meaning]) => `${String(value).padEnd(8)} ${meaning}\n`).join('');
}

/** The GUP/s of MPI RandomAccess in hpcc's output; undefined while it has not reported. */
export function gupsIn(output: string, words: number): number | undefined {
  const section = /Begin of MPIRandomAccess section\.([\s\S]*?)End of MPIRandomAccess section\./.exec(output)?.[1];
  if (section === undefined) return undefined;
  const table = /Total Main table size = .*= (\d+) words/.exec(section)?.[1];
  if (Number(table) !== words) throw new ProgramError(`hpcc chose a table of ${table} words, not ${words}`);
  if (!section.includes('(passed)')) throw new ProgramError('hpcc: its verification failed');
  const gups = /^\s*([\d.]+) Billion\(10\^9\) Updates\s+per second \[GUP\/s\]/m.exec(section)?.[1];
  if (gups === undefined) throw new ProgramError('hpcc reported no GUP/s');
  return Number(gups);
}

/** Runs hpcc. @param peer Open MPI */
export async function runHpcc({ launcher, env, launch }: Peer, words: number, ranks: number): Promise<Report> {
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'build/hpcc-'));
  const output = join(folder, 'hpccoutf.txt');
  writeFileSync(join(folder, 'hpccinf.txt'), input(words, ranks));
  writeFileSync(output, '');
  const child = spawn(launcher, [...launch(ranks), 'hpcc'], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: 'ignore',
  });
  let ended = false;
  const end = new Promise<void>((resolve) => {
    for (const event of ['exit', 'error']) {
      child.on(event, () => {
        ended = true;
        resolve();
      });
    }
  });
  try {
    for (let waited = 0; waited < DEADLINE; waited += 0.1) {
      const gups = gupsIn(readFileSync(output, 'utf8'), words);
      if (gups !== undefined) return { samples: [gups] };
      if (ended) throw new ProgramError('hpcc ended without a result of MPI RandomAccess');
      await setTimeout(100);
    }
    throw new ProgramError(`hpcc did not report MPI RandomAccess within ${DEADLINE} s`);
  } finally {
    if (!ended) child.kill('SIGTERM');
    await end;
    rmSync(folder, { recursive: true, force: true });
  }
}
