/** The programs of Debian's `perftest`, server and client on this machine. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ProgramError, type Report, run } from '../programs.ts';

export interface Device {
  readonly name: string;
  readonly port: number;
  readonly gidIndex: number;
}

/** Tries of the client, since nothing says when the server listens, and their distance. */
const TRIES = 100;
const BETWEEN_MS = 100;

/** A port of its own for each run: the last one's may still be closing. */
let nextPort = 18_600;

/** One run of a command, which is one sample: the mean of so many iterations. */
export async function runPerftest(
  command: string,
  bytes: number,
  iterations: number,
  { name, port, gidIndex }: Device,
  seconds: number,
): Promise<Report> {
  const args = [
    ...['-d', name, '-i', String(port), '-x', String(gidIndex), '-p', String(nextPort++)],
    ...['-n', String(iterations), '-F'],
    // Atomics have 8 bytes, always.
    ...(command === 'ib_atomic_lat' ? ['-A', 'FETCH_AND_ADD'] : ['-s', String(bytes)]),
  ];
  let ended = false;
  const server = run(command, args, { seconds }).finally(() => (ended = true));
  // Looked at when the client is done; until then its error is nobody's.
  server.catch(() => undefined);
  for (let tries = 1; ; tries++) {
    try {
      const output = await run(command, [...args, '127.0.0.1'], { seconds });
      await server;
      return { samples: [valueIn(output)] };
    } catch (error) {
      if (!(error instanceof ProgramError) || ended || tries === TRIES) throw error;
      await sleep(BETWEEN_MS);
    }
  }
}

/**
 * The mean of the latency in nanoseconds, or of the bandwidth in 10^6 bytes a second; perftest gives microseconds, and
 * 2^20 bytes.
 */
export function valueIn(output: string): number {
  const lines = output.split('\n').map((line) => line.trim());
  const at = lines.findIndex((line) => line.startsWith('#bytes'));
  const values = (lines[at + 1] ?? '').split(/\s+/).map(Number);
  let value = Number.NaN;
  if (/t_typical\[usec\]\s+t_avg\[usec\]/.test(lines[at])) value = 1e3 * values[5];
  else if (/BW peak\[MB\/sec\]\s+BW average\[MB\/sec\]/.test(lines[at])) value = 1.048576 * values[3];
  if (!(value > 0)) throw new ProgramError(`perftest said: ${output.slice(-300)}`);
  return value;
}
