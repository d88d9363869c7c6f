/**
 * `runTasks`: ranks that are tasks of this thread, on a modelled fabric, in virtual time.
 *
 * Each rank has a device of its own (`ModelledContext`) and joins a job like any other rank; from there on nothing
 * knows what it is. What ranks share besides the fabric, to find each other before they are connected, changes in
 * events only, like everything else that two tasks can see (simulator.ts).
 */

import { BARRIER_OPTIONS, type BarrierOptions, readBarrier } from '../collective/barrier-kinds.ts';
import { Communicator } from '../collective/communicator.ts';
import { checkDebug } from '../debug.ts';
import { argumentRangeError, argumentTypeError, RankFailedError, RmaError, reading, show } from '../errors.ts';
import type { BarrierChoice } from '../job/barrier-choice.ts';
import {
  type Control,
  controlBytes,
  declareFailed,
  FailKind,
  formatControl,
  RankState,
  Slot,
  viewControl,
} from '../job/control-region.ts';
import { Job } from '../job/job.ts';
import type { Membership, Registry, TaskTime } from '../job/membership.ts';
import type { Rendezvous } from '../message/message-connections.ts';
import type { MessageMemory } from '../message/messenger.ts';
import { refuseUnknown } from '../options.ts';
import { checkFabric, type FabricDescription, LEAST_MESSAGE } from '../providers/modelled/fabric-description.ts';
import type { Fabric } from '../providers/modelled/fabric-numbers.ts';
import { type FaultOptions, Faults } from '../providers/modelled/faults.ts';
import { loadFabric } from '../providers/modelled/known-fabrics.ts';
import { type ModelledContext, ModelledFabric } from '../providers/modelled/modelled-context.ts';
import { ModelledProcessor } from '../providers/modelled/modelled-processor.ts';
import { observedPart } from '../providers/modelled/observed.ts';
import { type Cpu, Simulator } from '../providers/modelled/simulator.ts';
import type { RaceOptions, TaskRaces } from '../races/watch/task-races.ts';
import { writeTrace } from '../trace/chrome-trace.ts';
import { type Recorder, recordInMemory } from '../trace/recorder.ts';
import { defaultEvents, type Recording } from '../trace/trace-ring.ts';
import { deadlock } from '../wait/deadlock.ts';
import { checkTimeout } from '../wait/operation.ts';
import { recordWait } from '../wait/traced-progress.ts';
import { VainLooks } from '../wait/vain-looks.ts';
import { computeOn, VirtualProgress } from '../wait/virtual-progress.ts';
import { racesOfTasks } from './race-search.ts';

export type { FaultOptions };

/** The options of `runTasks`. */
export interface TaskOptions extends BarrierOptions {
  /**
   * The fabric: the name of one from this package, the name of a file that describes one, or the description itself,
   * with or without sources (`onesided/fabrics`).
   */
  readonly fabric: string | Fabric | FabricDescription;
  /** The seed of all random decisions: the same seed gives the same run. Default: 1. */
  readonly seed?: number;
  /** The faults to inject: delays, lost messages, deaths of ranks. Default: none. */
  readonly faults?: FaultOptions;
  /**
   * The order of simultaneous events. `'ranks'` (default): in rank order. `'random'`: in an order drawn from the seed,
   * which reveals programs that depend on the order.
   */
  readonly order?: 'ranks' | 'random';
  /** The default timeout of all calls that wait, in virtual milliseconds; 0 or absent: no timeout. */
  readonly timeout?: number;
  /**
   * The file for a trace of the run in virtual time (docs/guide/traces.md). Replaces an existing file. The trace is
   * written even if the run fails.
   */
  readonly trace?: string;
  /**
   * Searches for data races between the ranks (docs/guide/races.md): `true`, or how. They are reported on stderr when
   * the run has ended, and the process's exit code is then 66 if nothing else has set one. Default: no.
   */
  readonly races?: boolean | RaceOptions;
}

