/** `init`: joins the job that started this process or thread, joins one by name, or makes a world of one. */
import { isMainThread, workerData } from 'node:worker_threads';
import { addonAdvice } from '../addon.ts';
import { BARRIER_OPTIONS, type BarrierOptions, readBarrier } from '../collective/barrier-kinds.ts';
import { Communicator } from '../collective/communicator.ts';
import { checkDebug } from '../debug.ts';
import { argumentTypeError, RmaError, reading, show } from '../errors.ts';
import type { BarrierChoice } from '../job/barrier-choice.ts';
import { declareFailed, FailKind } from '../job/control-region.ts';
import { Job } from '../job/job.ts';
import { ranksInWords, sayIfLate } from '../job/late.ts';
import type { Membership } from '../job/membership.ts';
import { loadNative, type Native, nativeStatus } from '../native.ts';
import { isAborted, reasonOf, whenAborted } from '../wait/abort-signals.ts';
import { seenByCaller } from '../wait/caller.ts';
import { readWait } from '../wait/operation.ts';
import { joinAlone } from './alone.ts';
import { joinAgent, joinLauncher, joinLauncherThread } from './launched.ts';
import { joinManaged } from './managed.ts';
import { findAddress, findTorch } from './managers/address.ts';
import type { Patience, ProcessManager } from './managers/manager.ts';
import { findPipe } from './managers/pipe.ts';
import { findPmi } from './managers/pmi.ts';
import { findPmix, inPmix } from './managers/pmix.ts';
import { checkNamedJob, joinNamed } from './named.ts';
import { checkRaces, racesOfRank } from './race-search.ts';
import type { ThreadInvitation } from './thread.ts';

/** The options of `init`. `ONESIDED_BARRIER` and `ONESIDED_BARRIER_ALGORITHM` are the defaults of two of them. */
export interface InitOptions extends BarrierOptions {
  /** The name of the job to join; unrelated processes of one user form a job by the same name. Needs `size`. */
  readonly job?: string;
  /** The number of ranks of the named job, the same in all its processes. */
  readonly size?: number;
  /**
   * The default timeout of all calls of this rank that wait, in milliseconds; 0, `Infinity` or absent: no timeout.
   */
  readonly timeout?: number;
  /** Aborts the wait for the other ranks. */
  readonly signal?: AbortSignal;
}

/** The job that this process or thread is in, or joins. */
interface Joined {
  /** Absent where something else than a name says which job it is. */
  readonly named: string | undefined;
  readonly world: Promise<Communicator>;
  /** As soon as its world is there. */
  job?: Job;
}

let joined: Joined | undefined;
/** The one place that the launcher has made for this process or thread is taken. */
let placeTaken = false;

/**
 * Joins the job and resolves to its world, the communicator of all ranks, when all ranks have joined (`MPI_Init`).
 * Further calls before `finalize()` resolve to the same world. Which job it joins depends on how the process was
 * started:
 *
 * - By `onesided run`: the job of the launcher, as a process or a worker thread, on one host or on several.
 * - By `mpiexec`, `srun` or `mpirun` (PMI-1, PMI-2, PMIx): the job of that program.
 * - With `ONESIDED_RANK`, `ONESIDED_SIZE`, `ONESIDED_ROOT_ADDRESS` and `ONESIDED_SECRET` in the environment: the job of
 *   the rank 0 at that address. `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT` say the same.
 * - With `{ job, size }`: the job of that name. Processes get their ranks in the order in which they join. After
 *   `finalize()`, a process can join another named job.
 * - Otherwise: a job of one rank.
 *
 * Errors: `ERR_PROVIDER_UNAVAILABLE` (process ranks without the native addon), `ERR_VERSION`, `ERR_COMM` (the rank or
 * the name is taken, this process is in another job or has finalized its job, or the job's launcher is gone),
 * `ERR_SIZE`, `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
 */
