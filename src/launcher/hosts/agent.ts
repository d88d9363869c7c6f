/**
 * The agent of a job on several hosts: it starts the ranks of its host, and passes on what they and the launcher have
 * to tell each other. Which rank has failed first and what becomes of the others, the launcher alone decides.
 *
 * Who ends whom: the agent lives no longer than its connection. When its standard input ends without a word of the end,
 * or nothing has come for a minute, the launcher, or the ssh that led to it, is gone, and the agent kills its ranks and
 * all that they have started, and ends. If the agent itself is killed, its guardian does so (guardian.ts), as for any
 * launcher.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, rmSync } from 'node:fs';
import { isIP } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { addonAdvice } from '../../addon.ts';
import type { RmaError } from '../../errors.ts';
import {
  type Control,
  createControl,
  declareFailed,
  FailKind,
  Header,
  RankState,
  Slot,
} from '../../job/control-region.ts';
import { askForReports, reportOf } from '../../job/reports.ts';
import { loadNative, type Native, nativeStatus } from '../../native.ts';
import { wakeAll } from '../../providers/emulator/bells.ts';
import { distantProviders } from '../../providers/provider-kinds.ts';
import { makeLogFolder } from '../../races/logs/log-folder.ts';
import { LOG_FILES, logFile } from '../../races/logs/race-log-format.ts';
import { RACES_LOGS_VARIABLE } from '../../races/race-request.ts';
import { ControlLinks } from '../../start/control-links.ts';
import { type Hub, reachableAt } from '../../start/distributed.ts';
import { FATAL_VARIABLE } from '../../start/fatal-errors.ts';
import { openControl } from '../../start/process.ts';
import { noteLauncher } from '../../start/process-start.ts';
import { ringOf } from '../../start/tracing.ts';
import { ADDRESS_VARIABLE, HOST_VARIABLE, hostAddress, isOwnAddress, placeOfProcess } from '../../start/whereabouts.ts';
import { VERSION } from '../../version.ts';
import { killMarked, newMark } from '../descendants.ts';
import { type Guardian, startGuardian } from '../guardian.ts';
import { environmentOfRanks } from '../job-start.ts';
import { CONNECTION_FD, RankProcesses } from '../rank-processes.ts';
import { resolveScript } from '../script.ts';
import type { Ending } from '../supervisor.ts';
import {
  AGENT_SILENCE_MS,
  type AgentHello,
  GREETING,
  type HostJob,
  type HostLinks,
  LAUNCHER_SILENCE_MS,
  type Order,
  type Report,
  readFrameLines,
  Silence,
  STARTING_SILENCE_MS,
  sendFrame,
} from './frames.ts';

/** How long an agent tries to reach that of rank 0. */
const JOIN_MS = 9000;
/** How long ranks wait at most for the first connection of their agent. */
const MEET_MS = 4000;
/** The device that ranks are to use: that of a host's own environment is meant for it. */
const DEVICE_VARIABLE = 'ONESIDED_DEVICE';
/** Milliseconds for which output is still awaited after the last rank has ended. */
const OUTPUT_WITHIN = 1000;
/** Milliseconds that ranks have to say what they wait in, and from one look to the next. */
const ANSWER_WITHIN = 1000;
const ANSWER_EVERY = 10;
/** Bytes of a ring in one message. */
const RING_PIECE = 1 << 16;
/** Bytes of a file in one message. */
const LOG_PIECE = 3 << 16;

/** Serves the launcher at the other end of standard input and output until the job has ended. */
export async function runAgent(): Promise<never> {
  const native = loadNative();
  const hello: AgentHello = {
    version: VERSION,
    node: process.versions.node,
    pid: process.pid,
    place: native === undefined ? '' : placeOfProcess(),
    ...addressOrWhyNot(),
    providers: native === undefined ? {} : distantProviders(),
    ...(native === undefined && {
      unable: `ranks need the native addon, which is not available (${nativeStatus().reason}); ${addonAdvice()}`,
    }),
  };
  const agent = new Agent(native);
  process.stdout.on('error', () => agent.abandon());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => agent.abandon());
  process.stdout.write(`${GREETING}${JSON.stringify({ hello } satisfies Report)}\n`);
  await new Promise<void>((resolve) => {
    readFrameLines(process.stdin, (line) => agent.obey(JSON.parse(line) as Order), resolve);
  });
  return agent.abandon();
}