const KNOWN = [
  ...BARRIER_OPTIONS,
  'fabric',
  'seed',
  'faults',
  'order',
  'timeout',
  'trace',
  'races',
] as const satisfies readonly (keyof TaskOptions)[];
/** The most ranks: the order of events of one time has room for so many. */
const MOST_TASKS = 65_536;
/** Bytes that all ranks together have for messages under way, about. */
const MESSAGE_BYTES = 2 ** 29;

/**
 * Runs `main` as `size` ranks on a modelled fabric in virtual time, and resolves to their return values, by rank, when
 * all have returned. A rank that returns leaves the job as if it had called `finalize`. The value of a rank that died
 * by `faults.deaths` is `undefined`.
 *
 * Errors: `ERR_ARG` (the description of the fabric), `TypeError`, `RangeError`; `ERR_RMA_WOULD_DEADLOCK` as soon as no
 * rank can continue, with what each rank waits for. If a rank throws, the other ranks get `ERR_RMA_RANK_FAILED`, and
 * when they have ended, this rejects with the error that was thrown.
 *
 * Cost: a few microseconds of real time per message.
 */
export async function runTasks<T>(
  size: number,
  main: (world: Communicator) => T | Promise<T>,
  options: TaskOptions,
): Promise<T[]> {
  const call = 'runTasks';
  if (typeof size !== 'number')
    throw argumentTypeError(`${call}: the number of ranks must be a number, not ${show(size)}`);
  if (!Number.isInteger(size) || size < 1 || size > MOST_TASKS) {
    throw argumentRangeError(`${call}: the number of ranks must be 1 … ${MOST_TASKS}, not ${show(size)}`);
  }
  if (typeof main !== 'function') throw argumentTypeError(`${call}: main must be a function, not ${show(main)}`);
  if (typeof options !== 'object' || options === null) {
    throw argumentTypeError(`${call}: options must be { fabric, seed, … }, not ${show(options)}`);
  }
  const given = reading(call, 'the options', () => ({ ...options }));
  refuseUnknown(call, 'the options', given, KNOWN);
  checkDebug(call);
  const { fabric, seed = 1, faults, order = 'ranks', trace } = given;
  const timeout = given.timeout === undefined || given.timeout === 0 ? Number.POSITIVE_INFINITY : given.timeout;
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw argumentRangeError(`${call}: seed must be an integer from 0 to 2^53 − 1, not ${show(seed)}`);
  }
  if (order !== 'ranks' && order !== 'random') {
    throw argumentTypeError(`${call}: order must be 'ranks' or 'random', not ${show(order)}`);
  }
  checkTimeout(call, timeout);
  if (trace !== undefined && (typeof trace !== 'string' || trace === '')) {
    throw argumentTypeError(`${call}: trace must be a file name, not ${show(trace)}`);
  }
  if (typeof fabric !== 'string' && (typeof fabric !== 'object' || fabric === null)) {
    throw argumentTypeError(`${call}: fabric must be the name or the description of a fabric, not ${show(fabric)}`);
  }
  const described =
    typeof fabric === 'string' ? loadFabric(fabric) : checkFabric(reading(call, 'fabric', () => copyOf(fabric)));
  const barrier = readBarrier(call, given);
  const races = await racesOfTasks(call, size, given.races);
  const recordings = trace === undefined ? undefined : new Recordings();
  const chosen = new Faults(call, faults, size, seed);
  const run = new Run<T>(size, described, seed, chosen, order === 'random', timeout, barrier, recordings, races);
  try {
    return await run.run(main);
  } finally {
    if (trace !== undefined) {
      const title = `${size} tasks on ${described.name}, seed ${seed}`;
      writeTrace(trace, recordings!.take(), { title, clock: 'virtual time' });
    }
    races?.finish();
  }
}

/** What is checked is what is used, whatever the caller's object says later. */
function copyOf(fabric: object): object {
  const parts = Object.entries(fabric).map(([name, part]) => [
    name,
    typeof part === 'object' && part !== null && observedPart(part) === undefined ? { ...part } : part,
  ]);
  return Object.fromEntries(parts);
}

/** What the ranks of a run that is traced record. */
class Recordings {
  readonly #ranks: (() => Recording)[] = [];

