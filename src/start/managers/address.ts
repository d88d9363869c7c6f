/**
 * No process manager: every rank is told its rank, the size, and where rank 0 listens, by variables of the environment
 * (containers, Kubernetes, a shell loop).
 *
 * Rank 0 listens, the others connect, each sends its card, and when all have come, rank 0 sends all cards to every
 * rank. The connections are TLS with a pre-shared key made of the job's secret: both ends prove that they know it, and
 * no third party reads or writes what passes. A stranger does not get beyond the handshake.
 */
import { connect, createServer, type Server, type TLSSocket } from 'node:tls';
import { RmaError, show } from '../../errors.ts';
import { ranksInWords } from '../../job/late.ts';
import { clientOptions, parseObject, readLines, Strangers, serverOptions } from '../secure.ts';
import { type Patience, type ProcessManager, readNumber, removeVariables } from './manager.ts';
import { addressTowards, ownAddressOf } from './route.ts';

/** Between two attempts to reach rank 0, which may not listen yet. */
const RETRY_MS = 50;
const SECRET_CHARACTERS = 16;
/** A line with a card, or with all of them, has at most so many characters for each rank. */
const LINE_CHARACTERS = 2048;
/** Connections, beside the ranks', that have shown nothing yet. */
const MOST_STRANGERS = 128;
/** How a connection ends that was not answered. */
const ENDED = ['ECONNRESET', 'EPIPE', 'ECONNABORTED'];

interface Hello {
  readonly rank: number;
  readonly size: number;
  readonly card: string;
}

/** What the exchange waits for, in words. */
interface State {
  awaited: string;
}

type Reply = { readonly cards: string[] } | { readonly refused: string };

/** What variables of the environment say of this rank, and how they are called. */
interface Told {
  readonly rank: number;
  readonly size: number;
  /** Where rank 0 is: `host:port` or `[address]:port`. */
  readonly address: string;
  readonly names: { readonly rank: string; readonly size: string; readonly address: string };
}

const NAMES = { rank: 'ONESIDED_RANK', size: 'ONESIDED_SIZE', address: 'ONESIDED_ROOT_ADDRESS' } as const;
const TORCH_NAMES = { rank: 'RANK', size: 'WORLD_SIZE', address: 'MASTER_ADDR:MASTER_PORT' } as const;

/** The ranks that the environment tells of, if any. */
export function findAddress(): ProcessManager | undefined {
  const { ONESIDED_ROOT_ADDRESS: address } = process.env;
  if (address === undefined) {
    if (process.env['ONESIDED_SIZE'] === undefined) return undefined;
    throw new RmaError(
      'ERR_COMM',
      'init: ONESIDED_SIZE is set, but ONESIDED_ROOT_ADDRESS (host:port, where rank 0 listens) is not; ' +
        'set it, or unset ONESIDED_SIZE to run alone',
    );
  }
  return managerAt({ rank: readNumber('ONESIDED_RANK'), size: readNumber('ONESIDED_SIZE'), address, names: NAMES });
}

/**
 * The ranks that the variables of PyTorch's launchers tell of, if all four are there and the ranks are several.
 * `torchrun` itself listens at MASTER_PORT, for the ranks of its kind: then rank 0 listens at the next one.
 */
export function findTorch(): ProcessManager | undefined {
  const { MASTER_ADDR: host, MASTER_PORT: port, RANK, WORLD_SIZE, TORCHELASTIC_USE_AGENT_STORE: store } = process.env;
  if (!host || !port || !RANK || !WORLD_SIZE || WORLD_SIZE === '1') {
    refuseHalf({ MASTER_ADDR: host, MASTER_PORT: port, RANK, WORLD_SIZE });
    return undefined;
  }
  const free = Number(port) + (store?.toLowerCase() === 'true' ? 1 : 0);
  const address = `${host.includes(':') ? `[${host}]` : host}:${Number.isNaN(free) ? port : free}`;
  return managerAt({ rank: readNumber('RANK'), size: readNumber('WORLD_SIZE'), address, names: TORCH_NAMES });
}

/**
 * Errors: `ERR_COMM` if several ranks are wanted that no variable brings together. Without the secret, the variables
 * are likely to be others' than ours.
 */
