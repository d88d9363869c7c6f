/** Runs a job whose ranks are processes of this host (rank-processes.ts). */
import { closeSync } from 'node:fs';
import { addonAdvice } from '../addon.ts';
import { RmaError } from '../errors.ts';
import { createControl } from '../job/control-region.ts';
import { loadNative, nativeStatus } from '../native.ts';
import { wakeAll } from '../providers/emulator/bells.ts';
import { FATAL_VARIABLE } from '../start/fatal-errors.ts';
import { noteLauncher } from '../start/process-start.ts';
import { readRings } from '../start/tracing.ts';
import { killMarked, newMark } from './descendants.ts';
import { startGuardian } from './guardian.ts';
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
import { RankProcesses } from './rank-processes.ts';
import { resolveScript } from './script.ts';
import { Supervisor } from './supervisor.ts';

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
  const ranks = new RankProcesses(guardian);
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
    const stream = output.direct ? 'inherit' : 'pipe';
    await ranks.start(
      Array.from({ length: size }, (_, rank) => rank),
      [...execArgv, script, ...args],
      { env, control: fd, input: 'inherit', output: stream, connected: false },
      {
        concluded: () => supervisor.concluded,
        output: (rank, stdout, stderr) => output.connect(rank, stdout, stderr),
        ended: (rank, ending) => supervisor.ended(rank, ending),
        cannotStart: (rank, error) =>
          supervisor.abort(1, { kind: 'start', rank, message: `cannot start rank ${rank}: ${error.message}` }),
      },
    );
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