function addressOrWhyNot(): Pick<AgentHello, 'address' | 'unable'> {
  try {
    return { address: hostAddress(), unable: undefined };
  } catch (error) {
    return { address: undefined, unable: (error as RmaError).message };
  }
}

class Agent {
  readonly #native: Native | undefined;
  readonly #silence = new Silence(LAUNCHER_SILENCE_MS, () => this.abandon());
  #job: RunningJob | undefined;

  constructor(native: Native | undefined) {
    this.#native = native;
  }

  obey(order: Order): void {
    this.#silence.heard();
    if ('job' in order) this.#begin(order.job);
    else if ('alive' in order) tell({ alive: Number(process.hrtime.bigint()) });
    else if ('signal' in order) {
      if (order.signal === 'SIGSTOP') this.#silence.paused = true;
      if (order.signal === 'SIGCONT') this.#silence.paused = false;
      this.#job?.ranks.signal(order.rank, order.signal);
    } else if ('end' in order) void this.#end();
    else this.#job?.obey(order);
  }

  #begin(job: HostJob): void {
    try {
      this.#job = new RunningJob(this.#native!, job);
    } catch (error) {
      const { message, code } = error as RmaError;
      tell({ unable: message, wrong: code === 'ERR_ARG' });
    }
  }

  async #end(): Promise<void> {
    await this.#job?.end();
    tell({ bye: true });
    process.stdout.write('', () => process.exit(0));
  }

  /** The launcher is gone: so is everything here. */
  abandon(): never {
    this.#job?.kill();
    process.exit(1);
  }
}

/** The device of this host's own environment, or else that of the launcher's, unless it is an address elsewhere. */
function deviceHere(launchers: string | undefined): string | undefined {
  const address = launchers?.replace(/^libfabric:[^:]*:/, '') ?? '';
  const isElsewhere = isIP(address) !== 0 && !isOwnAddress(address);
  return process.env[DEVICE_VARIABLE] || (isElsewhere ? undefined : launchers);
}

/** @returns whether more may be said at once */
function tell(report: Report): boolean {
  return sendFrame(process.stdout, report);
}

class RunningJob {
  readonly ranks: RankProcesses;
  readonly #native: Native;
  readonly #job: HostJob;
  readonly #mark = newMark();
  readonly #guardian: Guardian;
  readonly #fd: number;
  readonly #control: Control;
  readonly #running: Set<number>;
  /** For the files of ranks that are searched for races. */
  readonly #logs: string | undefined;
  #links: ControlLinks | undefined;
  /** Of ranks that have not ended their output. */
  readonly #sources = new Set<Readable>();
  readonly #connections = new Map<number, Duplex>();
  #input: NodeJS.WritableStream | undefined;
  /** What has come for rank 0's input before it was started; null: the end. */
  readonly #early: (string | null)[] = [];
  #reply: string | undefined;
  #over = false;
  #said = performance.now();

