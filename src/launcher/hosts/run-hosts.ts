/**
 * Runs a job on several hosts: an agent on each starts its ranks (agent.ts), and everything that is decided is decided
 * here, by the same supervisor as on one host. Its control memory is one that no rank sees: what the agents tell is
 * written there, and what the supervisor writes there is told to the agents.
 *
 * The ranks' cards go through these connections, too, so that no port need be chosen and no secret stands in an
 * environment or on a command line (start/managers/pipe.ts).
 */
import { Readable } from 'node:stream';
import {
  type Control,
  controlBytes,
  declareFailed,
  formatControl,
  Header,
  RankState,
  REPORT_BYTES,
  Slot,
  viewControl,
} from '../../job/control-region.ts';
import { report } from '../../job/reports.ts';
import { packageFolder } from '../../place.ts';
import { connectsHosts, DISTANT_PROVIDER_NAMES, PROVIDERS } from '../../providers/provider-kinds.ts';
import type { Hub } from '../../start/distributed.ts';
import type { CardsReply } from '../../start/managers/pipe.ts';
import { VERSION } from '../../version.ts';
import { JobOutput } from '../job-output.ts';
import { checkLaunch, type JobResult, type LaunchOptions, recordsOf, withRecords } from '../job-start.ts';
import { passSignalsOn } from '../passed-signals.ts';
import { Supervisor } from '../supervisor.ts';
import { AgentLink, type LinkWatcher } from './agent-link.ts';
import { sentEnvironment } from './environment.ts';
import type { HostJob, Report } from './frames.ts';
import type { HostRanks } from './host-list.ts';
import { HostLogs } from './host-logs.ts';
import { leads, placesOf } from './host-places.ts';
import { HostRings } from './host-rings.ts';
import { InputFeed } from './input-feed.ts';
import { RankCards } from './rank-cards.ts';

export interface HostsOptions extends LaunchOptions {
  readonly hosts: readonly HostRanks[];
  /** The words of the command that leads to a host, if not ssh. */
  readonly ssh?: readonly string[] | undefined;
  /** The working directory of the ranks, the same on each host. */
  readonly folder: string;
  /** Races are searched for: where the ranks' files are wanted when the job has ended. */
  readonly logs?: string | undefined;
}

/** Milliseconds that the ranks of all hosts have to say what they wait in. */
const ANSWER_WITHIN = 1500;
/** How long after the start of the last rank they may still take all processor time. */
const SETTLE_MS = 5000;
const LOOK_EVERY = 50;
/** How long the hosts may take to say that nothing is left, after the job has ended or sent the last of its files. */
const BYE_MS = 15_000;
/** Milliseconds for which output is still awaited when the hosts have said that. */
const OUTPUT_WITHIN = 1000;

/**
 * Resolves when no rank is left and their output is written. Rejects with `ERR_ARG` (a wrong option) before anything
 * was started.
 */
export async function runHosts(options: HostsOptions): Promise<JobResult> {
  checkLaunch(options);
  const job = new HostsJob(options);
  const stopPassingOn = options.signals === true ? passSignalsOn(job.supervisor) : () => {};
  try {
    return await job.run();
  } finally {
    stopPassingOn();
    job.close();
  }
}

class HostsJob implements LinkWatcher {
  readonly supervisor: Supervisor;
  readonly #options: HostsOptions;
  readonly #control: Control;
  readonly #output: JobOutput;
  readonly #input = new InputFeed((text) => this.#linkOf(0)?.send({ stdin: text }));
  readonly #cards: RankCards;
  readonly #links: AgentLink[] = [];
  /** By rank. */
  readonly #linkByRank: (AgentLink | undefined)[];
  readonly #pids: (number | undefined)[];
  readonly #ended = new Set<number>();
  readonly #streams: (readonly [Readable, Readable])[] = [];
  readonly #rings = new HostRings();
  readonly #logs: HostLogs;
  /** Ranks of whose failure the agents know. */
  readonly #told = new Set<number>();
  #asked = false;
  #started = 0;
  /** Why some ranks cannot reach the others, if so. */
  #apart: string | undefined;
  /** Those that have nothing more to say. */
  readonly #gone = new Set<AgentLink>();
  readonly #ready = new Map<AgentLink, { readonly fd: number; readonly hub: Hub | undefined }>();
  #changed: (() => void) | undefined;
  /** When the hosts must have said that nothing is left. */
  #byeBy = 0;