export async function init(options: InitOptions = {}): Promise<Communicator> {
  const read = readInit(options);
  const named = read.job === undefined ? undefined : `${show(read.job)} of ${read.size} ranks`;
  if (joined?.job?.finalized) {
    // As in MPI. But a job with a name is one of many that a process can be in, one after the other, as with sessions;
    // what started this process has made one place for it, which is used up.
    if (named === undefined) {
      throw new RmaError(
        'ERR_COMM',
        'init: this process has finalized its job and cannot join it again; ' +
          'call finalize() once, at the end. After that, a process can only join a named job: init({ job, size })',
      );
    }
    joined = undefined;
  }
  if (joined !== undefined && named !== undefined && named !== joined.named) {
    const own = joined.named === undefined ? 'the job that started it' : `job ${joined.named}`;
    throw new RmaError(
      'ERR_COMM',
      `init: cannot join job ${named}: this process is in ${own}; call finalize() there first`,
    );
  }
  joined ??= begin(named, read);
  // What a process manager says comes from its own events.
  return seenByCaller(joined.world, read.signal);
}

function begin(named: string | undefined, options: InitOptions): Joined {
  const own: Joined = {
    named,
    world: join(options, (job) => (own.job = job)).catch((error: unknown) => {
      if (joined === own) joined = undefined;
      throw error;
    }),
  };
  return own;
}

/** The options, read once and checked: also of a call that finds the job already joined. */
function readInit(options: InitOptions): InitOptions {
  checkDebug('init');
  checkRaces();
  const wait = readWait('init', options, ['job', 'size', ...BARRIER_OPTIONS], Number.POSITIVE_INFINITY);
  const barrier = readBarrier('init', withEnvironment(options));
  const { job, size } = reading('init', 'the options', () => ({ job: options.job, size: options.size }));
  if (job !== undefined) checkNamedJob(job, size);
  else if (size !== undefined) throw argumentTypeError('init: size is only for named jobs; pass { job, size }');
  return {
    ...wait,
    ...(job !== undefined && { job }),
    ...(size !== undefined && { size }),
    ...{ barrier: barrier.kind, barrierAlgorithm: barrier.algorithm, barrierNackAfter: barrier.nackAfter },
  } as InitOptions;
}

/** What the call does not say about barriers, the environment may. */
function withEnvironment({ barrier, barrierAlgorithm, barrierNackAfter }: BarrierOptions): BarrierOptions {
  const { ONESIDED_BARRIER: kind, ONESIDED_BARRIER_ALGORITHM: algorithm } = process.env;
  return {
    barrier: barrier ?? ((kind || undefined) as BarrierOptions['barrier']),
    barrierAlgorithm: barrierAlgorithm ?? (algorithm || undefined),
    barrierNackAfter,
  } as BarrierOptions;
}

/** @param entered called when the world is there */
async function join(options: InitOptions, entered: (job: Job) => void): Promise<Communicator> {
  const { timeout = defaultTimeout() } = options;
  const { membership, complete, comesLate } = await enterJob(options, timeout);
  let stop: (() => void) | undefined;
  try {
    const races = await racesOfRank(membership);
    const searched = races === undefined ? membership : { ...membership, races: races.watch };
    const job = makeJob(searched, timeout, readBarrier('init', options));
    try {
      if (comesLate === true) stop = sayIfLate(() => awaitedIn(job));
      const world = await Communicator.world(job, { signal: options.signal });
      await races?.begin(world);
      entered(job);
      return world;
    } catch (error) {
      job.giveUp();
      throw error;
    }
  } finally {
    stop?.();
    complete();
  }
}

function awaitedIn({ absent, size }: Job): string {
  return `${size - absent.length} of ${size} ranks have come, ${ranksInWords(absent, size)} not yet`;
}

function makeJob(membership: Membership, timeoutMs: number, barrier: BarrierChoice): Job {
  try {
    return new Job(membership, timeoutMs, barrier);
  } catch (error) {
    const { control, rank, watched } = membership;
    if (!watched) declareFailed(control, rank, FailKind.GAVE_UP, 0);
    membership.leave();
    throw error;
  }
}

