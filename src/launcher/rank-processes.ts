/**
 * Ranks that are processes of this host.
 *
 * Each rank is a Node process that inherits the job's control memory as descriptor 3 and learns its number from the
 * environment. It leads a session of its own: so a signal reaches it once and not twice (from the terminal and from
 * here), and what it has started and left behind can be ended with it. Nothing of a job has a name in the file system.
 */
import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CARDS_VARIABLE } from '../start/managers/pipe.ts';
import type { Guardian } from './guardian.ts';
import type { Ending } from './supervisor.ts';

/** The descriptor under which a rank finds the control memory. */
const CONTROL_FD = 3;
/** That of a connection with what has started it, if it has one. */
export const CONNECTION_FD = 4;

/** What a rank inherits. */
export interface Inheritance {
  readonly env: NodeJS.ProcessEnv;
  /** Of the control memory. */
  readonly control: number;
  /** Rank 0's standard input; the others have none. */
  readonly input: 'inherit' | 'pipe';
  readonly output: 'inherit' | 'pipe';
  /** Whether each has a connection with this process, as descriptor {@link CONNECTION_FD}. */
  readonly connected: boolean;
}

export interface RankWatcher {
  /** Whether no more ranks need be started. */
  concluded(): boolean;
  started?(rank: number, child: ChildProcess): void;
  output(rank: number, stdout: Readable | null, stderr: Readable | null): void;
  /** Called once for each rank, also for those that were not started. */
  ended(rank: number, ending: Ending): void;
  cannotStart(rank: number, error: Error): void;
}

export class RankProcesses {
  readonly #guardian: Guardian;
  readonly #children = new Map<number, ChildProcess>();
  /** Groups in which something is left although their rank has ended. */
  readonly #leftovers = new Set<number>();

  constructor(guardian: Guardian) {
    this.#guardian = guardian;
  }

  pidOf(rank: number): number | undefined {
    return this.#children.get(rank)?.pid;
  }

  signal(rank: number, signal: NodeJS.Signals): boolean {
    return signalGroup(this.pidOf(rank), signal);
  }

  /**
   * Starts the ranks one after the other. The watcher is told how each of them ends; if one cannot be started, or the
   * job is over before that, it is told that those behind it have ended.
   */
  async start(
    ranks: readonly number[],
    args: readonly string[],
    { env, control, input, output, connected }: Inheritance,
    watcher: RankWatcher,
  ): Promise<void> {
    const unstarted = (from: number): void => {
      for (const rank of ranks.slice(from)) watcher.ended(rank, { code: 0 });
    };
    const failedToStart = (at: number, error: Error): void => {
      watcher.cannotStart(ranks[at], error);
      unstarted(at);
    };
    const numbers = {
      ONESIDED_CONTROL_FD: String(CONTROL_FD),
      ...(connected && { [CARDS_VARIABLE]: String(CONNECTION_FD) }),
    };
    for (const [at, rank] of ranks.entries()) {
      let child: ChildProcess;
      try {
        child = this.#guardian.spawn(process.execPath, args, {
          env: { ...env, ...numbers, ONESIDED_RANK: String(rank) },
          stdio: [rank === 0 ? input : 'ignore', output, output, control, ...(connected ? (['pipe'] as const) : [])],
        });
      } catch (error) {
        failedToStart(at, error as Error);
        return;
      }
      if (child.pid === undefined) {
        child.once('error', (error) => failedToStart(at, error));
        return;
      }
      this.#watch(rank, child, child.pid, watcher);
      // A start takes a millisecond or two; with many ranks, signals and failures must get their turn in between.
      await nextTurn();
      if (watcher.concluded()) {
        unstarted(at + 1);
        return;
      }
    }
  }

  #watch(rank: number, child: ChildProcess, pid: number, watcher: RankWatcher): void {
    this.#children.set(rank, child);
    watcher.output(rank, child.stdout, child.stderr);
    child.on('error', () => {});
    child.on('exit', (code, signal) => {
      if (signalGroup(pid, 0)) this.#leftovers.add(pid);
      else this.#guardian.gone(pid);
      watcher.ended(rank, signal === null ? { code: code ?? 0 } : { code: 0, signal });
    });
    watcher.started?.(rank, child);
  }

  /** Ends what ranks have left behind in their groups. */
  endLeftovers(): void {
    for (const pid of this.#leftovers) {
      signalGroup(pid, 'SIGKILL');
      this.#guardian.gone(pid);
    }
    this.#leftovers.clear();
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
