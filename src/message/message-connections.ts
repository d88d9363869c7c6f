/**
 * Queue pairs of a rank's messages, one for each rank that it talks to, made when the two first talk. Both sides
 * publish their number, become ready to receive, say so, and send only when the other side has said so.
 */
import { Fifo } from '../fifo.ts';
import type { QueuePair } from '../verbs/queue-pair.ts';
import { connectQueuePair } from './reliable-queue-pairs.ts';
import type { Remainder } from './remainder.ts';

/** How two ranks learn each other's queue pair numbers before they are connected. */
export interface Rendezvous {
  /** Publishes this rank's queue pair for `peer`, and whether it can receive; wakes the peer. */
  publish(peer: number, qpNumber: number, ready: boolean): void;
  /** What the peer has published for this rank: `undefined` if nothing yet. */
  lookUp(peer: number): { qpNumber: number; ready: boolean } | undefined;
  /** The peers that may have published since the last call. */
  callers(): Iterable<number>;
  /**
   * Whether the peer has left in agreement with all: it needs nothing any more, and its connection may end as it likes.
   */
  hasLeft(peer: number): boolean;
}

export interface MessageConnection {
  readonly peer: number;
  readonly qp: QueuePair;
  /** 1: waits for the peer's number; 2: can receive, waits for the peer to; 3: can send. */
  stage: 1 | 2 | 3;
  /** Chunks that wait for a free send slot or for the connection, oldest first. */
  readonly backlog: Fifo<Uint8Array | Remainder>;
  /** How many of these are messages that wait for pieces. */
  remainders: number;
  /** How many connections were made before. */
  readonly order: number;
  /** Whether it is one of those that `poll` looks at. */
  waits: boolean;
}

export class MessageConnections {
  /** Those on which this rank can send. */
  connected = 0;
  readonly #rank: number;
  readonly #rendezvous: Rendezvous;
  readonly #make: () => QueuePair;
  readonly #byPeer = new Map<number, MessageConnection>();
  readonly #peerByQp = new Map<number, number>();

  /** @param make a queue pair in the state INIT */
  constructor(rank: number, rendezvous: Rendezvous, make: () => QueuePair) {
    this.#rank = rank;
    this.#rendezvous = rendezvous;
    this.#make = make;
  }

  /** To a peer that it has been made to. */
  find(peer: number): MessageConnection | undefined {
    return this.#byPeer.get(peer);
  }

  /** Made when it is first asked for. */
  to(peer: number): MessageConnection {
    return this.#byPeer.get(peer) ?? this.#connect(peer);
  }

  /** The other end of a queue pair of these. */
  peerOf(qpNumber: number): number {
    return this.#peerByQp.get(qpNumber)!;
  }

  hasLeft(peer: number): boolean {
    return this.#rendezvous.hasLeft(peer);
  }

  #connect(peer: number): MessageConnection {
    const qp = this.#make();
    const connection: MessageConnection = {
      peer,
      qp,
      stage: 1,
      backlog: new Fifo(),
      remainders: 0,
      order: this.#byPeer.size,
      waits: false,
    };
    this.#byPeer.set(peer, connection);
    this.#peerByQp.set(qp.number, peer);
    this.#rendezvous.publish(peer, qp.number, false);
    this.advance(connection);
    return connection;
  }

  /** Takes the next steps of a connection on which this rank cannot send yet, as far as the peer has come. */
  advance(connection: MessageConnection): void {
    const { peer, qp } = connection;
    const theirs = this.#rendezvous.lookUp(peer);
    if (theirs === undefined) return;
    if (connection.stage === 1) {
      connectQueuePair(qp, { member: peer, qpNumber: theirs.qpNumber }, 1);
      connection.stage = 2;
      this.#rendezvous.publish(peer, qp.number, true);
    }
    if (!theirs.ready) return;
    connection.stage = 3;
    this.connected++;
  }

  /**
   * Goes on with those whose peers may have published something.
   * @param failed is told what making a connection has thrown
   */
  answerCallers(failed: (peer: number, error: unknown) => void): void {
    for (const peer of this.#rendezvous.callers()) {
      if (peer === this.#rank) continue;
      try {
        this.#answer(peer);
      } catch (error) {
        failed(peer, error);
      }
    }
  }

  #answer(peer: number): void {
    const connection = this.#byPeer.get(peer);
    if (connection === undefined) {
      if (this.#rendezvous.lookUp(peer) !== undefined) this.#connect(peer);
    } else if (connection.stage !== 3) this.advance(connection);
  }

  close(): void {
    for (const { qp } of this.#byPeer.values()) qp.destroy();
  }
}