  /** Throws `ERR_ARG` if the script cannot be run here. */
  constructor(native: Native, job: HostJob) {
    const { size, ranks, events, records, execArgv, timeout } = job;
    const address = hostAddress();
    const here = {
      ...{ [HOST_VARIABLE]: job.host, [DEVICE_VARIABLE]: deviceHere(job.env[DEVICE_VARIABLE]) },
      ...(address !== undefined && { [ADDRESS_VARIABLE]: address }),
    };
    this.#logs = job.logs ? makeLogFolder() : undefined;
    const logs = this.#logs === undefined ? {} : { [RACES_LOGS_VARIABLE]: this.#logs };
    const own = { ...process.env, ...job.env, ...here, ...logs };
    const script = resolveScript(job.script, execArgv, own);
    this.#native = native;
    this.#job = job;
    if (job.control === undefined) {
      const { fd, control } = createControl(native, size, { events, records });
      noteLauncher(control);
      [this.#fd, this.#control] = [fd, control];
    } else {
      const [pid, fd] = job.control;
      this.#fd = openSync(`/proc/${pid}/fd/${fd}`, 'r+');
      this.#control = openControl(native, this.#fd, size);
    }
    this.#running = new Set(ranks);
    this.#guardian = startGuardian(this.#mark);
    this.ranks = new RankProcesses(this.#guardian);
    process.stdout.on('drain', () => this.#resume());
    const env = environmentOfRanks({ size, env: own, timeout }, this.#mark);
    env[FATAL_VARIABLE] = '1';
    void this.#run([...execArgv, script, ...job.args], env);
  }

  async #run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
    const { links, ranks } = this.#job;
    const hub = links && links.hub === undefined ? await this.#listen(links) : undefined;
    tell({ ready: this.#fd, hub });
    if (links?.hub !== undefined) void this.#join(links, links.hub);
    // Ranks use the network by which their hosts have met. If they do not, ranks that communicate will be told.
    const reached = links && (await Promise.race([this.#links!.reached, sleep(MEET_MS, undefined, { ref: false })]));
    if (reached !== undefined && !process.env[ADDRESS_VARIABLE]) env[ADDRESS_VARIABLE] = reached;
    await this.ranks.start(
      ranks,
      args,
      { env, control: this.#fd, input: 'pipe', output: 'pipe', connected: true },
      {
        concluded: () => this.#over,
        started: (rank, child) => {
          tell({ started: rank, pid: child.pid! });
          if (rank === 0) this.#feed(child.stdin!);
          this.#connect(rank, child.stdio[CONNECTION_FD] as Duplex);
        },
        output: (rank, stdout, stderr) => {
          for (const [stream, source] of [stdout!, stderr!].entries()) this.#follow(rank, source, stream as 0 | 1);
        },
        ended: (rank, ending) => this.#ended(rank, ending),
        cannotStart: (rank, error) => tell({ unable: error.message, rank }),
      },
    );
  }

  /** For the agents of other places. */
  async #listen({ leaderOf }: HostLinks): Promise<Hub> {
    const secret = randomBytes(16).toString('hex');
    const links = this.#linked(0, leaderOf, secret);
    const address = hostAddress();
    return { hosts: reachableAt(address === undefined ? [] : [address]), port: await links.listen(), secret };
  }

  async #join({ leaderOf }: HostLinks, { hosts, port, secret }: Hub): Promise<void> {
    const leader = leaderOf[this.#job.ranks[0]];
    const links = this.#linked(leader, leaderOf, secret);
    const failure = await links.join(hosts, port, JOIN_MS);
    if (failure !== undefined) tell({ apart: failure });
  }

  #linked(leader: number, leaderOf: readonly number[], secret: string): ControlLinks {
    const silent = (other: number, ms: number): void => void tell({ silent: other, ms });
    this.#links = new ControlLinks({
      ...{ control: this.#control, leader, leaderOf, secret, silent },
      silenceMs: STARTING_SILENCE_MS,
    });
    return this.#links;
  }

  obey(order: Order): void {
    if ('up' in order) {
      if (this.#links !== undefined) this.#links.silenceMs = AGENT_SILENCE_MS;
    } else if ('failed' in order) {
      declareFailed(this.#control, ...order.failed);
      this.#wake();
    } else if ('ask' in order) this.#ask();
    else if ('reply' in order) {
      this.#reply = order.reply;
      for (const connection of this.#connections.values()) connection.end(`${order.reply}\n`, 'latin1');
      this.#connections.clear();
    } else if ('stdin' in order) {
      if (this.#input === undefined) this.#early.push(order.stdin);
      else this.#give(this.#input, order.stdin);
    }
  }

  #give(input: NodeJS.WritableStream, text: string | null): void {
    if (text === null) input.end();
    else input.write(Buffer.from(text, 'latin1'), () => tell({ read: text.length }));
  }

  /** Kills everything, at once. */
  kill(): void {
    this.#over = true;
    for (const rank of this.#running) this.ranks.signal(rank, 'SIGKILL');
    this.ranks.endLeftovers();
    killMarked(this.#mark);
    this.#removeLogs();
    this.#guardian.close(false);
  }

  /** All ranks of the job have ended: says what there is to say yet. */
  async end(): Promise<void> {
    this.#over = true;
    this.ranks.endLeftovers();
    killMarked(this.#mark);
    while (
      this.#sources.size > 0 &&
      (process.stdout.writableNeedDrain || performance.now() - this.#said < OUTPUT_WITHIN)
    )
      await pause(ANSWER_EVERY);
    for (const rank of this.#job.ranks) {
      await this.#sendRing(rank);
      await this.#sendLogs(rank);
    }
    this.#removeLogs();
    this.#guardian.close(true);
    closeSync(this.#fd);
  }

  #connect(rank: number, connection: Duplex): void {
    this.#connections.set(rank, connection);
    let card = '';
    connection.on('error', () => {}).on('close', () => this.#connections.delete(rank));
    connection.setEncoding('latin1').on('data', (piece: string) => {
      card += piece;
      if (!card.endsWith('\n')) return;
      tell({ card: card.trimEnd(), rank });
      if (this.#reply !== undefined) connection.end(`${this.#reply}\n`, 'latin1');
    });
  }

  #feed(input: NodeJS.WritableStream): void {
    this.#input = input;
    // It reads no more.
    input.on('error', () => tell({ read: -1 }));
    for (const text of this.#early.splice(0)) this.#give(input, text);
  }

  #follow(rank: number, source: Readable, stream: 0 | 1): void {
    this.#sources.add(source);
    source.setEncoding('latin1').on('data', (out: string) => {
      this.#said = performance.now();
      if (!tell({ out, rank, stream })) for (const each of this.#sources) each.pause();
    });
    source.on('error', () => {}).on('close', () => this.#sources.delete(source));
    if (process.stdout.writableNeedDrain) source.pause();
  }

  #resume(): void {
    this.#said = performance.now();
    for (const source of this.#sources) source.resume();
  }

  #ended(rank: number, { code, signal }: Ending): void {
    this.#running.delete(rank);
    const [, kind, value] = this.#failureOf(rank);
    const wholeCode = kind === FailKind.EXIT_CODE ? value : 0;
    const first = Atomics.load(this.#control.header, Header.FAILED) - 1;
    const firstFailed = first < 0 ? null : this.#failureOf(first);
    tell({ ended: { rank, code, signal: signal ?? null, state: this.#stateOf(rank), wholeCode, firstFailed } });
  }

  #failureOf(rank: number): [rank: number, kind: number, value: number] {
    const { slots, slotWords } = this.#control;
    const slot = rank * slotWords;
    return [rank, Atomics.load(slots, slot + Slot.FAIL_KIND), Atomics.load(slots, slot + Slot.FAIL_VALUE)];
  }

  /** Has the ranks say what they wait in, and says what they have said by and by. */
  #ask(): void {
    askForReports(this.#control);
    this.#wake();
    const silent = new Set(this.#running);
    const deadline = performance.now() + ANSWER_WITHIN;
    const look = (): void => {
      const late = performance.now() > deadline;
      for (const rank of silent) {
        const state = this.#stateOf(rank);
        const waits = reportOf(this.#control, rank);
        if (waits === undefined && state === RankState.JOINED && !late) continue;
        silent.delete(rank);
        tell({ doing: { rank, state, waits } });
      }
      if (silent.size > 0) setTimeout(look, ANSWER_EVERY);
    };
    look();
  }

  async #sendRing(rank: number): Promise<void> {
    const { size, events } = this.#job;
    if (events === 0) return;
    const ring = ringOf(this.#fd, rank, size, events);
    // Most rings are not full.
    const used = ring.findLastIndex((byte) => byte !== 0) + 1;
    for (let at = 0; at < used; at += RING_PIECE) {
      tell({ ring: Buffer.from(ring.subarray(at, Math.min(used, at + RING_PIECE))).toString('base64'), rank });
      while (process.stdout.writableNeedDrain) await pause(1);
    }
  }

  async #sendLogs(rank: number): Promise<void> {
    if (this.#logs === undefined) return;
    const piece = Buffer.alloc(LOG_PIECE);
    for (const file of LOG_FILES) {
      const path = logFile(this.#logs, rank, file);
      if (!existsSync(path)) continue;
      const fd = openSync(path, 'r');
      for (let n = readSync(fd, piece); n > 0; n = readSync(fd, piece)) {
        tell({ log: piece.toString('base64', 0, n), file, rank });
        while (process.stdout.writableNeedDrain) await pause(1);
      }
      closeSync(fd);
    }
  }

  #removeLogs(): void {
    if (this.#logs !== undefined) rmSync(this.#logs, { recursive: true, force: true });
  }

  #wake(): void {
    wakeAll(this.#control.fabric, this.#job.size, this.#native);
  }

  #stateOf(rank: number): number {
    return Atomics.load(this.#control.slots, rank * this.#control.slotWords + Slot.STATE);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