  recorderOf(rank: number, size: number, cpu: Cpu): Recorder {
    const { recorder, recording } = recordInMemory(rank, () => 1000 * cpu.time, defaultEvents(size));
    this.#ranks[rank] = recording;
    return recorder;
  }

  take(): Recording[] {
    return this.#ranks.map((recording) => recording());
  }
}

/** What a rank has published for others that it wants to connect to. */
interface Published {
  readonly qpNumber: number;
  readonly ready: boolean;
}

const NOBODY: readonly number[] = [];

/**
 * What ends each of the runs that are under way when the process has nothing more to do. One listener for all of them,
 * however many there are.
 */
const underWay = new Set<() => void>();
const stopAll = (): void => {
  for (const stop of underWay) stop();
};

class Run<T> {
  readonly #size: number;
  readonly #simulator: Simulator;
  readonly #contexts: ModelledContext[];
  readonly #progresses: (VirtualProgress | undefined)[] = [];
  readonly #jobs: Job[];
  readonly #control: Control;
  readonly #faults: Faults;
  readonly #done: boolean[];
  readonly #results: T[];
  #left: number;
  /** What the first rank to fail has thrown. */
  #error: { readonly error: unknown; readonly told: boolean; readonly time: number; readonly rank: number } | undefined;
  #resolve!: (results: T[]) => void;
  #reject!: (error: unknown) => void;
  readonly #registry = new Map<string, object>();
  /** What some members of `Registry.share` have not asked for yet. */
  readonly #shared = new Map<string, { readonly value: object; left: number }>();
  /** What was published, by the rank that published it and the rank that it is for. */
  readonly #published: (Map<number, Published> | undefined)[];
  /** By rank: the ranks that have published something for it. */
  readonly #callers: (number[] | undefined)[];
  readonly #recordings: Recordings | undefined;
  readonly #races: TaskRaces | undefined;

  constructor(
    size: number,
    fabric: Fabric,
    seed: number,
    faults: Faults,
    shuffled: boolean,
    timeoutMs: number,
    barrier: BarrierChoice,
    recordings: Recordings | undefined,
    races: TaskRaces | undefined,
  ) {
    this.#size = size;
    this.#recordings = recordings;
    this.#races = races;
    this.#left = size;
    this.#faults = faults;
    this.#simulator = new Simulator(size, seed, shuffled);
    this.#done = new Array<boolean>(size).fill(false);
    this.#results = new Array<T>(size);
    this.#published = new Array<undefined>(size).fill(undefined);
    this.#callers = new Array<undefined>(size).fill(undefined);
    const words = viewControl(new ArrayBuffer(controlBytes(size, 'none')), size, 'none');
    formatControl(words);
    this.#control = words;
    const shared = new ModelledFabric(fabric, this.#simulator, faults, size);
    const registry: Registry = {
      offer: (space, rank, what) => void this.#registry.set(`${space}:${rank}`, what),
      find: (space, rank) => this.#registry.get(`${space}:${rank}`),
      withdraw: (space, rank) => void this.#registry.delete(`${space}:${rank}`),
      share: (space, rank, members, value) => this.#share(`${space}:${rank}`, members, value),
    };
    this.#contexts = Array.from({ length: size }, (_, rank) => shared.open(rank));
    this.#jobs = this.#contexts.map(
      (context, rank) => new Job(this.#membership(context, rank, registry, fabric.host.lookAgain), timeoutMs, barrier),
    );
  }

  #share<V extends object>(key: string, members: number, value: V): V {
    const entry = this.#shared.get(key) ?? { value, left: members };
    entry.left--;
    if (entry.left > 0) this.#shared.set(key, entry);
    else this.#shared.delete(key);
    return entry.value as V;
  }

