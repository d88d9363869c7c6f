/**
 * A process with an endpoint of libfabric that says whatever a test wants: one that has read the traffic of others, or
 * a peer that does not do what ours do (programs/stranger.cc). Messages are as native/fabric_wire.h has them.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { FabricAddress } from '../../src/providers/libfabric/libfabric-addresses.ts';

export const Kind = Object.freeze({
  SEND: 1,
  SEND_IMM: 2,
  WRITE_IMM: 3,
  REFUSED: 5,
  ASK_KEY: 6,
  KEY: 7,
  KEY_GONE: 8,
  FORGOTTEN: 9,
  PING: 10,
  PONG: 11,
  TOGETHER: 13,
});
/** Of a message in chunks: this is its last one. */
export const LAST = 1;
/** What was accepted on another connection stands before the data. */
export const ALSO_ACCEPTS = 16;
/** A notice stands behind accesses. */
export const NOTICE = 32;

export interface Message {
  readonly kind: number;
  readonly flags?: number;
  readonly status?: number;
  readonly to?: number;
  readonly from?: number;
  readonly number?: number;
  readonly immediate?: number;
  readonly total?: number;
  readonly offset?: number;
  readonly data?: Uint8Array;
}

const HEADER = 40;
const PATIENCE_MS = 20_000;
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function encode([upper, lower]: FabricAddress['tag'], message: Message): Uint8Array {
  const { data = new Uint8Array() } = message;
  const bytes = new Uint8Array(HEADER + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, lower, true);
  view.setUint32(4, upper, true);
  bytes.set([message.kind, message.flags ?? 0, message.status ?? 0, 7], 8);
  const { to = 0, from = 0, number = 0, immediate = 0, total = data.length, offset = 0 } = message;
  for (const [i, value] of [to, from, number, immediate, total, offset].entries())
    view.setUint32(12 + 4 * i, value, true);
  bytes.set(data, HEADER);
  return bytes;
}

function decode(bytes: Uint8Array): Message & { readonly tag: FabricAddress['tag'] } {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const word = (at: number): number => view.getUint32(at, true);
  return {
    tag: [word(4), word(0)],
    ...{ kind: bytes[8], flags: bytes[9], status: bytes[10], to: word(12), from: word(16), number: word(20) },
    ...{ immediate: word(24), total: word(28), offset: word(32), data: bytes.slice(HEADER) },
  };
}

let folder = '';
const program = (): string => join(folder, 'stranger');

/** Compiles the program for the tests of a file. */
export function compileStrangers(): void {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'onesided-stranger-'));
    const source = fileURLToPath(new URL('programs/stranger.cc', import.meta.url));
    execFileSync('c++', ['-std=c++17', '-O1', '-o', program(), source, '-lfabric']);
  });
  afterAll(() => rmSync(folder, { recursive: true }));
}

export class Stranger {
  /** What a rank would be told of it. */
  readonly own: FabricAddress;
  readonly #child: ChildProcess;
  readonly #lines: string[];

  /** Ends with the test. */
  static async start(): Promise<Stranger> {
    const child = spawn(program(), ['127.0.0.1'], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines: string[] = [];
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const all = (rest + text).split('\n');
      rest = all.pop()!;
      lines.push(...all);
    });
    return new Stranger(child, lines, await until(() => lines.find((line) => line.startsWith('name '))));
  }

  private constructor(child: ChildProcess, lines: string[], first: string) {
    this.#child = child;
    this.#lines = lines;
    this.own = { name: Uint8Array.from(Buffer.from(first.slice(5), 'hex')), tag: [0x12345678, 0x9abcdef0] };
  }

  #say(command: string): void {
    this.#child.stdin!.write(`${command}\n`);
  }

  /** Sends a message so many times, and returns at once. */
  begin(to: FabricAddress, message: Message, count = 1): void {
    this.#say(`to ${hexOf(to.name)}`);
    this.#say(`send ${count} ${hexOf(encode(to.tag, message))}`);
  }

  /** The same, and waits until libfabric has taken them. */
  async send(to: FabricAddress, message: Message, count = 1): Promise<void> {
    const before = this.#sent();
    this.begin(to, message, count);
    await until(() => (this.#sent() > before ? true : undefined));
  }

  #sent(): number {
    return this.#lines.filter((line) => line === 'sent').length;
  }

  /** It looks at nothing that comes. */
  deaf(): void {
    this.#say('deaf');
  }

  hear(): void {
    this.#say('hear');
  }

  /** The messages of a kind that have come. */
  got(kind: number): (Message & { readonly tag: FabricAddress['tag'] })[] {
    const all = this.#lines.filter((line) => line.startsWith('got ')).map((line) => Buffer.from(line.slice(4), 'hex'));
    return all.map(decode).filter((message) => message.kind === kind);
  }

  /** Waits until so many of a kind have come: the last of them. `meanwhile` is called again and again. */
  next(kind: number, count = 1, meanwhile = (): void => {}): Promise<Message> {
    return until(() => {
      meanwhile();
      return this.got(kind)[count - 1];
    });
  }
}

/** Waits for what is there later. */
async function until<T>(look: () => T | undefined): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let looks = 0; ; looks++) {
    const found = look();
    if (found !== undefined) return found;
    // The machine may have stood still.
    if (looks > 1000 && performance.now() > deadline) throw new Error(`nothing came in ${PATIENCE_MS} ms`);
    await sleep(1);
  }
}