  constructor(options: HostsOptions) {
    const { size } = options;
    this.#options = options;
    this.#logs = new HostLogs(options.logs);
    const buffer = new ArrayBuffer(controlBytes(size, 'none'));
    this.#control = { ...viewControl(buffer, size, 'none'), reports: new Uint8Array(size * REPORT_BYTES) };
    formatControl(this.#control);
    this.#linkByRank = new Array(size).fill(undefined);
    this.#pids = new Array(size).fill(undefined);
    this.supervisor = new Supervisor(
      this.#control,
      {
        signal: (rank, signal) => this.#linkOf(rank)?.send({ signal, rank }),
        describe: (rank) => this.#describe(rank),
        unstarted: (rank) => this.#unstarted(rank),
      },
      () => this.#tell(),
      { ...options, answerWithin: ANSWER_WITHIN },
    );
    this.#output = new JobOutput(size, outputOf(options), (exitCode, failure) =>
      this.supervisor.abort(exitCode, failure),
    );
    this.#cards = new RankCards(size, (reply) => this.#broadcast(reply));
  }

  async run(): Promise<JobResult> {
    const { hosts, ssh, folder } = this.#options;
    const place = { folder, node: process.execPath, main: `${packageFolder()}/bin/onesided.mjs` };
    for (const host of hosts) {
      const link = new AgentLink(host, ssh, place, this, () => this.#changed?.());
      this.#links.push(link);
      for (const rank of host.ranks) this.#linkByRank[rank] = link;
    }
    await this.#start();
    const result = await this.supervisor.done;
    this.#input.stop();
    for (const link of this.#links) link.send({ end: true });
    await this.#allGone();
    this.#logs.completeClocks(this.#links);
    for (const pair of this.#streams) for (const stream of pair) stream.push(null);
    await this.#output.drained(OUTPUT_WITHIN);
    this.#output.showFatal(result.failure?.rank);
    const { events } = recordsOf(this.#options);
    const { size } = this.#options;
    return withRecords(result, this.#options, () =>
      this.#rings.recordings(size, events, (rank) => this.#linkOf(rank)!.clock),
    );
  }

  close(): void {
    this.#input.stop();
    for (const link of this.#links) link.leave();
    this.#output.close();
  }

  /**
   * Starts the ranks when all agents are there. Agents of one place share the memory that the first of them makes; the
   * first agents of several places keep theirs alike, connected to that of rank 0.
   */
  async #start(): Promise<void> {
    const { supervisor } = this;
    const { size } = this.#options;
    await this.#until(() => supervisor.concluded || this.#links.every(({ hello }) => hello !== undefined));
    if (!supervisor.concluded) this.#checkAgents();
    const places = placesOf(this.#links);
    const env = this.#environment(places.length > 1);
    const leaderOf = Array.from({ length: size }, (_, rank) => places.find(({ ranks }) => ranks.has(rank))!.leader);
    for (const link of this.#links) {
      const { first } = places.find(({ links }) => links.includes(link))!;
      const awaited = link === first ? this.#links[0] : first;
      if (awaited !== link) await this.#until(() => supervisor.concluded || this.#ready.has(awaited));
      if (supervisor.concluded) break;
      const control = link === first ? undefined : ([first.hello!.pid, this.#ready.get(first)!.fd] as const);
      const hub = this.#ready.get(this.#links[0])?.hub;
      const links = places.length > 1 && link === first ? { leaderOf, hub } : undefined;
      link.send({ job: this.#jobOf(link, env, control, links) });
      for (const rank of link.ranks) this.#connect(rank, link);
    }
    if (!supervisor.concluded) this.#input.start();
    // What was never started has ended.
    for (let rank = 0; rank < size; rank++) if (this.#streams[rank] === undefined) this.#end(rank);
  }

  #checkAgents(): void {
    for (const { host, hello } of this.#links) {
      const { version, unable } = hello!;
      if (version !== VERSION) {
        this.#fail(
          `${host} has onesided ${version}, and this host ${VERSION}; all ranks of a job must run the same version`,
        );
      } else if (unable !== undefined) this.#fail(`${host}: ${unable}`);
    }
  }

  /** @param distant whether ranks need a provider that connects hosts */
  #environment(distant: boolean): Record<string, string> {
    const { env = process.env } = this.#options;
    const sent = sentEnvironment(env);
    if (distant && !sent['ONESIDED_PROVIDER']) {
      const common = PROVIDERS.find(({ name }) => this.#links.every(({ hello }) => hello?.providers[name] === null));
      if (common !== undefined) sent['ONESIDED_PROVIDER'] = common.name;
      else this.#apart = this.#withoutProvider();
    } else if (distant && !connectsHosts(sent['ONESIDED_PROVIDER'])) {
      this.#apart =
        `the provider ${sent['ONESIDED_PROVIDER']} does not connect ranks of several hosts; ` +
        `set ONESIDED_PROVIDER=${DISTANT_PROVIDER_NAMES}`;
    }
    return sent;
  }

  /** Of what would connect the hosts of this job, that which is missing on the fewest: where, and why. */
  #withoutProvider(): string {
    const missing = (name: string) => this.#links.filter(({ hello }) => hello?.providers[name] !== null);
    const names = Object.keys(this.#links[0].hello?.providers ?? {}).reverse();
    const [name] = names.sort((one, other) => missing(one).length - missing(other).length);
    const reasons = missing(name).map(({ host, hello }) => `${host}: ${hello?.providers[name]}`);
    return `nothing connects the ranks of these hosts, since ${name} cannot be used everywhere: ${reasons.join('; ')}`;
  }

  #jobOf(
    link: AgentLink,
    env: Readonly<Record<string, string>>,
    control: HostJob['control'],
    links: HostJob['links'],
  ): HostJob {
    const { size, script, args = [], execArgv = [], timeout } = this.#options;
    const { events, records } = recordsOf(this.#options);
    return {
      host: link.host,
      size,
      ranks: link.ranks,
      script,
      args,
      execArgv,
      env,
      timeout,
      events,
      records,
      logs: this.#logs.areWanted,
      control,
      links,
    };
  }

  #connect(rank: number, link: AgentLink): void {
    const stream = (): Readable => {
      const made: Readable = new Readable({ read: () => link.takesMore(made) });
      return made;
    };
    const pair = [stream(), stream()] as const;
    this.#streams[rank] = pair;
    this.#output.connect(rank, ...pair);
  }

  // ---- what agents tell --------------------------------------------------------------------------------------------

  report(link: AgentLink, said: Parameters<LinkWatcher['report']>[1]): void {
    const rank = rankOf(said);
    if (this.#gone.has(link)) return;
    if (rank !== undefined && !link.ranks.includes(rank)) {
      this.lost(link, `it speaks for rank ${rank}, which is not there`);
      link.leave();
    } else if ('out' in said) link.pushTo(this.#streams[said.rank][said.stream], said.out);
    else if ('ready' in said) this.#ready.set(link, { fd: said.ready, hub: said.hub });
    else if ('started' in said) this.#hasStarted(said.started, said.pid);
    else if ('apart' in said) this.#isApart(link, said.apart);
    else if ('silent' in said) this.#isCutOff(link, said.silent, said.ms);
    else if ('unable' in said) this.#unable(link, said);
    else if ('card' in said) {
      this.#setState(said.rank, RankState.JOINED);
      this.#cards.add(said.rank, said.card);
      if (this.#apart !== undefined) this.#fail(this.#apart);
    } else if ('ended' in said) this.#rankEnded(said.ended);
    else if ('doing' in said) {
      const { rank, state, waits } = said.doing;
      this.#setState(rank, state);
      if (waits !== undefined) report(this.#control, rank, waits);
    } else if ('read' in said) this.#input.taken(said.read);
    else if ('ring' in said) this.#rings.keep(said.rank, said.ring);
    else if ('log' in said) {
      this.#byeBy = performance.now() + BYE_MS;
      this.#logs.keep(said);
    } else if ('bye' in said) {
      this.#gone.add(link);
      link.leave();
    }
    this.#changed?.();
  }

  remark({ host }: AgentLink, text: string): void {
    for (const line of text.split(/\r?\n/)) this.#say(`${host}: ${line}`);
  }

  #say(line: string): void {
    const { output } = this.#options;
    const stderr = (typeof output === 'object' ? output.stderr : undefined) ?? process.stderr;
    stderr.write(`onesided: ${line}\n`);
  }

  lost(link: AgentLink, why: string, reached = link.hello !== undefined): void {
    this.#gone.add(link);
    const what = link.hello !== undefined ? 'lost ' : reached ? 'cannot start ranks on ' : 'cannot reach ';
    const isRunning = this.#started === this.#options.size && !this.supervisor.concluded;
    if (this.#options.keepGoing !== true || !isRunning) this.#fail(`${what}${link.host}: ${why}`);
    else if (leads(link, this.#links)) this.#fail(`lost ${link.host}: ${why}; no other host can go on without it`);
    else this.#say(`lost ${link.host}, and goes on without its ranks: ${why}`);
    for (const rank of link.ranks) {
      if (this.#streams[rank] === undefined || this.#ended.has(rank)) continue;
      this.#ended.add(rank);
      this.#cards.ended(rank, `${link.host} is lost, where rank ${rank} was`);
      this.supervisor.ended(rank, { code: 0, signal: 'SIGKILL' });
    }
    this.#changed?.();
  }

  #hasStarted(rank: number, pid: number): void {
    this.#pids[rank] = pid;
    if (++this.#started === this.#options.size) setTimeout(() => this.#areUp(), SETTLE_MS).unref();
  }

  #areUp(): void {
    for (const link of this.#links) {
      link.hasStarted();
      link.send({ up: true });
    }
  }

  /** That is an error of ranks that join; others need not reach each other. */
  #isApart({ host }: AgentLink, why: string): void {
    const hub = this.#linkOf(0)!.host;
    this.#apart ??=
      `${host} cannot connect to ${hub} at ${why}; firewalls must allow TCP connections between the hosts, ` +
      `and ONESIDED_ADDRESS on ${hub} says at which address the others reach it`;
    if (!this.#cards.isEmpty) this.#fail(this.#apart);
  }

  /** Both are there: it is the network between them. Neither part can go on, since it knows nothing of the other. */
  #isCutOff({ host }: AgentLink, rank: number, ms: number): void {
    const link = this.#linkOf(rank);
    if (link === undefined || this.#gone.has(link)) return;
    this.#fail(`${host} and ${link.host} do not reach each other any more: nothing came for ${ms / 1000} s`);
  }

  #unable(link: AgentLink, { unable: why, rank, wrong }: Extract<Report, { unable: unknown }>): void {
    if (rank !== undefined) {
      const message = `cannot start rank ${rank} on ${link.host}: ${why}`;
      this.supervisor.abort(1, { kind: 'start', rank, message });
      return;
    }
    this.#fail(`${link.host}: ${why}`, wrong === true ? 2 : 1);
    for (const own of link.ranks) this.#end(own);
  }

  #rankEnded({
    rank,
    code,
    signal,
    state,
    wholeCode,
    firstFailed,
  }: Extract<Report, { ended: unknown }>['ended']): void {
    if (this.#ended.has(rank)) return;
    this.#ended.add(rank);
    // One that was about to join has shown its card.
    this.#setState(rank, Math.max(state, this.#stateOf(rank)));
    // Its own agent may tell of that one's end later.
    if (firstFailed !== null && !this.#isFailed(firstFailed[0])) declareFailed(this.#control, ...firstFailed);
    const whole = wholeCode === 0 ? code : wholeCode;
    const how = signal === null ? `exited with code ${whole}` : `was killed by ${signal}`;
    this.#cards.ended(rank, `rank ${rank} (${this.#describe(rank)}) ${how} before it had joined`);
    this.supervisor.ended(rank, signal === null ? { code: whole } : { code: 0, signal });
  }

  /** It has not run. */
  #end(rank: number): void {
    if (this.#ended.has(rank)) return;
    this.#ended.add(rank);
    this.supervisor.ended(rank, { code: 0 });
  }

  #fail(message: string, exitCode = 1): void {
    this.supervisor.abort(exitCode, { kind: 'host', message });
    this.#changed?.();
  }

  // ---- what agents are told ----------------------------------------------------------------------------------------

  /** The supervisor has written into the control memory. */
  #tell(): void {
    const { header, slots, slotWords, size } = this.#control;
    if (!this.#asked && Atomics.load(header, Header.ASKED) !== 0) {
      this.#asked = true;
      for (const link of this.#links) link.send({ ask: true });
    }
    for (let rank = 0; rank < size; rank++) {
      if (this.#told.has(rank) || !this.#isFailed(rank)) continue;
      this.#told.add(rank);
      const at = rank * slotWords;
      const [kind, value] = [Slot.FAIL_KIND, Slot.FAIL_VALUE].map((word) => Atomics.load(slots, at + word));
      for (const link of this.#links) link.send({ failed: [rank, kind, value] });
    }
  }

  #broadcast(reply: CardsReply): void {
    const text = JSON.stringify(reply);
    for (const link of this.#links) link.send({ reply: text });
  }

  // ---- helpers ----------------------------------------------------------------------------------------------------

  #linkOf(rank: number): AgentLink | undefined {
    return this.#linkByRank[rank];
  }

  #describe(rank: number): string {
    const pid = this.#pids[rank];
    return `${pid === undefined ? '' : `pid ${pid} `}on ${this.#linkOf(rank)?.host}`;
  }

  #unstarted(rank: number): string | undefined {
    if (this.#pids[rank] !== undefined) return undefined;
    const waits = this.#links.filter(({ hello }) => hello === undefined).map(({ host }) => host);
    return waits.length === 0
      ? 'has not been started'
      : `has not been started: the command for ${waits.join(', ')} has not answered`;
  }

  #isFailed(rank: number): boolean {
    return Atomics.load(this.#control.slots, rank * this.#control.slotWords + Slot.FAILED) !== 0;
  }

  #stateOf(rank: number): number {
    return Atomics.load(this.#control.slots, rank * this.#control.slotWords + Slot.STATE);
  }

  #setState(rank: number, state: number): void {
    Atomics.store(this.#control.slots, rank * this.#control.slotWords + Slot.STATE, state);
  }

  /** Looked at when an agent has said something, and now and then: a signal or a deadline may have changed it, too. */
  #until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const timer = setInterval(() => look(), LOOK_EVERY);
      const look = (): void => {
        if (!isSo()) return;
        clearInterval(timer);
        this.#changed = undefined;
        resolve();
      };
      this.#changed = look;
      look();
    });
  }

  async #allGone(): Promise<void> {
    this.#byeBy = performance.now() + BYE_MS;
    // An agent that was never told of a job says goodbye as well.
    const isGone = (link: AgentLink): boolean => this.#gone.has(link) || link.hello === undefined;
    await this.#until(() => performance.now() > this.#byeBy || this.#links.every(isGone));
  }
}

/** The rank that an agent speaks of as its own. */
function rankOf(said: Parameters<LinkWatcher['report']>[1]): number | undefined {
  if ('rank' in said) return said.rank;
  if ('started' in said) return said.started;
  if ('ended' in said) return said.ended.rank;
  return 'doing' in said ? said.doing.rank : undefined;
}

/** Ranks elsewhere cannot write to this process's terminal themselves. */
function outputOf({ output }: LaunchOptions): LaunchOptions['output'] {
  return output === 'direct' ? { prefix: false } : output;
}