function refuseHalf(variables: Readonly<Record<string, string | undefined>>): void {
  if (!process.env['ONESIDED_SECRET'] || variables['WORLD_SIZE'] === '1') return;
  const missing = Object.keys(variables).filter((name) => !variables[name]);
  const given = Object.keys(variables).filter((name) => variables[name]);
  if (given.length === 0 || missing.length === 0) return;
  throw new RmaError(
    'ERR_COMM',
    `init: ${given.join(', ')} and ONESIDED_SECRET are set, but ${missing.join(' and ')} ` +
      `${missing.length > 1 ? 'are' : 'is'} not; set all of them, or unset ONESIDED_SECRET to run alone`,
  );
}

function managerAt({ rank, size, address, names }: Told): ProcessManager {
  const { ONESIDED_SECRET: secret } = process.env;
  if (!(rank < size)) {
    const said = [names.rank, names.size].map((name) => `${name}=${process.env[name]}`).join(' and ');
    throw new RmaError(
      'ERR_COMM',
      `init: ${said} are not the rank and the size of a job; ${names.address} needs both, with 0 ≤ rank < size`,
    );
  }
  if (secret === undefined || secret.length < SECRET_CHARACTERS) {
    throw new RmaError(
      'ERR_COMM',
      `init: ${names.address} needs ONESIDED_SECRET, a string of at least ${SECRET_CHARACTERS} characters ` +
        "that only this job's ranks know; openssl rand -hex 16 makes one",
    );
  }
  const { host, port } = readAddress(address, names.address);
  const state: State = { awaited: '' };
  return {
    rank,
    size,
    name: rank === 0 ? `port ${port}` : `rank 0 at ${address}`,
    exchange: (card, patience) => {
      const hello: Hello = { rank, size, card };
      if (rank === 0) return gather(host, port, secret, hello, patience, state);
      return send(host, port, secret, hello, patience, state);
    },
    reached: () => (rank === 0 ? ownAddressOf(host) : addressTowards(host, port)),
    awaited: () => state.awaited,
    forget: () => removeVariables(names.rank, names.size, ...names.address.split(':'), 'ONESIDED_SECRET'),
  };
}

/** `host:port` or `[address]:port`. */
function readAddress(address: string, name: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(address) ?? [];
  const port = Number(digits);
  if (digits !== undefined && port > 0 && port < 65_536) return { host: bracketed ?? plain, port };
  throw new RmaError('ERR_COMM', `init: ${name} must be host:port, not ${show(address)}`);
}

/** Rank 0: waits for all the others. */
function gather(
  host: string,
  port: number,
  secret: string,
  own: Hello,
  { signal }: Patience,
  state: State,
): Promise<string[]> {
  const { size } = own;
  const say = (): void => {
    const missing = Array.from(cards, (card, rank) => (card === undefined ? rank : -1)).filter((rank) => rank >= 0);
    state.awaited = `${ranksInWords(missing, size)} ha${missing.length === 1 ? 's' : 've'} not connected`;
  };
  const cards = new Array<string | undefined>(size);
  const members = new Map<number, TLSSocket>();
  return new Promise<string[]>((resolve, reject) => {
    const server: Server = createServer(serverOptions(secret));
    const strangers = new Strangers(server, size + MOST_STRANGERS);
    const end = (reply: Reply): void => {
      for (const socket of members.values()) socket.end(`${JSON.stringify(reply)}\n`);
      strangers.close();
      server.close();
      signal.removeEventListener('abort', onAbort);
      if ('cards' in reply) resolve(reply.cards);
      else reject(signal.aborted ? signal.reason : new RmaError('ERR_COMM', `init: ${reply.refused}`));
    };
    const onAbort = (): void => end({ refused: `rank 0 gave up waiting for the others: ${state.awaited}` });
    const enter = (socket: TLSSocket, hello: Hello): void => {
      const { rank } = hello;
      const refusal = refusalOf(hello, size, members);
      if (refusal !== undefined) {
        socket.end(`${JSON.stringify({ refused: refusal } satisfies Reply)}\n`);
        return;
      }
      members.set(rank, socket);
      strangers.accept(socket);
      cards[rank] = hello.card;
      say();
      socket.once('close', () => {
        if (members.size < size - 1) {
          members.delete(rank);
          end({ refused: `rank ${rank} disconnected before all ${size} ranks had joined` });
        }
      });
      if (members.size === size - 1) end({ cards: cards as string[] });
    };
    server.on('secureConnection', (socket) => {
      socket.on('error', () => socket.destroy());
      readLines(socket, LINE_CHARACTERS, (line) => {
        const hello = parseObject<Hello>(line);
        if (hello === undefined) socket.destroy();
        else enter(socket, hello);
      });
    });
    server.on('error', (cause: Error) => {
      signal.removeEventListener('abort', onAbort);
      reject(new RmaError('ERR_COMM', `init: rank 0 cannot listen on port ${port}: ${cause.message}`, { cause }));
    });
    cards[0] = own.card;
    say();
    if (size === 1) {
      resolve(cards as string[]);
      return;
    }
    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    // The others' name for this host may be none of its own (a service's, a gateway's): it only says whether they are
    // on this host.
    server.listen(port, isLoopback(host) ? host : undefined);
  });
}

