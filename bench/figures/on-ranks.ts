/** How rows are measured on real ranks (`npm run figures -- --real`): programs of processes, and what they tell. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WindowInfo } from 'onesided';
import { hintArguments } from '../patterns/hints.ts';
import { ROOT, run } from '../programs.ts';
import { show as digits, forEach } from './figure.ts';
import type { PROGRAMS } from './programs.ts';

type Programs = typeof PROGRAMS;
type Name = keyof Programs;
type Options<N extends Name> = Parameters<Programs[N]>[1];
export type Result<N extends Name> = Awaited<ReturnType<Programs[N]>>;

/** Before a program is measured it has run so often; then so often. */
export const WARM = 2000;
export const SAMPLES = 2000;
export const OPERATIONS = ['put', 'get'] as const;

/** A row on real ranks. */
export interface RealRow {
  /** In words, with numbers. */
  readonly measured: string;
  /** What must come out for the claim to hold on this machine. */
  readonly expected: string;
  readonly holds: boolean;
  /** Why it does not, where that is known. */
  readonly why?: string;
}

const CORES = availableParallelism();
/** Numbers of processes that each have a core: what grows with the processes is measured with each of them. */
export const RANKS: readonly number[] = [2, 4, 8, 16].filter((ranks) => ranks <= Math.max(2, CORES));

/** So many processes, and whether they take turns. */
export function processes(ranks: number): string {
  return `${ranks} processes${ranks > CORES ? ` (${CORES} can run at a time)` : ''}`;
}

/** What is expected of more and more processes, if there are cores for more than two. */
export function ofMore(expected: string, untold: string): string {
  return RANKS.length > 1 ? expected : `; with 2 processes nothing is said of ${untold}`;
}

/** Whether each is larger than the one before. */
export function rises(values: readonly number[]): boolean {
  return values.every((value, i) => i === 0 || value > values[i - 1]);
}

/** Between processes of one host, requests of the network are loads and stores of the origin. */
export const NOTHING_UNDER_WAY = 'an operation is complete when its call returns, so there is nothing to overlap';
/** As if nothing could be mapped: windows take the paths that they take on a device. */
export const BY_REQUESTS = { ONESIDED_DEBUG: 'requests' };

/** Without an exponent: there are milliseconds among microseconds. */
export function show(value: number): string {
  return String(Number(digits(value)));
}

async function inFolder<R>(body: (file: string) => Promise<R>): Promise<R> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-figures-'));
  try {
    return await body(join(folder, 'result.json'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function launch(
  program: string,
  ranks: number,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<void> {
  const command = join(ROOT, 'dist/cli/main.js');
  const main = join(ROOT, `build/programs/bench/ranks/${program}.js`);
  await run(process.execPath, [command, 'run', '-n', `${ranks}`, main, '--', ...args], { env });
}

/** Runs a program of programs.ts on so many processes. @returns what each of them has found */
export function onRanks<N extends Name>(
  ranks: number,
  program: N,
  options: Options<N>,
  env: Record<string, string> = {},
): Promise<Result<N>[]> {
  return inFolder(async (file) => {
    await launch('figure', ranks, ['--program', program, '--options', JSON.stringify(options), '--json', file], env);
    return Array.from({ length: ranks }, (_, rank) => JSON.parse(readFileSync(`${file}.${rank}`, 'utf8')));
  });
}

/** By scheme. */
export type By<S extends string, R> = Readonly<Record<S, R>>;

export async function by<S extends string, R>(
  schemes: readonly S[],
  measure: (scheme: S) => Promise<R>,
): Promise<By<S, R>> {
  const found = await forEach(schemes, async (scheme) => [scheme, await measure(scheme)] as const);
  return Object.fromEntries(found) as By<S, R>;
}

/** The name of each scheme, and what is told of it. */
export function told<S extends string, R>(found: By<S, R>, tell: (one: R) => string): string {
  return Object.entries<R>(found)
    .map(([scheme, one]) => `${scheme} ${tell(one)}`)
    .join(', ');
}

/** The same of schemes that were measured with several numbers of processes. */
export function toldEach<S extends string, R>(found: readonly By<S, R>[], tell: (one: R) => string): string {
  const schemes = Object.keys(found[0]) as S[];
  return schemes.map((scheme) => `${scheme} ${found.map((one) => tell(one[scheme])).join(', ')}`).join('; ');
}

/** What a program of bench/ranks/ writes of itself. */
export function programOn<R>(program: string, ranks: number, args: string): Promise<R> {
  return inFolder(async (file) => {
    await launch(program, ranks, [...args.split(' '), '--json', file, '--quiet']);
    return JSON.parse(readFileSync(file, 'utf8'));
  });
}

/** A program of bench/ranks/, by the hints of its windows: what it finds in `field`, the least if it has several. */
export function field<S extends string>(
  program: string,
  ranks: number,
  args: string,
  hints: By<S, WindowInfo>,
  field: string,
): Promise<By<S, number>> {
  return by(Object.keys(hints) as S[], (scheme) =>
    inFolder(async (file) => {
      await launch(program, ranks, [...args.split(' '), ...hintArguments(hints[scheme]), '--json', file, '--quiet']);
      const found = JSON.parse(readFileSync(file, 'utf8'))[field] as number | readonly number[];
      return typeof found === 'number' ? found : Math.min(...found);
    }),
  );
}