  run(main: (world: Communicator) => T | Promise<T>): Promise<T[]> {
    const simulator = this.#simulator;
    const onExit = (): void => this.#stop(this.#outsideError());
    if (underWay.size === 0) process.on('beforeExit', stopAll);
    underWay.add(onExit);
    const finished = new Promise<T[]>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    simulator.observer = {
      idle: () => this.#idle(),
      stuck: () => {
        if (!this.#ringForMissed()) this.#stopInDeadlock();
      },
      failed: (error) => this.#stop(error),
    };
    for (const { rank, time } of this.#faults.deaths) {
      simulator.underWay++;
      simulator.at(time, rank, {
        happen: () => {
          simulator.underWay--;
          this.#die(rank);
        },
      });
    }
    simulator.outside = this.#size;
    for (let rank = 0; rank < this.#size; rank++) void this.#runTask(rank, main);
    return finished.finally(() => {
      underWay.delete(onExit);
      if (underWay.size === 0) process.removeListener('beforeExit', stopAll);
    });
  }

  async #runTask(rank: number, main: (world: Communicator) => T | Promise<T>): Promise<void> {
    try {
      const world = await Communicator.world(this.#jobs[rank], {});
      this.#results[rank] = await main(world);
      await world.finalize();
    } catch (error) {
      // The run is over, by this rank's abort.
      if (this.#left === 0) return;
      this.#note(error, rank);
      this.#tellFailure(rank, FailKind.NO_FINALIZE);
    }
    this.#end(rank);
  }

  /**
   * An error that a rank throws because another has failed says less than the error of that other one. Of ranks that
   * fail at one time, the lowest counts, and not the one whose microtask came first.
   */
  #note(error: unknown, rank: number): void {
    const { time } = this.#contexts[rank].cpu;
    const told = error instanceof RankFailedError;
    const before = this.#error;
    if (before !== undefined) {
      if (before.told !== told ? told : before.time < time || (before.time === time && before.rank < rank)) return;
    }
    this.#error = { error, told, time, rank };
  }

  #end(rank: number): void {
    if (this.#done[rank]) return;
    this.#done[rank] = true;
    // One that died may have been waiting.
    this.#contexts[rank].cpu.leave();
    if (--this.#left > 0) return;
    this.#simulator.stop();
    if (this.#error === undefined) this.#resolve(this.#results);
    else this.#reject(this.#error.error);
  }

  /** A rank has failed: the others learn of it, in an event. */
  #tellFailure(rank: number, kind: number, time = this.#contexts[rank].cpu.time): void {
    this.#simulator.at(time, rank, {
      happen: () => {
        declareFailed(this.#control, rank, kind, 0);
        this.#wakeAll();
      },
    });
  }

  /** The rank does nothing any more, and its device answers no request. */
  #die(rank: number): void {
    if (this.#done[rank]) return;
    this.#contexts[rank].cpu.dead = true;
    this.#end(rank);
    // Now, and not when what its processor has begun would have been over.
    this.#tellFailure(rank, FailKind.VANISHED, this.#simulator.now);
  }

  #wakeAll(): void {
    for (const { cpu } of this.#contexts) cpu.ring();
  }

  /**
   * Nothing is left to happen. Either no task can go on any more, or some task waits for something that is not on the
   * fabric.
   */
  #idle(): void {
    if (this.#left === 0 || this.#ringForMissed()) return;
    if (this.#simulator.outside !== 0) return;
    if (this.#error === undefined) this.#stopInDeadlock();
    else this.#stop(this.#error.error);
  }

  /**
   * A wait that begins looks at what it is about; whatever else came for its rank before is looked at with the next
   * thing that comes. Where nothing comes any more, it is looked at here: some task may be able to go on after all.
   * @returns whether there is anything
   */
  #ringForMissed(): boolean {
    let rung = false;
    for (const { cpu } of this.#contexts) if (cpu.ringForMissed()) rung = true;
    return rung;
  }

  #stop(error: unknown): void {
    if (this.#left === 0) return;
    this.#left = 0;
    this.#simulator.stop();
    this.#reject(error);
  }

  /** The error begins at the line of the program where a rank waits: the first for which there is one. */
  #stopInDeadlock(): void {
    if (this.#left === 0) return;
    const error = this.#deadlock();
    this.#left = 0;
    this.#simulator.stop();
    void this.#showIn(error).then(() => this.#reject(error));
  }

  async #showIn(error: Error): Promise<void> {
    for (const progress of this.#progresses) if (await progress?.showIn(error)) return;
  }

  #deadlock(): RmaError {
    const waits = this.#jobs.map((_, rank) => (this.#done[rank] ? undefined : (this.#progresses[rank]?.waits ?? [])));
    return deadlock(
      this.#simulator.now,
      waits,
      this.#jobs.map(({ locks }) => [...locks.windows]),
    );
  }

  #outsideError(): RmaError {
    const who = [...this.#done.keys()].filter((rank) => !this.#done[rank] && !this.#contexts[rank].cpu.isWaiting);
    return new RmaError(
      'ERR_RMA_WOULD_DEADLOCK',
      `${who.length === 1 ? 'rank' : 'ranks'} ${who.slice(0, 20).join(', ')} ` +
        `${who.length === 1 ? 'waits' : 'wait'} for an event outside the fabric that nothing ` +
        'in this process can cause',
    );
  }

  #membership(context: ModelledContext, rank: number, registry: Registry, lookAgain: number): Membership {
    const simulator = this.#simulator;
    const { cpu } = context;
    const recorder = this.#recordings?.recorderOf(rank, this.#size, cpu);
    const compute = (microseconds: number): Promise<void> => {
      cpu.compute(microseconds);
      cpu.beginWait();
      return new Promise((resolve) => computeOn(simulator, cpu, resolve));
    };
    const vainLooks = new VainLooks(simulator);
    const tasks: TaskTime = {
      now: () => cpu.time,
      compute,
      vainLooks,
      makeProgress: (poll, isIdle, timeoutMs) => {
        const waits = { timeout: timeoutMs, lookAgain, isIdle, vainLooks };
        const progress = new VirtualProgress(simulator, cpu, poll, compute, waits);
        this.#progresses[rank] = progress;
        if (recorder !== undefined) {
          const wait = progress.wait.bind(progress);
          progress.wait = (operation, options, concerned) =>
            recordWait(recorder, operation, () => wait(operation, options, concerned));
        }
        return progress;
      },
      wakeAll: () => {
        simulator.at(cpu.time, rank, { happen: () => this.#wakeAll() });
      },
      abort: (code) => {
        const error = new RankFailedError(rank, `rank ${rank} called abort(${code}), which ended all ranks`);
        this.#stop(error);
        throw error;
      },
      processor: new ModelledProcessor(context),
      rendezvous: this.#rendezvous(context, rank),
      messageMemory: messageMemory(this.#size, context.fabric),
      registry,
      seed: simulator.seed,
    };
    return {
      rank,
      size: this.#size,
      control: this.#control,
      context,
      cores: 0,
      tasks,
      recorder,
      races: this.#races?.watch(rank),
      describe: () => 'a task of this thread',
      alive: () => true,
      watched: true,
      leave: () => {},
    };
  }

  /**
   * What a rank publishes is there for its peer only after an event, so that it does not matter which of two tasks runs
   * first at one time.
   */
  #rendezvous({ cpu }: ModelledContext, rank: number): Rendezvous {
    return {
      publish: (peer, qpNumber, ready) => {
        this.#simulator.at(cpu.time, rank, {
          happen: () => {
            const mine = (this.#published[rank] ??= new Map());
            mine.set(peer, { qpNumber, ready });
            const callers = (this.#callers[peer] ??= []);
            callers.push(rank);
            this.#contexts[peer].cpu.ring();
          },
        });
      },
      lookUp: (peer) => this.#published[peer]?.get(rank),
      hasLeft: (peer) => {
        const { slots, slotWords } = this.#control;
        return Atomics.load(slots, peer * slotWords + Slot.STATE) === RankState.FINALIZED;
      },
      callers: () => {
        const callers = this.#callers[rank];
        if (callers === undefined) return NOBODY;
        this.#callers[rank] = undefined;
        return callers;
      },
    };
  }
}

/** With very many ranks chunks are smaller, so that all of them fit. */
function messageMemory(size: number, { host }: Fabric): MessageMemory {
  const [receives, sends] = [64, 32];
  const most = 2 ** Math.floor(Math.log2(MESSAGE_BYTES / size / (receives + sends)));
  const chunk = Math.max(256, Math.min(LEAST_MESSAGE, most));
  return { chunk, receives, sends, eager: host.eager, byRead: host.rendezvousByRead === 1 };
}
