/**
 * What a launcher and its agent on a host tell each other: lines of JSON, one a message, over the standard input and
 * output of whatever has started the agent. Output of ranks is text of Latin-1, a character a byte.
 */
import type { Readable, Writable } from 'node:stream';
import type { LogFile } from '../../races/logs/race-log-format.ts';
import type { Hub } from '../../start/distributed.ts';

/** The job, as an agent is told of it. */
export interface HostJob {
  /** As the launcher calls this host. */
  readonly host: string;
  readonly size: number;
  /** This host's, in ascending order. */
  readonly ranks: readonly number[];
  readonly script: string;
  readonly args: readonly string[];
  readonly execArgv: readonly string[];
  /** Added to the host's own environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeout: number | undefined;
  /** Records that each rank keeps, and bits of `Records`. */
  readonly events: number;
  readonly records: number;
  /** Whether races are searched for: the ranks' files are wanted in the end. */
  readonly logs: boolean;
  /** Process and descriptor of the control memory of an agent of the same place, if there is one already. */
  readonly control: readonly [pid: number, fd: number] | undefined;
  /** If this agent keeps its control memory like that of other places (start/control-links.ts). */
  readonly links: HostLinks | undefined;
}

export interface HostLinks {
  /** The first rank of each rank's place. */
  readonly leaderOf: readonly number[];
  /** Where the agent of rank 0 listens; absent for that agent. */
  readonly hub: Hub | undefined;
}

/** What a launcher tells. */
export type Order =
  | { readonly job: HostJob }
  | { readonly signal: NodeJS.Signals; readonly rank: number }
  /** A rank has failed, as the control memory has it. */
  | { readonly failed: readonly [rank: number, kind: number, value: number] }
  /** All ranks have been running for a while. */
  | { readonly up: true }
  /** What do your ranks wait in? */
  | { readonly ask: true }
  /** For the ranks that are joining. */
  | { readonly reply: string }
  /** Of rank 0's standard input; null: its end. */
  | { readonly stdin: string | null }
  /** All ranks of the job have ended. */
  | { readonly end: true }
  | { readonly alive: true };

/** What an agent says of itself, before anything else. */
export interface AgentHello {
  readonly version: string;
  readonly node: string;
  readonly pid: number;
  /** Agents with the same one share memory (start/whereabouts.ts). */
  readonly place: string;
  readonly address: string | undefined;
  /** The providers that connect ranks of several hosts: why one cannot be used here, or nothing if it can. */
  readonly providers: Readonly<Record<string, string | null>>;
  /** Why there can be no ranks here. */
  readonly unable: string | undefined;
}

/** How a rank has ended. */
export interface RankEnd {
  readonly rank: number;
  readonly code: number;
  readonly signal: NodeJS.Signals | null;
  /** Its `RankState`. */
  readonly state: number;
  /** The code that it has ended with, where the system does not keep all of it; else 0. */
  readonly wholeCode: number;
  /** The rank that has failed first, as this rank knew, and how: its `FailKind`, and the value with that. */
  readonly firstFailed: readonly [rank: number, kind: number, value: number] | null;
}

/** What an agent tells. */
export type Report =
  | { readonly hello: AgentHello }
  /** The descriptor of the agent's control memory, and where it listens for other agents, if it does. */
  | { readonly ready: number; readonly hub?: Hub | undefined }
  | { readonly started: number; readonly pid: number }
  /** The ranks of this host cannot reach the others. */
  | { readonly apart: string }
  /** For so many milliseconds this host has heard nothing from that of a rank. */
  | { readonly silent: number; readonly ms: number }
  /** No rank of this host can run, or this one cannot. `wrong`: the command line is. */
  | { readonly unable: string; readonly rank?: number; readonly wrong?: boolean }
  | { readonly out: string; readonly rank: number; readonly stream: 0 | 1 }
  | { readonly card: string; readonly rank: number }
  | { readonly ended: RankEnd }
  /** Of a rank that runs; `waits` if it has said so. */
  | { readonly doing: { readonly rank: number; readonly state: number; readonly waits: string | undefined } }
  /** Rank 0 has read so many more bytes of its standard input, or will read no more. */
  | { readonly read: number }
  /** What a rank has recorded: a piece of its ring, in base64. */
  | { readonly ring: string; readonly rank: number }
  /** What a rank has told the search for races: a piece of one of its files, in base64. */
  | { readonly log: string; readonly file: LogFile; readonly rank: number }
  /** Nothing is left of the job here. `clock` is the host's, in nanoseconds. */
  | { readonly bye: true }
  | { readonly alive: number };

/** What begins an agent's first line. Whatever a login prints before it is no message. */
export const GREETING = 'onesided-agent ';

/** Milliseconds between two signs of life. */
export const BEAT_MS = 1000;
/**
 * A host from which nothing is heard for so long is lost: sooner than its ranks' peers say so. While ranks start, which
 * takes all the processor time that a host has, its agent may have to wait for some.
 */
export const HOST_SILENCE_MS = 9000;
export const STARTING_SILENCE_MS = 30_000;
/** Between agents. The launcher's word comes first, unless it is the network between two hosts that is down. */
export const AGENT_SILENCE_MS = 11_000;
/** A launcher from which an agent hears nothing for so long is gone; one that is stopped says so before. */
export const LAUNCHER_SILENCE_MS = 60_000;

/** A line that is longer comes from no agent. */
const LINE_CHARACTERS = 1 << 26;

/** @returns whether more may be sent at once */
export function sendFrame(stream: Writable, frame: Order | Report): boolean {
  return stream.writable && stream.write(`${JSON.stringify(frame)}\n`);
}

/**
 * Calls back with each line.
 * @param ended called once, when no more will come
 */
export function readFrameLines(stream: Readable, line: (text: string) => void, ended: () => void): void {
  let parts: string[] = [];
  let length = 0;
  let over = false;
  const end = (): void => {
    if (over) return;
    over = true;
    ended();
  };
  stream.setEncoding('utf8').on('data', (piece: string) => {
    let from = 0;
    for (let at = piece.indexOf('\n'); at >= 0 && !over; at = piece.indexOf('\n', from)) {
      const whole = parts.join('') + piece.slice(from, at);
      parts = [];
      length = 0;
      from = at + 1;
      line(whole);
    }
    parts.push(piece.slice(from));
    length += piece.length - from;
    if (length > LINE_CHARACTERS) end();
  });
  stream.on('end', end).on('close', end).on('error', end);
}

/**
 * Calls `silent` once nothing has come for some time. Time in which this process itself did not run counts for nothing.
 */
export class Silence {
  /** Milliseconds that may pass. */
  most: number;
  readonly #timer: NodeJS.Timeout;
  #quiet = 0;
  #looked = performance.now();
  /** Nothing is expected at the moment. */
  paused = false;

  /** @param silent is given the milliseconds that were too many */
  constructor(most: number, silent: (ms: number) => void) {
    this.most = most;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#quiet = this.paused ? 0 : this.#quiet + Math.min(now - this.#looked, 2 * BEAT_MS);
      this.#looked = now;
      if (this.#quiet <= this.most) return;
      this.stop();
      silent(this.most);
    }, BEAT_MS);
    this.#timer.unref();
  }

  heard(): void {
    this.#quiet = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
