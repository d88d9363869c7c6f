/**
 * The worker thread of a rank whose job is on several hosts: it keeps the rank's copy of the control memory like the
 * others' (control-copy.ts), over TLS connections to the worker of rank 0. So the rank itself reads and writes words,
 * as on one host, and computes or blocks as it likes.
 *
 * A rank whose connection ends without its having finalized has failed, and so has one that is silent for `silenceMs`:
 * a cable was pulled, or its host is gone. Time in which this worker itself did not run (the process was stopped, the
 * machine slept) counts as no rank's silence: what has come meanwhile was not looked at.
 *
 * The end: a member says its last words and waits until the hub has closed its side, so it knows that they came. The
 * hub says its last words, and then goes on until all have left (10 s at most), even if its rank left long before: so
 * the remaining members still learn what one of them says or suffers.
 */
import type { Socket } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';
import { viewControl } from '../job/control-region.ts';
import { ControlCopy, type Message } from './control-copy.ts';
import { clientOptions, HANDSHAKE_MS, parseObject, readLines, Strangers, serverOptions } from './secure.ts';

/** What the rank gives its worker. */
export interface ControlWorkerData {
  readonly buffer: SharedArrayBuffer;
  /** Word 0 becomes 1 when everything was sent after `leave`. */
  readonly flag: SharedArrayBuffer;
  readonly rank: number;
  readonly size: number;
  readonly secret: string;
  /** A rank that says nothing for so long has failed. A sign of life is given ten times as often. */
  readonly silenceMs: number;
}

/**
 * What the worker is told. A member's worker is told where the hub is. The hub's worker is told that all others know
 * where it is, so that a rank that has not come after `EXPECT_MS` never will. At the end, each is told to leave.
 */
export type Order =
  | { readonly hub: { readonly hosts: readonly string[]; readonly port: number } }
  | 'expect all'
  | 'leave';

/**
 * What it tells. The hub's worker tells the port at which it listens; a member's, that it is connected, or why it
 * cannot be.
 */
export interface News {
  readonly port?: number;
  readonly joined?: true;
  readonly failure?: string;
}

/** Between two looks at what the rank has written. */
const POLL_MS = 5;
/**
 * How long a member tries to reach the hub; the hub waits longer. The hub listens before any rank knows its addresses,
 * so addresses that refuse at once will not change their mind soon.
 */
const JOIN_MS = 20_000;
const JOIN_ROUNDS = 20;
const EXPECT_MS = 60_000;
const CONNECT_MS = 2000;
const RETRY_MS = 50;
/** How long the hub stays after its rank has left. */
const LINGER_MS = 10_000;
const LINE_CHARACTERS = 1000;
/** Connections, beside the ranks', that have shown nothing yet. */
const MOST_STRANGERS = 128;

const { buffer, flag, rank, size, secret, silenceMs } = workerData as ControlWorkerData;
/** Connections by rank; a member has one, to rank 0. */
const links = new Map<number, { readonly socket: TLSSocket; heard: number }>();
const control = viewControl(buffer, size, { rank });
const copy = new ControlCopy(control, rank, (to, message) => write(links.get(to)!.socket, message));
let leaving = false;

