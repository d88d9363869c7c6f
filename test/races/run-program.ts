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

export interface RunOptions {
  readonly size: number;
  readonly kind?: 'processes' | 'threads';
  readonly races?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** By `onesided run --races`. @param script its path */
export function searched(
  script: string,
  { size, kind = 'processes', races = '', args = [], env }: RunOptions,
): Promise<Ended> {
  const option = races === '' ? '--races' : `--races=${races}`;
  const command = ['run', '-n', String(size), '--ranks', kind, '--timeout', '60', option, script, '--', ...args];
  return run([MAIN, ...command], env);
}
