/**
 * The connections between copies of the control memory (control-copy.ts): TLS to the hub, over which each keeps its
 * copy like the others'. They belong to one thread: a rank's worker (control-worker.ts), or the agent of a host, whose
 * ranks share one copy (launcher/hosts/agent.ts).
 *
 * A copy whose connection ends without its ranks having finalized has failed, and so has one that is silent for
 * `silenceMs`: a cable was pulled, or its host is gone. Time in which this thread itself did not run (the process was
 * stopped, the machine slept) counts as nobody's silence: what has come meanwhile was not looked at.
 */
import type { Socket } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { Control } from '../job/control-region.ts';
import { ControlCopy, type Message } from './control-copy.ts';
import { clientOptions, HANDSHAKE_MS, parseObject, readLines, Strangers, serverOptions } from './secure.ts';
import { plainAddress } from './whereabouts.ts';

/** Between two looks at what the ranks have written. */
const POLL_MS = 5;
/** Attempts at each of the hub's addresses: it listens before any rank knows them: a refusal does not change soon. */
const JOIN_ROUNDS = 20;
/**
 * How long a host may take to accept a connection, which its kernel does, and then its hub to answer, which takes
 * processor time: many ranks may be starting there.
 */
const ACCEPT_MS = 2000;
const ANSWER_MS = HANDSHAKE_MS;
/** So much longer is tried where connections are accepted. */
const PATIENCE = 6;
const RETRY_MS = 50;
const TICK_MS = 100;
/** How long the hub stays after its ranks have left. */
const LINGER_MS = 10_000;
const LINE_CHARACTERS = 1000;
/** Connections, beside the copies', that have shown nothing yet. */
const MOST_STRANGERS = 128;
/** Between two signs of life. */
const BEAT_MS = 1000;
/** A copy that says nothing for so long has failed. */
export const SILENCE_MS = 10_000;

/** Which copy this is. */
export interface LinkedCopy {
  readonly control: Control;
  /** The first of the ranks that share it; 0 is the hub. */
  readonly leader: number;
  /** By rank, if ranks share copies. */
  readonly leaderOf?: readonly number[] | undefined;
  readonly secret: string;
  readonly silenceMs: number;
  /** Called when a copy has been silent for too long, before its ranks count as failed. */
  readonly silent?: (other: number, ms: number) => void;
}

interface Link {
  readonly socket: TLSSocket;
  heard: number;
  /** What is written now goes together. */
  corked: boolean;
}

export class ControlLinks {
  readonly copy: ControlCopy;
  readonly #leader: number;
  readonly #size: number;
  readonly #secret: string;
  /** Milliseconds. */
  silenceMs: number;
  readonly #silent: LinkedCopy['silent'];
  /** By copy; a member has one, to the hub. */
  readonly #links = new Map<number, Link>();
  /** Told this host's address of the first connection. */
  #reached: (address: string | undefined) => void = () => {};
  /** Resolves to the address of this host by which the first other copy and this one have reached each other. */
  readonly reached = new Promise<string | undefined>((resolve) => {
    this.#reached = resolve;
  });
  #leaving = false;

