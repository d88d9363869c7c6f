/** Connections between ranks that share a secret: TLS with a pre-shared key, lines of JSON. */
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { ConnectionOptions, Server, TLSSocket, TlsOptions } from 'node:tls';

/**
 * A pre-shared key with an ephemeral exchange: what was recorded cannot be read later by an eavesdropper who learns the
 * secret.
 */
const TLS = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;
const IDENTITY = 'onesided';
/** A stranger may hold a connection for this long. */
export const HANDSHAKE_MS = 10_000;

function keyOf(secret: string): Buffer {
  return createHash('sha256').update(`onesided job ${secret}`).digest();
}

/** For the side that listens. */
export function serverOptions(secret: string): TlsOptions {
  const key = keyOf(secret);
  return {
    ...TLS,
    handshakeTimeout: HANDSHAKE_MS,
    pskCallback: (_, identity) => (identity === IDENTITY ? key : null),
  };
}

/** For the side that connects. */
export function clientOptions(host: string, port: number, secret: string): ConnectionOptions {
  const psk = keyOf(secret);
  return {
    ...TLS,
    host,
    port,
    pskCallback: () => ({ psk, identity: IDENTITY }),
    // There are no certificates: a peer that knows the key is the one that it says it is.
    checkServerIdentity: () => undefined,
  };
}

/**
 * The connections whose other end has not shown yet that it belongs to the job. There are at most so many: a newcomer
 * takes the place of the one that has been there longest, so that ranks get in however many strangers come, and
 * strangers cost no more memory than this.
 */
export class Strangers {
  /** By their other end: the secure socket of a connection is another object than its plain one. Oldest first. */
  readonly #sockets = new Map<string, Socket>();

  constructor(server: Server, most: number) {
    server.on('connection', (socket: Socket) => {
      if (this.#sockets.size >= most) {
        const [[oldest, itsSocket]] = this.#sockets;
        this.#sockets.delete(oldest);
        itsSocket.destroy();
      }
      const end = otherEnd(socket);
      this.#sockets.set(end, socket);
      socket.once('close', () => {
        if (this.#sockets.get(end) === socket) this.#sockets.delete(end);
      });
    });
  }

  /** It is none. */
  accept(socket: TLSSocket): void {
    this.#sockets.delete(otherEnd(socket));
  }

  /** Ends them all: they would keep this process. */
  close(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}

function otherEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Calls back with each line; one that is too long ends the connection. */
export function readLines(socket: TLSSocket, longest: number, callback: (line: string) => void): void {
  let text = '';
  socket.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
    const lines = text.split('\n');
    text = lines.pop()!;
    if (text.length > longest || lines.some((line) => line.length > longest)) socket.destroy();
    else for (const line of lines) callback(line);
  });
}

/** An object of JSON, or nothing. */
export function parseObject<T extends object>(line: string): T | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}
