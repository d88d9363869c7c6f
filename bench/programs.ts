/** Runs the benchmark's programs, ours and in C, and reads the line of JSON that each prints. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The package: this file is compiled to build/programs/bench/, and tests take it as it is. */
export const ROOT = fileURLToPath(
  new URL(import.meta.url.includes('/build/programs/') ? '../../..' : '..', import.meta.url),
);

/** Seconds after which a program has failed. */
const DEADLINE = 120;

/** What a program says about one row. */
export interface Report {
  readonly samples: readonly number[];
  readonly library?: string;
}

/** A program that did not do its work, in one line. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

/** Runs a command to its end. @returns what it wrote to stdout */
export function run(
  command: string,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly seconds?: number } = {},
): Promise<string> {
  const { env = {}, cwd = ROOT, seconds = DEADLINE } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let err = '';
    let late = false;
    child.stdout.on('data', (chunk: Buffer) => (out += chunk));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk));
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, 1e3 * seconds);
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(new ProgramError(`${command}: ${error.message}`));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolve(out);
      else
        reject(
          new ProgramError(
            `${command} ${args.join(' ')}: ${late ? `no end after ${seconds} s` : cause(err, code, signal)}`,
          ),
        );
    });
  });
}

function cause(err: string, code: number | null, signal: string | null): string {
  const crash = /Segmentation fault|SIGSEGV|signal 11/i.test(err) ? 'segmentation fault' : undefined;
  const line = err
    .split('\n')
    .find((text) => /error|fail|abort|refus|cannot|not /i.test(text))
    ?.trim();
  return crash ?? line ?? (code === null ? `ended by ${signal}` : `exit code ${code}`);
}

/** The line of JSON in what a program printed, which may have a prefix (`[0] `). */
export function reportIn(output: string): Report {
  const line = output.split('\n').find((text) => text.includes('{"row"'));
  if (line === undefined) throw new ProgramError(`no report in: ${output.slice(0, 200)}`);
  const report = JSON.parse(line.slice(line.indexOf('{'))) as Report;
  if (!Array.isArray(report.samples) || report.samples.length === 0 || !report.samples.every((value) => value > 0)) {
    throw new ProgramError(`no samples in: ${line.slice(0, 200)}`);
  }
  return report;
}
