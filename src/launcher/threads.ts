/**
 * Ranks that are worker threads of this process. They need no addon: everything they share is a `SharedArrayBuffer`.
 *
 * `process.exit` in a worker ends that rank only. A thread gets no signals and has no standard input; where a process
 * would be sent SIGTERM or SIGKILL, a thread is terminated, also in the midst of an endless loop. Options for Node
 * itself are this process's.
 */
import { inspect } from 'node:util';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { controlBytes, formatControl, viewControl } from '../job/control-region.ts';
import { wakeAll } from '../providers/emulator/bells.ts';
import { Broker } from '../providers/emulator/thread-fabric.ts';
import { followingLine } from '../start/fatal-errors.ts';
import type { ThreadInvitation } from '../start/thread.ts';
import { readRing, ringBytes } from '../trace/trace-ring.ts';
import { killMarked, newMark } from './descendants.ts';
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

/** Milliseconds for which output is still awaited after the last rank has ended. */
const OUTPUT_WITHIN = 1000;

/**
 * Runs a job of thread ranks to its end. This thread's event loop must stay free meanwhile: it serves the ranks' memory
 * to each other.
 *
 * Resolves when no rank is left and their output is written. Rejects with `ERR_ARG` (a wrong option) before anything
 * was started.
 */
export async function runThreads(options: LaunchOptions): Promise<JobResult> {
  checkLaunch(options);
  const { size, args = [], execArgv } = options;
  const { events, records } = recordsOf(options);
  const script = resolveScript(options.script, process.execArgv);
  const memory = new SharedArrayBuffer(controlBytes(size));
  const control = viewControl(memory, size);
  formatControl(control);
  const mark = newMark();
  const broker = new Broker();
  const rings: SharedArrayBuffer[] = [];
  const workers: Worker[] = [];
  /** A worker that has ended does not know its number any more. */
  const threadIds: number[] = [];
  const supervisor = new Supervisor(
    control,
    {
      signal: (rank, signal) => {
        if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') void workers[rank]?.terminate();
      },
      describe: (rank) => `thread ${threadIds[rank]}`,
    },
    () => wakeAll(control.fabric, size, undefined),
    options,
  );
  const output = new JobOutput(size, options.output, (exitCode, failure) => supervisor.abort(exitCode, failure));
  const stopPassingOn = options.signals === true ? passSignalsOn(supervisor) : () => {};
  try {
    const env = environmentOfRanks(options, mark);
    for (let rank = 0; rank < size; rank++) {
      const port = broker.connect(rank);
      if (events > 0) rings.push(new SharedArrayBuffer(ringBytes(events)));
      const invitation: ThreadInvitation = {
        control: memory,
        rank,
        size,
        broker: port,
        races: options.races,
        trace: events > 0 ? { ring: rings[rank], events, records } : undefined,
      };
      const worker = startThread(script, {
        argv: [...args],
        ...(execArgv !== undefined && { execArgv: [...execArgv] }),
        env: { ...env, ONESIDED_RANK: String(rank) },
        workerData: { onesided: invitation },
        transferList: [port],
        stdout: true,
        stderr: true,
        name: `rank ${rank}`,
      });
      workers.push(worker);
      threadIds.push(worker.threadId);
      output.connect(rank, worker.stdout, worker.stderr);
      // Followed by 'exit' with code 1. A process would have printed this itself.
      worker.on('error', (error) => output.fatal(rank, `Uncaught ${inspect(error)}`, followingLine(error, rank)));
      worker.on('exit', (code) => {
        broker.disconnect(rank);
        supervisor.ended(rank, { code });
      });
    }
    const result = await supervisor.done;
    killMarked(mark);
    await output.drained(OUTPUT_WITHIN);
    output.showFatal(result.failure?.rank);
    return withRecords(result, options, () =>
      rings.map((ring, rank) => readRing(rank, ring.byteLength, (bytes) => new Uint8Array(ring).slice(0, bytes))),
    );
  } finally {
    stopPassingOn();
    output.close();
  }
}

/**
 * Flags of V8 hold for a whole process, and Node refuses them for a thread: those that this process has itself are not
 * given to it again. Throws what `new Worker` throws, also for other flags that Node refuses.
 */
function startThread(script: string, options: WorkerOptions): Worker {
  try {
    return new Worker(script, options);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const given = options.execArgv ?? [];
    const execArgv = given.filter((flag) => !(process.execArgv.includes(flag) && message.includes(flag)));
    if (code !== 'ERR_WORKER_INVALID_EXEC_ARGV' || execArgv.length === given.length) throw error;
    return new Worker(script, { ...options, execArgv });
  }
}
