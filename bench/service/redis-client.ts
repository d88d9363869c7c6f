/** The part of Redis's protocol (RESP) that the benchmark needs, over a socket file; calls are sent as they are made. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

const END = Buffer.from('\r\n');

export class RedisClient {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #rest: Buffer = Buffer.alloc(0);

  static async connect(path: string): Promise<RedisClient> {
    const socket = connect(path);
    await once(socket, 'connect');
    return new RedisClient(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
    socket.on('error', (error) => {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    });
  }

  call(...words: readonly (string | Buffer)[]): Promise<unknown> {
    const parts: Buffer[] = [Buffer.from(`*${words.length}\r\n`)];
    for (const word of words) {
      const bytes = typeof word === 'string' ? Buffer.from(word) : word;
      parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, END);
    }
    this.#socket.write(Buffer.concat(parts));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length > 0) {
      const end = this.#rest.indexOf(END);
      if (end < 0) return;
      const kind = String.fromCharCode(this.#rest[0]);
      const line = this.#rest.toString('latin1', 1, end);
      let next = end + 2;
      let value: unknown = line;
      if (kind === '$' && line === '-1') value = null;
      else if (kind === '$') {
        const length = Number(line);
        if (this.#rest.length < next + length + 2) return;
        value = this.#rest.subarray(next, next + length);
        next += length + 2;
      } else if (kind === ':') value = Number(line);
      this.#rest = this.#rest.subarray(next);
      const { resolve, reject } = this.#waiting.shift()!;
      if (kind === '-') reject(new Error(line));
      else resolve(Buffer.isBuffer(value) ? value.toString('latin1') : value);
    }
  }
}
