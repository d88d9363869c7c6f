/**
 * Ranks that are processes of this host.
 *
 * Each rank is a Node process that inherits the job's control memory as descriptor 3 and learns its number from the
 * environment. It leads a session of its own: so a signal reaches it once and not twice (from the terminal and from
 * here), and what it has started and left behind can be ended with it. Nothing of a job has a name in the file system.
 */
import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { addonAdvice } from '../addon.ts';
import { RmaError } from '../errors.ts';
import { createControl } from '../job/control-region.ts';
import { loadNative, nativeStatus } from '../native.ts';
import { wakeAll } from '../providers/emulator/bells.ts';
import { FATAL_VARIABLE } from '../start/fatal-errors.ts';
import { noteLauncher } from '../start/process-start.ts';
import { readRings } from '../start/tracing.ts';
import { killMarked, newMark } from './descendants.ts';
import { type Guardian, startGuardian } from './guardian.ts';
import { JobOutput } from './job-output.ts';
import {
  checkLaunch,
  environmentOfRanks,
  type JobResult,
  type LaunchOptions,
  recordsOf,
  withRecords,
} from './job-start.ts';
import { passSignalsOn } from './passed-signals.ts';
import { resolveScript } from './script.ts';
import { Supervisor } from './supervisor.ts';

/** The descriptor under which a rank finds the control memory. */
const CONTROL_FD = 3;
/**
 * Milliseconds for which output is still awaited after the last rank has ended: something else may hold its end of the
 * pipe.
 */
const OUTPUT_WITHIN = 1000;

/**
 * Runs a job of process ranks to its end.
 *
 * Resolves when no rank is left and their output is written. Rejects with `ERR_ARG` (a wrong option) or
 * `ERR_PROVIDER_UNAVAILABLE` (no addon) before anything was started.
 */
export async function runProcesses(options: LaunchOptions): Promise<JobResult> {
  checkLaunch(options);
  const { size, args = [], execArgv = [] } = options;
  const script = resolveScript(options.script, execArgv, options.env);
  const native = loadNative();
  if (native === undefined) {
    throw new RmaError(
      'ERR_PROVIDER_UNAVAILABLE',
      `ranks that are processes need the native addon, which is not available (${nativeStatus().reason}); ` +
        `${addonAdvice()}${process.platform === 'linux' ? ', or' : ';'} use --ranks threads`,
    );
  }
  const { events, records } = recordsOf(options);
  const { fd, control } = createControl(native, size, { events, records });
  noteLauncher(control);
  const mark = newMark();
  const guardian = startGuardian(mark);
  const ranks = new Ranks(size, guardian);
  const supervisor = new Supervisor(
    control,
    { signal: (rank, signal) => ranks.signal(rank, signal), describe: (rank) => `pid ${ranks.pidOf(rank)}` },
    () => wakeAll(control.fabric, size, native),
    options,
  );
  const output = new JobOutput(size, options.output, (exitCode, failure) => supervisor.abort(exitCode, failure));
  const stopPassingOn = options.signals === true ? passSignalsOn(supervisor) : () => {};
  let ended = false;
  try {
    const env = environmentOfRanks(options, mark);
    if (!output.direct) env[FATAL_VARIABLE] = '1';
    await ranks.start([...execArgv, script, ...args], env, fd, supervisor, output);
    const result = await supervisor.done;
    ranks.endLeftovers();
    killMarked(mark);
    ended = true;
    await output.drained(OUTPUT_WITHIN);
    output.showFatal(result.failure?.rank);
    return withRecords(result, options, () => readRings(fd, size, events));
  } finally {
    stopPassingOn();
    output.close();
    guardian.close(ended);
    closeSync(fd);
  }
}

/** The processes of a job. */
class Ranks {
  readonly #guardian: Guardian;
  readonly #children: (ChildProcess | undefined)[];
  /** Groups in which something is left although their rank has ended. */
  readonly #leftovers = new Set<number>();

  constructor(size: number, guardian: Guardian) {
    this.#guardian = guardian;
    this.#children = new Array(size).fill(undefined);
  }

  pidOf(rank: number): number | undefined {
    return this.#children[rank]?.pid;
  }

  signal(rank: number, signal: NodeJS.Signals): boolean {
    return signalGroup(this.pidOf(rank), signal);
  }

  /**
   * Starts the ranks one after the other. The supervisor is told how each of them ends; if one cannot be started, or
   * the job is over before that, it is told that those behind it have ended.
   * @param fd the control memory's
   */
  async start(
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    fd: number,
    supervisor: Supervisor,
    output: JobOutput,
  ): Promise<void> {
    const size = this.#children.length;
    const stream = output.direct ? 'inherit' : 'pipe';
    const unstarted = (from: number): void => {
      for (let rank = from; rank < size; rank++) supervisor.ended(rank, { code: 0 });
    };
    const failedToStart = (rank: number, error: Error): void => {
      supervisor.abort(1, { kind: 'start', rank, message: `cannot start rank ${rank}: ${error.message}` });
      unstarted(rank);
    };
    for (let rank = 0; rank < size; rank++) {
      let child: ChildProcess;
      try {
        child = this.#guardian.spawn(process.execPath, args, {
          env: { ...env, ONESIDED_RANK: String(rank), ONESIDED_CONTROL_FD: String(CONTROL_FD) },
          stdio: [rank === 0 ? 'inherit' : 'ignore', stream, stream, fd],
        });
      } catch (error) {
        failedToStart(rank, error as Error);
        return;
      }
      if (child.pid === undefined) {
        child.once('error', (error) => failedToStart(rank, error));
        return;
      }
      this.#watch(rank, child, child.pid, supervisor, output);
      // A start takes a millisecond or two; with many ranks, signals and failures must get their turn in between.
      await nextTurn();
      if (supervisor.concluded) {
        unstarted(rank + 1);
        return;
      }
    }
  }

  #watch(rank: number, child: ChildProcess, pid: number, supervisor: Supervisor, output: JobOutput): void {
    this.#children[rank] = child;
    output.connect(rank, child.stdout, child.stderr);
    child.on('error', () => {});
    child.on('exit', (code, signal) => {
      if (signalGroup(pid, 0)) this.#leftovers.add(pid);
      else this.#guardian.gone(pid);
      supervisor.ended(rank, signal === null ? { code: code ?? 0 } : { code: 0, signal });
    });
  }

  /** Ends what ranks have left behind in their groups. */
  endLeftovers(): void {
    for (const pid of this.#leftovers) {
      signalGroup(pid, 'SIGKILL');
      this.#guardian.gone(pid);
    }
  }
}

/**
 * Sends a signal to a rank and to what it has started in its group.
 * @returns whether there was anything to send it to
 */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals | 0): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