function write(socket: TLSSocket, message: Message | { hello: number }): void {
  // What is said to a rank that has just gone is lost with it.
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

/** A connection with a rank that has shown that it is one. */
function attach(other: number, socket: TLSSocket): void {
  links.set(other, { socket, heard: performance.now() });
  copy.connected(other);
  socket.on('close', () => drop(other));
}

/** Ends the connection with a rank; nothing if it has ended. */
function drop(other: number): void {
  const link = links.get(other);
  if (link === undefined) return;
  links.delete(other);
  copy.lost(other);
  copy.look();
  link.socket.destroy();
}

function receive(other: number, line: string): void {
  const link = links.get(other);
  if (link === undefined) return;
  link.heard = performance.now();
  const message = parseObject<Message>(line);
  if (message !== undefined) copy.receive(other, message);
}

/** Rank 0: all others connect. */
function listen(): void {
  const server = createServer(serverOptions(secret));
  const strangers = new Strangers(server, size + MOST_STRANGERS);
  server.on('secureConnection', (socket: TLSSocket) => {
    let other: number | undefined;
    socket.on('error', () => socket.destroy());
    const tooLate = setTimeout(() => socket.destroy(), HANDSHAKE_MS);
    socket.on('close', () => clearTimeout(tooLate));
    readLines(socket, LINE_CHARACTERS, (line) => {
      if (other !== undefined) {
        receive(other, line);
        return;
      }
      const hello = parseObject<{ hello?: unknown }>(line)?.hello;
      if (!copy.mayCome(hello)) {
        socket.destroy();
        return;
      }
      other = hello;
      clearTimeout(tooLate);
      strangers.accept(socket);
      attach(other, socket);
    });
  });
  server.on('error', (error) => tell({ failure: error.message }));
  server.listen(0, () => tell({ port: (server.address() as { port: number }).port }));
}

/** Another rank: tries the hub's addresses one after the other, until one answers or time is up. */
async function join(hosts: readonly string[], port: number): Promise<void> {
  const deadline = performance.now() + JOIN_MS;
  const failures = new Map<string, string>();
  for (let attempt = 0; ; attempt++) {
    const host = hosts[attempt % hosts.length];
    const socket = connect(clientOptions(host, port, secret));
    const why = await firstOf(socket);
    if (leaving) return;
    if (why === undefined) {
      readLines(socket, LINE_CHARACTERS, (line) => receive(0, line));
      write(socket, { hello: rank });
      attach(0, socket);
      tell({ joined: true });
      return;
    }
    failures.set(`${host}:${port}`, why);
    const rounds = Math.floor((attempt + 1) / hosts.length);
    if (rounds >= JOIN_ROUNDS || (rounds > 0 && performance.now() > deadline)) break;
    await pause(RETRY_MS);
  }
  tell({ failure: [...failures].map(([where, why]) => `${where} (${why})`).join(', ') });
}

/** Resolves when the connection is there, or else to why it is not. */
function firstOf(socket: TLSSocket): Promise<string | undefined> {
  return new Promise((resolve) => {
    let why = 'it closes the connection';
    const tooLate = setTimeout(() => socket.destroy(new Error('it does not answer')), CONNECT_MS);
    socket.once('secureConnect', () => {
      clearTimeout(tooLate);
      resolve(undefined);
    });
    socket.on('error', ({ message }) => {
      why = message;
      socket.destroy();
    });
    socket.once('close', () => {
      clearTimeout(tooLate);
      resolve(why);
    });
  });
}

function tell(news: News): void {
  parentPort!.postMessage(news);
}

/** Says the last words; returns when they have left and, of a member, have come. */
async function leave(): Promise<void> {
  leaving = true;
  copy.look();
  const sockets = [...links.values()].map(({ socket }) => socket);
  // In agreement, the others close their side by themselves; otherwise this tells them that this rank has gone.
  const stays = rank === 0 && copy.isFinalized(0);
  await Promise.all(sockets.map((socket) => (stays ? drained(socket) : ended(socket))));
  const word = new Int32Array(flag);
  Atomics.store(word, 0, 1);
  Atomics.notify(word, 0);
  if (stays) await Promise.race([Promise.all(sockets.map(closed)), pause(LINGER_MS)]);
  process.exit();
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

parentPort!.on('message', (order: Order) => {
  if (order === 'leave') void leave();
  else if (order === 'expect all') setTimeout(() => copy.expectAll(), EXPECT_MS);
  else void join(order.hub.hosts, order.hub.port);
});
if (rank === 0) listen();
setInterval(() => copy.look(), POLL_MS);
const beatMs = silenceMs / 10;
let beaten = performance.now();
setInterval(() => {
  const now = performance.now();
  const absent = Math.max(0, now - beaten - beatMs);
  beaten = now;
  for (const [other, link] of [...links]) {
    link.heard += absent;
    if (link.socket.writable) link.socket.write('{}\n');
    if (now - link.heard > silenceMs) drop(other);
  }
}, beatMs);
