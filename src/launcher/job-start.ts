/** What starting a job takes and gives, whatever its ranks are. */

import { argumentRangeError, argumentTypeError, show } from '../errors.ts';
import { MAX_RANKS, Records } from '../job/control-region.ts';
import { FATAL_VARIABLE } from '../start/fatal-errors.ts';
import { CARDS_VARIABLE } from '../start/managers/pipe.ts';
import { writeTrace } from '../trace/chrome-trace.ts';
import { RECORDING_VARIABLES, type TraceRequest } from '../trace/trace-request.ts';
import type { Recording } from '../trace/trace-ring.ts';
import { MARK_VARIABLE } from './descendants.ts';
import type { Destination } from './line-merger.ts';

export { MAX_RANKS };

/** How to start a job. */
export interface LaunchOptions {
  /** Ranks: 1 … {@link MAX_RANKS}. */
  readonly size: number;
  /** The program of every rank: a path, taken from the current directory. */
  readonly script: string;
  readonly args?: readonly string[];
  /** Options for Node itself, before the script. */
  readonly execArgv?: readonly string[];
  /** Default: this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Seconds until the job is ended; default: none. */
  readonly timeout?: number | undefined;
  /** Seconds that the others have to end by themselves after a rank failed; default 2. */
  readonly grace?: number | undefined;
  /** Whether the job goes on when a rank has failed, and ends well if any rank does; default no. */
  readonly keepGoing?: boolean;
  /**
   * Where the output of the ranks goes. Default: this process's stdout and stderr, each line prefixed by the rank.
   * `'direct'`: processes write to this process's stdout and stderr themselves, so that a terminal is a terminal to
   * them.
   */
  readonly output?: 'direct' | Output;
  /** Records the run: where the trace is written when the job has ended, however it ends. */
  readonly trace?: TraceRequest | undefined;
  /** Records the supersteps of BSP computations, and shows them when the job has ended, however it ends. */
  readonly supersteps?: SuperstepRequest | undefined;
  /** Of threads: where they ask the analysis of races, if they are thrown. */
  readonly races?: SharedArrayBuffer;
  /**
   * Whether SIGINT, SIGTERM and SIGHUP (and SIGTSTP, SIGCONT) that this process receives are passed on to the ranks;
   * default no.
   */
  readonly signals?: boolean;
}

export interface SuperstepRequest {
  /** Records that each rank keeps. */
  readonly events: number;
  /** Whether the ranks measure the machine before a computation. */
  readonly probes: boolean;
  /** @returns what there is to say, for people */
  show(recordings: readonly Recording[]): string;
}

export interface Output {
  readonly stdout?: Destination;
  readonly stderr?: Destination;
  /** `[rank] ` before each line; default yes. */
  readonly prefix?: boolean;
}

/** How a job ended. */
export interface JobResult {
  /** 0, or: the code of the rank that failed first; 128 + the signal's number; 124 after a timeout. */
  readonly exitCode: number;
  /** Absent if the job ended well. */
  readonly failure?: JobFailure;
  /** For people: the ranks without which a job with `keepGoing` has ended well. */
  readonly lossNote?: string;
  /** For people: where the trace is, or why it could not be written. */
  readonly traceNote?: string;
  /** For people: what the supersteps were. */
  readonly superstepNote?: string;
}

export interface JobFailure {
  readonly kind: 'exit-code' | 'signal' | 'no-finalize' | 'timeout' | 'interrupted' | 'output' | 'start' | 'host';
  /** The rank that failed first, where one did. */
  readonly rank?: number;
  /**
   * For people: which rank, and why, in one line; after a timeout, a line more for each rank that was running: what it
   * waited in. Empty if there is nothing to say (the reader of the output is gone).
   */
  readonly message: string;
}

/** Throws a `TypeError` or `RangeError` with code `ERR_ARG` that names the option and its value. */
export function checkLaunch(options: LaunchOptions): void {
  const { size, script, timeout, grace } = options;
  if (!Number.isInteger(size)) throw argumentTypeError(`the number of ranks must be an integer, not ${show(size)}`);
  if (size < 1 || size > MAX_RANKS)
    throw argumentRangeError(`the number of ranks must be 1 to ${MAX_RANKS}, not ${size}`);
  if (typeof script !== 'string' || script === '')
    throw argumentTypeError(`the script must be a path, not ${show(script)}`);
  if (timeout !== undefined && !(timeout > 0))
    throw argumentRangeError(`the timeout must be more than 0 seconds, not ${show(timeout)}`);
  if (grace !== undefined && !(grace >= 0))
    throw argumentRangeError(`the grace period must be at least 0 seconds, not ${show(grace)}`);
}

/** By how much the deadline of a rank's own waits is later than the launcher's, in seconds. */
const AFTER_LAUNCHER_S = 5;

/**
 * What every rank finds in its environment; the caller adds `ONESIDED_RANK`. A job inside a rank is a job of its own.
 * @param mark of the job (descendants.ts)
 */
export function environmentOfRanks(
  { env = process.env, size, timeout }: Pick<LaunchOptions, 'env' | 'size' | 'timeout'>,
  mark: string,
): NodeJS.ProcessEnv {
  const own: NodeJS.ProcessEnv = { ...env, ONESIDED_SIZE: String(size), [MARK_VARIABLE]: mark };
  for (const name of ['ONESIDED_CONTROL_FD', CARDS_VARIABLE, ...RECORDING_VARIABLES, FATAL_VARIABLE]) delete own[name];
  // For ranks whose launcher is gone. Where it is not, it ends the job first: it asks each rank what it waits in, and a
  // rank whose own deadline passed meanwhile would print an error instead.
  if (timeout !== undefined) own['ONESIDED_TIMEOUT'] = String(timeout + AFTER_LAUNCHER_S);
  return own;
}

/** What ranks record, and how many records each keeps; 0: nothing. */
export function recordsOf({ trace, supersteps }: LaunchOptions): { readonly events: number; readonly records: number } {
  const events = Math.max(trace?.events ?? 0, supersteps?.events ?? 0);
  const asked = supersteps === undefined ? 0 : Records.SUPERSTEPS | (supersteps.probes ? Records.PROBES : 0);
  return { events, records: asked | (trace === undefined ? 0 : Records.CALLS) };
}

/**
 * Writes the trace of a job that has ended, and shows its supersteps, if that was asked for. If that fails, a job that
 * ended well has not ended well.
 */
export function withRecords(
  result: JobResult,
  { trace, supersteps, script }: LaunchOptions,
  read: () => readonly Recording[],
): JobResult {
  if (trace === undefined && supersteps === undefined) return result;
  const attempt = (what: string, make: () => string): { readonly note: string; readonly code: number } => {
    try {
      return { note: make(), code: 0 };
    } catch (error) {
      return { note: `cannot write the ${what}: ${(error as Error).message}`, code: 1 };
    }
  };
  let recordings: readonly Recording[] | undefined;
  const all = (): readonly Recording[] => (recordings ??= read());
  const traced = trace && attempt('trace', () => writeTrace(trace.file, all(), { title: script }));
  const shown = supersteps && attempt('report of supersteps', () => supersteps.show(all()));
  return {
    ...result,
    exitCode: result.exitCode || traced?.code || shown?.code || 0,
    ...(traced !== undefined && { traceNote: traced.note }),
    ...(shown !== undefined && { superstepNote: shown.note }),
  };
}
