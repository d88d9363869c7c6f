/** Runs the built `onesided` command for tests, and looks for what it leaves behind. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, vi } from 'vitest';
import { controlBytes, Header, Slot, viewControl } from '../../src/job/control-region.ts';

const root = new URL('../../', import.meta.url);
export const COMMAND = fileURLToPath(new URL('dist/cli/main.js', root));
/** The rank program of these tests; its arguments are described in its source. */
export const PROBE = fileURLToPath(new URL('build/programs/test/ranks/launcher-probe.js', root));

for (const file of [COMMAND, PROBE]) {
  if (!existsSync(file)) throw new Error(`${file} does not exist: run "npm run build" first`);
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves when the command's output so far contains the text; rejects if it ends before. */
  printed(text: string): Promise<void>;
}

// Against hanging only: on a busy machine starting many processes takes its time.
vi.setConfig({ testTimeout: 180_000 });

const launchers = new Set<ChildProcess>();
// What a failed test has left running; the ranks go with their launcher.
afterAll(() => {
  for (const child of launchers) child.kill('SIGKILL');
});

export function start(args: readonly string[], options: SpawnOptions = {}): Running {
  const child = spawn(process.execPath, [COMMAND, ...args], { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  launchers.add(child);
  child.on('exit', () => launchers.delete(child));
  const out = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (out.stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (out.stderr += text));
  const finished = new Promise<Finished>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, ...out }));
  });
  const printed = async (text: string): Promise<void> => {
    while (!out.stdout.includes(text) && !out.stderr.includes(text)) {
      if (child.exitCode !== null)
        throw new Error(`the command ended without printing ${text}: ${out.stdout}${out.stderr}`);
      await sleep(5);
    }
  };
  return { child, finished, printed };
}

export function onesided(...args: string[]): Promise<Finished> {
  return start(args).finished;
}

/** A text for the arguments of ranks by which {@link processesWith} finds them. */
export function marker(): string {
  return `marker-${randomUUID()}`;
}

/** The processes that have `text` among their arguments, the command itself excepted. */
export function processesWith(text: string): number[] {
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const dead = /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
      if (command.includes(text) && !command.includes(COMMAND) && !dead) found.push(Number(name));
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** 0 for a process that has ended. */
export function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return 0;
  }
}

/** Resolves when no such process is left, or with those that are left after a minute. */
export async function leftWith(text: string): Promise<number[]> {
  const deadline = Date.now() + 60_000;
  let left = processesWith(text);
  while (left.length > 0 && Date.now() < deadline) {
    await sleep(20);
    left = processesWith(text);
  }
  return left;
}

/** Numbers of words of a job's control memory, as the probe wants them. */
export function controlWords(size: number) {
  const { slots, slotWords } = viewControl(new ArrayBuffer(controlBytes(size)), size);
  const first = slots.byteOffset / 4;
  return {
    failed: Header.FAILED,
    joined: Header.JOINED,
    state: (rank: number): number => first + rank * slotWords + Slot.STATE,
  };
}

/** The lines of a text that begin with `onesided: `: what the launcher itself has to say. */
export function verdicts(stderr: string): string[] {
  return stderr.split('\n').filter((line) => line.startsWith('onesided: '));
}
