/**
 * Processes that join a job without `onesided run`, followed by the lines of JSON that they print
 * (test/ranks/robust-joined.ts).
 */
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Outcomes } from './calls.ts';

export const PROGRAM = fileURLToPath(new URL('../../build/programs/test/ranks/robust-joined.js', import.meta.url));

export interface Line {
  readonly at: number;
  readonly pid?: number;
  readonly rank?: number;
  readonly size?: number;
  /** Variables by which it was told its place, and which programs that it starts would get. */
  readonly inherited?: readonly string[];
  readonly working?: boolean;
  readonly done?: boolean;
  readonly again?: boolean;
  readonly failed?: string;
  readonly code?: string;
  readonly message?: string;
  readonly outcomes?: Outcomes;
  /** Of robust-stripes.ts: the code of the error that the rank got, and that its later calls have ended. */
  readonly caught?: string;
  readonly later?: boolean;
  /** A line that is not one of JSON. */
  readonly text?: string;
}

function parse(line: string): Line {
  return line.startsWith('{')
    ? Object.assign({ at: Date.now() }, JSON.parse(line) as Line)
    : { at: Date.now(), text: line };
}

export interface Member {
  readonly child: ChildProcess;
  readonly lines: Line[];
  /** Resolves to how it ended. */
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
  /** Resolves when it has said something with this property. */
  said(what: keyof Line): Promise<Line>;
}

const children = new Set<ChildProcess>();

/** Kills those that still run. */
export function endMembers(): void {
  for (const child of children) child.kill('SIGKILL');
}

export function follow(child: ChildProcess): Member {
  children.add(child);
  const lines: Line[] = [];
  const listeners = new Set<() => void>();
  let rest = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    const all = (rest + text).split('\n');
    rest = all.pop()!;
    lines.push(...all.map(parse));
    for (const listener of listeners) listener();
  });
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    });
  });
  const said = (what: keyof Line): Promise<Line> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.find((line) => line[what] !== undefined);
        if (found === undefined) return;
        listeners.delete(look);
        resolve(found);
      };
      listeners.add(look);
      look();
      void ended.then(() => reject(new Error(`ended without saying ${what}: ${JSON.stringify(lines)}`)));
    });
  return { child, lines, ended, said };
}

/** The first failure that each tells, when all have ended. */
export async function failuresOf(members: readonly Member[]): Promise<Line[]> {
  const lines = await Promise.all(members.map(({ said }) => said('code')));
  await Promise.all(members.map(({ ended }) => ended));
  return lines;
}
