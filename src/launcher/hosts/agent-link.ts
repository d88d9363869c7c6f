/**
 * The launcher's end of the connection with the agent of one host: the process that leads there (ssh, or a shell on
 * this host), what it says until the agent answers, and signs of life.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { show } from '../../errors.ts';
import {
  type AgentHello,
  BEAT_MS,
  GREETING,
  HOST_SILENCE_MS,
  type Order,
  type Report,
  readFrameLines,
  Silence,
  STARTING_SILENCE_MS,
  sendFrame,
} from './frames.ts';
import type { ClockDifference } from './host-rings.ts';
import { type AgentPlace, SHELL_TROUBLE, shellOn, startLine, troubleInWords } from './remote-shell.ts';

/** How long an agent may take to answer, and after which it is said that one does. */
const HELLO_MS = 60_000;
const SLOW_MS = 8000;
/** How long what led to it may take to end by itself when the job has ended. */
const LEAVE_MS = 2000;
/** Characters of what was said that an error shows. */
const MOST_SHOWN = 2000;

export interface LinkWatcher {
  report(link: AgentLink, report: Exclude<Report, { hello: AgentHello } | { alive: number }>): void;
  /**
   * The agent is gone, or never came; called once, and not after `leave`.
   * @param reached the host has answered
   */
  lost(link: AgentLink, why: string, reached: boolean): void;
  /** What the command that led to the host says beside the agent's messages, in lines. */
  remark(link: AgentLink, text: string): void;
}

export class AgentLink {
  readonly host: string;
  readonly ranks: readonly number[];
  hello: AgentHello | undefined;
  clock: ClockDifference = { ahead: 0, within: Number.POSITIVE_INFINITY };
  readonly #child: ChildProcess;
  readonly #command: string;
  readonly #place: AgentPlace;
  readonly #watcher: LinkWatcher;
  readonly #hasCome: () => void;
  readonly #late: NodeJS.Timeout;
  readonly #slow: NodeJS.Timeout;
  #silence: Silence | undefined;
  #beat: NodeJS.Timeout | undefined;
  #asked = 0n;
  /** What has come on standard error, and on standard output that is no message. */
  #errors = '';
  #noise = '';
  #state: 'open' | 'leaving' | 'over' = 'open';
  readonly #full = new Set<Readable>();