/** A membership, and what to call when all ranks are there. */
interface Entry {
  readonly membership: Membership;
  complete(): void;
  /** Whether no launcher of ours starts the ranks: some may never come. */
  readonly comesLate?: true;
}

/** @param timeout milliseconds; infinity: none */
async function enterJob(options: InitOptions, timeout: number): Promise<Entry> {
  const nothing = (): void => {};
  if (options.job !== undefined) {
    return { membership: joinNamed(needNative(), options.job, options.size!), complete: nothing, comesLate: true };
  }
  if (placeTaken) {
    throw new RmaError(
      'ERR_COMM',
      'init: this rank has joined its job before, and that has failed (see the error of the first init); ' +
        'it cannot join again: start the job again',
    );
  }
  const invitation = (workerData as { onesided?: ThreadInvitation } | null)?.onesided;
  const taken = (): boolean => (placeTaken = true);
  if (!isMainThread && invitation !== undefined)
    return { membership: joinLauncherThread(invitation, taken), complete: nothing };
  const launched = process.env['ONESIDED_CONTROL_FD'] !== undefined;
  const pipe = findPipe();
  if (launched && pipe === undefined) return { membership: joinLauncher(needNative(), taken), complete: nothing };
  const manager = pipe ?? findAddress() ?? findPmi() ?? (inPmix() ? findPmix(needNative()) : undefined) ?? findTorch();
  if (manager === undefined) return { membership: joinAlone(), complete: nothing };
  const { patience, stop } = patienceOf(manager, options, timeout, pipe === undefined);
  try {
    if (launched) return await joinAgent(needNative(), manager, patience, taken);
    return { ...(await joinManaged(needNative(), manager, patience)), comesLate: true };
  } finally {
    stop();
  }
}

/**
 * A signal that ends the wait for the other ranks when the caller's does, or when time is up.
 * @param comesLate whether a rank says so if the others do
 */
function patienceOf(
  manager: ProcessManager,
  { signal }: InitOptions,
  timeout: number,
  comesLate: boolean,
): { patience: Patience; stop(): void } {
  const { rank, size, name } = manager;
  const controller = new AbortController();
  const awaited = (): string => {
    const words = manager.awaited?.();
    return words === undefined ? '' : `; ${words}`;
  };
  const late = (): void =>
    controller.abort(
      new RmaError(
        'ERR_RMA_TIMEOUT',
        `init: rank ${rank} of ${size} did not hear from all other ranks through ${name} within ` +
          `${timeout} ms${awaited()}`,
      ),
    );
  const onAbort = (): void => controller.abort(reasonOf(signal!));
  if (signal !== undefined && isAborted(signal)) onAbort();
  const stopListening = whenAborted(signal, onAbort);
  // Longer delays than a timer can count are no deadline.
  const timer = timeout > 2 ** 31 - 1 ? undefined : setTimeout(late, timeout);
  const words = (): string => `rank ${rank} of ${size} hears from the other ranks through ${name}${awaited()}`;
  const quiet = comesLate ? sayIfLate(words) : undefined;
  const stop = (): void => {
    quiet?.();
    clearTimeout(timer);
    stopListening();
  };
  return { patience: { signal: controller.signal }, stop };
}

function needNative(): Native {
  const native = loadNative();
  if (native !== undefined) return native;
  throw new RmaError(
    'ERR_PROVIDER_UNAVAILABLE',
    `init: ranks that are processes need the native addon, which is not available (${nativeStatus().reason}); ` +
      `${addonAdvice()}${process.platform === 'linux' ? ', or' : ';'} run the ranks as threads: ` +
      '"onesided run --ranks threads"',
  );
}

function defaultTimeout(): number {
  const seconds = Number(process.env['ONESIDED_TIMEOUT'] ?? 0);
  return seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY;
}
