/**
 * Runs the programs of test/ranks on ranks that are processes or threads, by `onesided run`, as a user would.
 * `npm run build` has compiled them to build/programs.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadNative } from '../../src/native.ts';
import type { Selection } from '../ranks/support/selections.ts';
import { IN_GATE } from './gate.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export type RankKind = 'processes' | 'threads';

/** What ranks can be here: without the addon, threads only. In CI it must be there, or tests fail. */
export const RANK_KINDS: readonly RankKind[] =
  loadNative() === undefined && process.env['CI'] === undefined ? ['threads'] : ['processes', 'threads'];

/**
 * Each number of ranks on one of the kinds, in turn, and the last one on all: what depends on both is not tried in
 * every combination. In the gate, two or three ranks of each kind.
 */
export function rankRuns(sizes: readonly number[]): readonly { readonly kind: RankKind; readonly size: number }[] {
  if (IN_GATE) return RANK_KINDS.map((kind, i) => ({ kind, size: sizes.includes(3) ? 3 - i : 2 }));
  return sizes.flatMap((size, i) => {
    const kinds = i === sizes.length - 1 ? RANK_KINDS : [RANK_KINDS[i % RANK_KINDS.length]];
    return kinds.map((kind) => ({ kind, size }));
  });
}

export interface RanksOptions {
  readonly kind: RankKind;
  readonly size: number;
  readonly args?: readonly string[];
  /** Which of its cases (runCases), if not all. */
  readonly cases?: Selection | undefined;
  /** Seconds after which the launcher ends the job, and the default deadline of whatever waits in it. */
  readonly timeout?: number;
  /** Options for Node itself. */
  readonly execArgv?: readonly string[];
  /** Options for the launcher. */
  readonly launch?: readonly string[];
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What a program of test/ranks is compiled to. */
export function programOf(name: string): string {
  const program = fileURLToPath(new URL(`../../build/programs/test/ranks/${name}.js`, import.meta.url));
  if (!existsSync(program) || !existsSync(MAIN))
    throw new Error(`${program} or ${MAIN} is missing; "npm run build" makes both`);
  return program;
}

/** What a program of test/ranks is told. */
export function argumentsOf({ args = [], cases }: Pick<RanksOptions, 'args' | 'cases'>): readonly string[] {
  return cases === undefined ? args : [...args, `--cases=${JSON.stringify(cases)}`];
}

/**
 * Runs `test/ranks/NAME.ts` and gives, by rank, what each printed as its last line of JSON. Rejects, with the command
 * that repeats the run and all that the ranks printed, if the job does not end well or a rank prints no such line.
 */
export async function runRanks<T>(name: string, options: RanksOptions): Promise<T[]> {
  const { lines, failure } = await followRanks(name, options);
  const results = lines.map((of) => of.at(-1));
  if (failure === undefined) return results as T[];
  throw failure;
}

/**
 * The same, of a job that may fail: all lines of JSON by rank, and why it did not end well, if it did not.
 */
export async function followRanks(
  name: string,
  options: RanksOptions,
): Promise<{
  readonly lines: readonly unknown[][];
  readonly failure: Error | undefined;
  readonly exitCode: number | null;
  /** What came on stderr. */
  readonly complaints: string;
}> {
  const { kind, size, timeout = 150, execArgv = [], env = {}, launch = [] } = options;
  const program = programOf(name);
  const run = [
    'run',
    '-n',
    String(size),
    '--ranks',
    kind,
    '--timeout',
    String(timeout),
    ...launch,
    program,
    '--',
    ...argumentsOf(options),
  ];
  const child = spawn(process.execPath, [...execArgv, MAIN, ...run], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let printed = '';
  let complaints = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const lines = Array.from({ length: size }, (): unknown[] => []);
  for (const [, rank, json] of printed.matchAll(/^\[ *(\d+)\] (\{.*\})$/gm)) lines[Number(rank)].push(JSON.parse(json));
  if (code === 0 && lines.every((of) => of.length > 0))
    return { lines, failure: undefined, exitCode: code, complaints };
  const set = Object.entries(env).map(([key, value]) => `${key}=${value} `);
  const quoted = run.map((word) => (/^[\w./:=-]+$/.test(word) ? word : `'${word}'`));
  const command = `${set.join('')}node ${MAIN} ${quoted.join(' ')}`;
  const failure = new Error(`exit code ${code} of ${command}\n${complaints}${printed}`);
  return { lines, failure, exitCode: code, complaints };
}

/**
 * The seed of this run: `ONESIDED_SEED` to repeat an earlier one, else a new one. It appears in the command of a
 * failing run.
 */
export function seedOfRun(): number {
  const given = Number(process.env['ONESIDED_SEED'] ?? Number.NaN);
  return Number.isInteger(given) ? given : Date.now() % 1_000_000_007;
}
