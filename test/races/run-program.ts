/** Runs a program of test/ranks whose loads and stores are seen, in a process of its own. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { programOf } from '../support/ranks.ts';

const HOOKS = fileURLToPath(new URL('../../dist/races/instrument/register.js', import.meta.url));
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** `npm run test:races`: everything, which takes minutes. */
export const ALL = process.env['ONESIDED_TEST_RACES'] === 'all';

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err]: [string[], string[]] = [[], []];
    child.stdout.on('data', (data: Buffer) => out.push(String(data)));
    child.stderr.on('data', (data: Buffer) => err.push(String(data)));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out: out.join(''), err: err.join('') }));
  });
}

/** On tasks. @returns its lines of JSON */
export async function onTasks<T>(name: string, ...args: (string | number)[]): Promise<T[]> {
  const { code, out, err } = await run(['--import', HOOKS, programOf(name), ...args.map(String)]);
  if (code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${code}: ${err.slice(-2000)}`);
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

/** By no launcher: a world of one. */
export function searchedAlone(script: string, races: string): Promise<Ended> {
  return run(['--import', HOOKS, script], { ONESIDED_RACES: races });
}

export interface RunOptions {
  readonly size: number;
  readonly kind?: 'processes' | 'threads';
  readonly races?: string;
  readonly args?: readonly string[];
  /** More options of `onesided run`. */
  readonly options?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** By `onesided run --races`. @param script its path */
export function searched(
  script: string,
  { size, kind = 'processes', races = '', args = [], options = [], env }: RunOptions,
): Promise<Ended> {
  const option = races === '' ? '--races' : `--races=${races}`;
  const ranks = ['-n', String(size), '--ranks', kind, '--timeout', '60'];
  return run([MAIN, 'run', ...ranks, option, ...options, script, '--', ...args], env);
}
