/** Programs of tests, run as child processes or workers from their TypeScript sources. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type TransferListItem, Worker } from 'node:worker_threads';

const TYPES = new URL('./types.mjs', import.meta.url).href;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Child {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when the program has printed a line that begins with `word`, to the rest of it. */
  said(word: string): Promise<string>;
}

/** @param fds descriptors that the program gets as 3, 4, … */
export function startProgram(
  program: URL,
  args: readonly string[] = [],
  fds: readonly number[] = [],
  execArgv: readonly string[] = [],
): Child {
  const child = spawn(
    process.execPath,
    ['--no-warnings', ...execArgv, '--import', TYPES, fileURLToPath(program), ...args],
    {
      stdio: ['pipe', 'pipe', 'pipe', ...fds],
    },
  );
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const listener of listeners) listener();
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const said = (word: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const line = stdout
          .split('\n')
          .slice(0, -1)
          .find((text) => text.split(' ')[0] === word);
        if (line === undefined) return;
        listeners.delete(look);
        resolve(line.slice(word.length + 1));
      };
      listeners.add(look);
      look();
      void ended.then(({ code, signal }) =>
        reject(new Error(`ended (${code ?? signal}) without saying ${word}: ${stdout}${stderr}`)),
      );
    });
  return { process: child, ended, said };
}

export function runProgram(
  program: URL,
  args: readonly string[] = [],
  fds: readonly number[] = [],
  execArgv: readonly string[] = [],
): Promise<Ended> {
  return startProgram(program, args, fds, execArgv).ended;
}

export function startWorker(program: URL, workerData: unknown, transferList: readonly TransferListItem[] = []): Worker {
  return new Worker(program, {
    workerData,
    transferList: [...transferList],
    execArgv: ['--no-warnings', '--import', TYPES],
  });
}

/** The exit code of a worker; rejects if it ends with an uncaught exception. */
export function workerEnded(worker: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', resolve);
  });
}