/** Any other rank: sends its card, waits for all. */
async function send(
  host: string,
  port: number,
  secret: string,
  own: Hello,
  { signal }: Patience,
  state: State,
): Promise<string[]> {
  for (;;) {
    const reply = await attempt(host, port, secret, own, signal, state);
    if (reply === undefined) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      continue;
    }
    if ('refused' in reply) throw new RmaError('ERR_COMM', `init: ${reply.refused}`);
    if (Array.isArray(reply.cards) && reply.cards.length === own.size) return reply.cards;
    throw new RmaError('ERR_COMM', `init: the program that listens on ${host}:${port} is not rank 0 of a job`);
  }
}

/**
 * One connection. Resolves to nothing if no process listens there yet, or if the one that does ends the connection
 * before it says anything, as a gateway does that has not found rank 0.
 */
function attempt(
  host: string,
  port: number,
  secret: string,
  own: Hello,
  signal: AbortSignal,
  state: State,
): Promise<Reply | undefined> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    let connected = false;
    let secure = false;
    const socket = connect(clientOptions(host, port, secret));
    const finish = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason));
    signal.addEventListener('abort', onAbort, { once: true });
    const where = `${host}:${port}`;
    let over = false;
    const failed = (cause?: Error): void => {
      // What is closed after an error says nothing more.
      if (over) return;
      over = true;
      const code = codeOf(cause);
      if (!connected || (!secure && (cause === undefined || ENDED.includes(code)))) {
        state.awaited = connected
          ? `${where} accepts connections and ends them before they are secure (${code})`
          : `no connection with ${where} (${code})`;
        finish(() => resolve(undefined));
      } else {
        const what = secure
          ? `rank 0 at ${where} ended before all ranks had joined`
          : `the program that listens on ${where} does not know this job's ONESIDED_SECRET, or is not rank 0 of a job`;
        finish(() => reject(new RmaError('ERR_COMM', `init: ${what}`, { cause })));
      }
    };
    socket.on('connect', () => {
      connected = true;
    });
    socket.on('secureConnect', () => {
      secure = true;
      state.awaited = 'rank 0 waits for others, and says which';
      socket.write(`${JSON.stringify(own)}\n`);
    });
    socket.on('error', failed);
    socket.on('close', () => failed());
    readLines(socket, LINE_CHARACTERS * own.size, (line) => {
      const reply = parseObject<Reply>(line);
      if (reply === undefined) failed();
      else finish(() => resolve(reply));
    });
  });
}

/** What was refused: of several addresses of a host, at each. */
function codeOf(cause: (Error & { code?: string; errors?: readonly Error[] }) | undefined): string {
  if (cause === undefined) return 'closed';
  const codes = new Set((cause.errors ?? [cause]).map((error: Error & { code?: string }) => error.code));
  return [...codes].join(', ') || cause.message;
}

/** Why this rank cannot come in, if so. Others are not disturbed by it. */
function refusalOf({ rank, size: theirs, card }: Hello, size: number, members: Map<number, unknown>) {
  if (theirs !== size) return `rank ${rank} has ONESIDED_SIZE=${theirs}, but rank 0 has ONESIDED_SIZE=${size}`;
  if (!Number.isInteger(rank) || rank <= 0 || rank >= size)
    return `every rank but rank 0 must have an ONESIDED_RANK from 1 to ${size - 1}, not ${rank}`;
  if (members.has(rank)) return `rank ${rank} has already joined: two processes have the same ONESIDED_RANK, or RANK`;
  if (typeof card !== 'string') return `rank ${rank} sent no connection data`;
  return undefined;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}