  /** @param hasCome called when `hello` is there */
  constructor(
    { host, ranks }: { readonly host: string; readonly ranks: readonly number[] },
    ssh: readonly string[] | undefined,
    place: AgentPlace,
    watcher: LinkWatcher,
    hasCome: () => void,
  ) {
    this.host = host;
    this.ranks = ranks;
    this.#place = place;
    this.#watcher = watcher;
    this.#hasCome = hasCome;
    const [command, ...args] = shellOn(host, ssh);
    this.#command = `"${[command, ...args].join(' ')}"`;
    // A group of its own: Ctrl-C is the launcher's to pass on.
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    this.#late = setTimeout(() => this.#lose(`${this.#command} has said nothing for ${HELLO_MS / 1000} s`), HELLO_MS);
    const patience = `; it has ${(HELLO_MS - SLOW_MS) / 1000} s more`;
    this.#slow = setTimeout(
      () => watcher.remark(this, `${this.#command} has said nothing for ${SLOW_MS / 1000} s${patience}`),
      SLOW_MS,
    );
    const { stdin, stdout, stderr } = this.#child;
    this.#child.on('error', (error: NodeJS.ErrnoException) =>
      this.#lose(error.code === 'ENOENT' ? `there is no command ${show(command)}` : error.message),
    );
    if (stdin === null || stdout === null || stderr === null) return;
    stdin.on('error', () => {});
    stdin.write(startLine(place));
    stderr.setEncoding('utf8').on('data', (text: string) => this.#hear(text));
    readFrameLines(
      stdout,
      (line) => this.#line(line),
      () => {},
    );
    // When both of its outputs have ended, too: why it has ended stands there.
    this.#child.on('close', (code, signal) => this.#closed(code, signal));
  }

  /** Before the agent has answered, nothing: the shell would read it. */
  send(order: Order): void {
    if (this.#state !== 'over' && this.hello !== undefined) sendFrame(this.#child.stdin!, order);
  }

  /** Its ranks run: it has the time to say more often that it is there. */
  hasStarted(): void {
    if (this.#silence !== undefined) this.#silence.most = HOST_SILENCE_MS;
  }

  /** Nothing is read from the host while one of these takes no more. */
  pushTo(stream: Readable, text: string): void {
    if (stream.push(text, 'latin1')) return;
    this.#full.add(stream);
    this.#child.stdout!.pause();
    if (this.#silence !== undefined) this.#silence.paused = true;
  }

  takesMore(stream: Readable): void {
    if (!this.#full.delete(stream) || this.#full.size > 0) return;
    this.#child.stdout!.resume();
    if (this.#silence !== undefined) this.#silence.paused = false;
  }

  /** Nothing more is to come: ends what led to the host, which ends the agent, if it is there yet. */
  leave(): void {
    if (this.#state !== 'open') return;
    this.#state = 'leaving';
    this.#stopTimers();
    this.#child.stdin?.end();
    this.#child.stdout?.resume();
    // What has not answered yet has nothing to end.
    const kill = setTimeout(() => this.#kill(), this.hello === undefined ? 0 : LEAVE_MS);
    this.#child.once('close', () => clearTimeout(kill));
  }

  #line(line: string): void {
    if (this.#state === 'over') return;
    if (this.hello === undefined) this.#first(line);
    else {
      this.#silence!.heard();
      const report = parse(line);
      if (report === undefined) this.#watcher.remark(this, line);
      else if ('alive' in report) this.#compareClocks(report.alive);
      else if (!('hello' in report)) this.#watcher.report(this, report);
    }
  }

  /** Before the agent's first message, there may be whatever a login prints. */
  #first(line: string): void {
    if (line.startsWith(SHELL_TROUBLE)) {
      this.#lose(troubleInWords(line.slice(SHELL_TROUBLE.length).trim(), this.#place), true);
      return;
    }
    const at = line.indexOf(GREETING);
    const report = at < 0 ? undefined : parse(line.slice(at + GREETING.length));
    if (report === undefined || !('hello' in report)) {
      this.#noise = `${this.#noise}${line}\n`.slice(-MOST_SHOWN);
      return;
    }
    this.hello = report.hello;
    clearTimeout(this.#late);
    clearTimeout(this.#slow);
    if (this.#errors !== '') this.#watcher.remark(this, this.#errors.trimEnd());
    this.#errors = '';
    this.#silence = new Silence(STARTING_SILENCE_MS, (ms) =>
      this.#lose(`nothing was heard from it for ${ms / 1000} s`),
    );
    const beat = (): void => {
      this.#asked = process.hrtime.bigint();
      this.send({ alive: true });
    };
    this.#beat = setInterval(beat, BEAT_MS);
    this.#beat.unref();
    beat();
    this.#hasCome();
  }

  /** The host's clock was read between the question and now: the quickest answer says it best. */
  #compareClocks(theirs: number): void {
    const now = Number(process.hrtime.bigint());
    const asked = Number(this.#asked);
    const within = (now - asked) / 2;
    if (within < this.clock.within) this.clock = { ahead: theirs - (asked + now) / 2, within };
  }

  #hear(text: string): void {
    if (this.hello === undefined) this.#errors = (this.#errors + text).slice(-MOST_SHOWN);
    else this.#watcher.remark(this, text.trimEnd());
  }

  #closed(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `ended with code ${code}` : `was ended by ${signal}`;
    const said = (this.#errors.trim() || this.#noise.trim()).replaceAll('\r', '');
    this.#lose(`${this.#command} ${how}${said === '' ? '' : `: ${said}`}`);
  }

  #lose(why: string, reached = this.hello !== undefined): void {
    if (this.#state === 'over') return;
    const left = this.#state === 'leaving';
    this.#state = 'over';
    this.#stopTimers();
    this.#kill();
    if (!left) this.#watcher.lost(this, why, reached);
  }

  #stopTimers(): void {
    clearTimeout(this.#late);
    clearTimeout(this.#slow);
    clearInterval(this.#beat);
    this.#silence?.stop();
  }

  /** The command and what it has started here. On the host, the end of its input is the agent's. */
  #kill(): void {
    const { pid, stdin } = this.#child;
    stdin?.destroy();
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

function parse(line: string): Report | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line) as Report;
  } catch {
    return undefined;
  }
}
