/**
 * A network in one thread on which the schemes of `src/sync` run: messages, atomics and writes are under way until
 * somebody says that they arrive. Each connection keeps its order, as a reliable connection does; between connections
 * anything can come first.
 */
import type { OwnChannel } from '../../src/collective/communicator.ts';
import type { Answer } from '../../src/transfer/requests/answers.ts';
import type { RemoteWord } from '../../src/transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../src/transfer/requests/request-transfer.ts';
import { REAL_PROCESSOR } from '../../src/verbs/processor.ts';

/** Something on its way. */
type Arrival = () => void;

export class SlowNetwork {
  readonly size: number;
  /** Milliseconds, for back-off. */
  now = 0;
  /** The words of each rank by their addresses, as they are numbered in these tests. */
  readonly #words: Map<number, bigint>[];
  /** By connection: requests to the target, answers back, messages. */
  readonly #underWay = new Map<string, Arrival[]>();
  readonly #speeds = new Map<string, number>();
  readonly #listeners: ((source: number, message: Uint8Array) => void)[] = [];
  /** Messages that wait for `receive`, by channel, target and source. */
  readonly #inboxes = new Map<string, Uint8Array[]>();

  constructor(size: number) {
    this.size = size;
    this.#words = Array.from({ length: size }, () => new Map<number, bigint>());
  }

  /** @param value of the lower half; the upper one is 0 */
  setWord(rank: number, index: number, value: number): void {
    this.#words[rank].set(index, BigInt(value));
  }

  /** @returns the lower half */
  word(rank: number, index: number): number {
    return Number(BigInt.asUintN(32, this.#words[rank].get(index) ?? 0n));
  }

  get busy(): boolean {
    return this.#underWay.size > 0;
  }

  /**
   * Lets the first thing of one of the connections arrive. Some connections are slow and others fast, by chance and
   * most of the time: so things overtake each other by far.
   */
  deliver(below: (n: number) => number): void {
    const connections = [...this.#underWay.keys()];
    let next = connections[below(connections.length)];
    if (below(8) > 0) {
      for (const connection of connections) {
        if (!this.#speeds.has(connection)) this.#speeds.set(connection, below(1000));
        if (this.#speeds.get(connection)! > (this.#speeds.get(next) ?? -1)) next = connection;
      }
    }
    this.#arrive(next);
  }

  /** Lets the first thing arrive of the first connection that is eligible. @returns whether there was one */
  deliverFirst(eligible: (connection: string) => boolean): boolean {
    const connection = [...this.#underWay.keys()].find(eligible);
    if (connection !== undefined) this.#arrive(connection);
    return connection !== undefined;
  }

  #arrive(connection: string): void {
    const queue = this.#underWay.get(connection)!;
    const arrival = queue.shift()!;
    if (queue.length === 0) this.#underWay.delete(connection);
    arrival();
  }

  /** Something that arrives in its turn on a connection. */
  send(connection: string, arrival: Arrival): void {
    const queue = this.#underWay.get(connection);
    if (queue === undefined) this.#underWay.set(connection, [arrival]);
    else queue.push(arrival);
  }

  /** @param name of the channel: each has messages of its own */
  channel(rank: number, name = ''): OwnChannel {
    const arrive = (target: number, message: Uint8Array): void => {
      const listener = this.#listeners[target];
      if (listener !== undefined) {
        listener(rank, message);
        return;
      }
      const key = `${name} ${target} ${rank}`;
      const inbox = this.#inboxes.get(key);
      if (inbox === undefined) this.#inboxes.set(key, [message]);
      else inbox.push(message);
    };
    const give = (target: number, message: Uint8Array): void => {
      // Messages to oneself are there at once.
      if (target === rank) arrive(target, message);
      else this.send(`message ${rank} ${target}`, () => arrive(target, message));
    };
    return {
      rank,
      size: this.size,
      space: 0,
      awaited: -1,
      processor: REAL_PROCESSOR,
      send: (target, payload) => give(target, payload.slice()),
      give,
      receive: (source) => this.#inboxes.get(`${name} ${rank} ${source}`)?.shift(),
      listen: (listener) => {
        this.#listeners[rank] = listener;
        return () => {};
      },
      compose: (target, bytes, fill) => {
        const message = new Uint8Array(bytes);
        fill(message, 0);
        give(target, message);
      },
      drained: true,
      poll: () => {},
    };
  }

  requests(rank: number): RequestTransfer {
    const atomic = ({ rank: target, address }: RemoteWord, answer: Answer, change: (was: bigint) => bigint): void => {
      const words = this.#words[target];
      this.send(`request ${rank} ${target}`, () => {
        const was = words.get(address) ?? 0n;
        words.set(address, BigInt.asUintN(64, change(was)));
        const [lo, hi] = [BigInt.asUintN(32, was), was >> 32n].map(Number);
        this.send(`answer ${rank} ${target}`, () => answer(lo, hi));
      });
    };
    const bits = (lo: number, hi: number): bigint => (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0);
    const own = (connection: string): boolean => /^(request|answer) (\d+)/.exec(connection)?.[2] === String(rank);
    return {
      poll() {},
      pollCompletions() {},
      remote: {
        compareSwap: (word: RemoteWord, lo: number, hi: number, toLo: number, toHi: number, answer: Answer) =>
          atomic(word, answer, (was) => (was === bits(lo, hi) ? bits(toLo, toHi) : was)),
        fetchAdd: (word: RemoteWord, lo: number, hi: number, answer: Answer = () => {}) =>
          atomic(word, answer, (was) => was + bits(lo, hi)),
      },
      settle: (steps: Generator<void, void>) => {
        while (!steps.next().done) {
          const connection = [...this.#underWay.keys()].find(own);
          if (connection !== undefined) this.#arrive(connection);
        }
      },
    } as unknown as RequestTransfer;
  }
}