  constructor({ control, leader, leaderOf, secret, silenceMs, silent }: LinkedCopy) {
    this.#leader = leader;
    this.#size = control.size;
    this.#secret = secret;
    this.silenceMs = silenceMs;
    this.#silent = silent;
    this.copy = new ControlCopy(control, leader, (to, message) => this.#write(this.#links.get(to)!, message), leaderOf);
    setInterval(() => this.copy.look(), POLL_MS);
    this.#watch();
  }

  /** The hub: all others connect. Resolves to its port. */
  listen(): Promise<number> {
    const server = createServer(serverOptions(this.#secret));
    const strangers = new Strangers(server, this.#size + MOST_STRANGERS);
    server.on('secureConnection', (socket: TLSSocket) => {
      let other: number | undefined;
      socket.on('error', () => socket.destroy());
      const tooLate = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
      socket.on('close', () => clearTimeout(tooLate));
      readLines(socket, LINE_CHARACTERS, (line) => {
        if (other !== undefined) {
          this.#receive(other, line);
          return;
        }
        const hello = parseObject<{ hello?: unknown }>(line)?.hello;
        if (!this.copy.mayCome(hello)) {
          socket.destroy();
          return;
        }
        other = hello;
        clearTimeout(tooLate);
        strangers.accept(socket);
        this.#attach(other, socket);
      });
    });
    return new Promise((resolve, reject) => {
      server.on('error', reject);
      server.listen(0, () => resolve((server.address() as { port: number }).port));
    });
  }

  /**
   * Any other copy: tries the hub's addresses one after the other, until one answers or time is up.
   * @returns nothing, or why there is no connection: what was tried, and what came of it
   */
  async join(hosts: readonly string[], port: number, withinMs: number): Promise<string | undefined> {
    const begun = performance.now();
    const failures = new Map<string, string>();
    let accepted = false;
    for (let attempt = 0; ; attempt++) {
      const host = hosts[attempt % hosts.length];
      const socket = connect(clientOptions(host, port, this.#secret));
      socket.once('connect', () => {
        accepted = true;
      });
      const why = await firstOf(socket);
      if (this.#leaving) return undefined;
      if (why === undefined) {
        readLines(socket, LINE_CHARACTERS, (line) => this.#receive(0, line));
        this.#attach(0, socket, { hello: this.#leader });
        return undefined;
      }
      failures.set(`${host}:${port}`, why);
      const rounds = Math.floor((attempt + 1) / hosts.length);
      const late = performance.now() > begun + withinMs * (accepted ? PATIENCE : 1);
      if (rounds >= JOIN_ROUNDS || (rounds > 0 && late)) break;
      await pause(RETRY_MS);
    }
    return [...failures].map(([where, why]) => `${where} (${why})`).join(', ');
  }

  /**
   * Says the last words.
   * @param left called when they have left and, of a member, have come
   * @returns when the hub has waited for the others, too
   */
  async leave(left: () => void): Promise<void> {
    this.#leaving = true;
    this.copy.look();
    const sockets = [...this.#links.values()].map(({ socket }) => socket);
    // In agreement, the others close their side by themselves; otherwise this tells them that these ranks have gone.
    const stays = this.#leader === 0 && this.copy.isFinalized(0);
    await Promise.all(sockets.map((socket) => (stays ? drained(socket) : ended(socket))));
    left();
    if (stays) await Promise.race([Promise.all(sockets.map(closed)), pause(LINGER_MS)]);
  }

  #write(link: Link, message: Message | { hello: number }): void {
    const { socket } = link;
    // What is said to a copy that has just gone is lost with it.
    if (!socket.writable) return;
    if (!link.corked) {
      link.corked = true;
      socket.cork();
      process.nextTick(() => {
        link.corked = false;
        socket.uncork();
      });
    }
    socket.write(`${JSON.stringify(message)}\n`);
  }

  /** A connection with a copy that has shown that it is one. @param hello what it is told first */
  #attach(other: number, socket: TLSSocket, hello?: { hello: number }): void {
    const link: Link = { socket, heard: performance.now(), corked: false };
    this.#links.set(other, link);
    if (hello !== undefined) this.#write(link, hello);
    this.#reached(plainAddress(socket.localAddress));
    this.copy.connected(other);
    socket.on('close', () => this.#drop(other));
  }

  /** Ends the connection with a copy; nothing if it has ended. */
  #drop(other: number): void {
    const link = this.#links.get(other);
    if (link === undefined) return;
    this.#links.delete(other);
    this.copy.lost(other);
    this.copy.look();
    link.socket.destroy();
  }

  #receive(other: number, line: string): void {
    const link = this.#links.get(other);
    if (link === undefined) return;
    link.heard = performance.now();
    const message = parseObject<Message>(line);
    if (message !== undefined) this.copy.receive(other, message);
  }

  #watch(): void {
    let beaten = performance.now();
    setInterval(() => {
      const now = performance.now();
      const absent = Math.max(0, now - beaten - BEAT_MS);
      beaten = now;
      for (const [other, link] of [...this.#links]) {
        link.heard += absent;
        if (link.socket.writable) link.socket.write('{}\n');
        if (now - link.heard <= this.silenceMs) continue;
        this.#silent?.(other, this.silenceMs);
        this.#drop(other);
      }
    }, BEAT_MS);
  }
}

/** Resolves when the connection is there, or else to why it is not. */
function firstOf(socket: TLSSocket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let why = 'it closes the connection';
    const end = (): void => void socket.destroy(new Error('it does not answer'));
    let patience = afterRunning(ACCEPT_MS, end);
    socket.once('connect', () => {
      patience();
      patience = afterRunning(ANSWER_MS, end);
    });
    socket.once('secureConnect', () => {
      patience();
      resolve(undefined);
    });
    socket.on('error', ({ message }) => {
      why = message;
      socket.destroy();
    });
    socket.once('close', () => {
      patience();
      resolve(why);
    });
  });
}

/**
 * Calls back when this thread has run for so long: where others have the processor, time passes without a turn of the
 * event loop, and what has come in it was not looked at.
 * @returns ends it
 */
function afterRunning(ms: number, callback: () => void): () => void {
  let left = ms;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    left -= Math.min(now - last, 2 * TICK_MS);
    last = now;
    if (left > 0) return;
    clearInterval(timer);
    callback();
  }, TICK_MS);
  return () => clearInterval(timer);
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}

function ended(socket: Socket): Promise<void> {
  socket.end();
  return closed(socket);
}

/** Resolves when the kernel has everything. */
function drained(socket: TLSSocket): Promise<void> {
  return new Promise((resolve) => {
    if (!socket.writable) resolve();
    else socket.write('{}\n', () => resolve());
  });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
