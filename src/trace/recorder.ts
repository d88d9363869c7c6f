/**
 * What a rank records of its run, if it is traced: spans (epochs, calls, waits), communication calls, and what it tells
 * other ranks or has been told.
 *
 * There is no recorder in a run that is not traced, and a put does not ask for one on its way: windows and
 * communicators of a traced job get recording methods when they are made (window/calls/traced-window.ts,
 * collective/traced-calls.ts), and what waits is another object (wait/traced-progress.ts). The clock is given: real
 * ranks have the system's monotonic one, which all processes of a host share (clock.ts); ranks in virtual time have
 * theirs.
 *
 * Two ranks need not agree on anything for an arrow between them: each counts what it has sent to, or seen from, each
 * other one on a flow, and the n-th of one is the n-th of the other. Times are taken before the store that tells,
 * and after the load that sees, so an arrow never points back in time.
 */
import { Kind, type Recording, RingWriter, readRing, ringBytes } from './trace-ring.ts';

/** Nanoseconds. The same origin at all ranks of a job; never goes back. */
export type Clock = () => number;

/** What a span is. */
export type SpanKind = 'epoch' | 'call' | 'wait';

const KINDS = { epoch: Kind.EPOCH, call: Kind.CALL, wait: Kind.WAIT } as const;

export interface SpanDetails {
  /** {@link Recorder.text} of the window or communicator. */
  readonly scope?: number;
  /** A rank of the world. */
  readonly peer?: number;
  /** Which one of its kind on its window: the third fence. */
  readonly place?: number;
  /** When it began, if that was before now. */
  readonly since?: number;
}

export class Recorder {
  /** The rank in the job's world. */
  readonly rank: number;
  /** The time now. */
  readonly now: Clock;
  readonly #ring: RingWriter;
  #spans = 0;

  /** @param buffer zeroed memory; from `byteOffset` on, `ringBytes(events)` of it are the ring */
  constructor(rank: number, clock: Clock, buffer: ArrayBufferLike, byteOffset: number, events: number) {
    this.rank = rank;
    this.now = clock;
    this.#ring = new RingWriter(buffer, byteOffset, events);
  }

  /** The number by which records name a text. */
  text(text: string): number {
    return this.#ring.text(text);
  }

  /** @returns the span, to be ended */
  begin(
    kind: SpanKind,
    name: string,
    { scope = 0, peer = -1, place = 0, since = this.now() }: SpanDetails = {},
  ): number {
    const span = ++this.#spans;
    this.#ring.write(since, KINDS[kind], this.text(name), scope, peer, 0, place, span);
    return span;
  }

  /** @param error what ended it early */
  end(span: number, error?: unknown): void {
    const name = error === undefined ? 0 : this.text(nameOf(error));
    this.#ring.write(this.now(), Kind.END, name, 0, -1, 0, 0, span);
  }

  /**
   * A communication call that began at `since` and returns now.
   * @param done whether its bytes are where they belong now, so that no later time could be given for that
   */
  operation(
    name: number,
    scope: number,
    peer: number,
    bytes: number,
    disp: number,
    since: number,
    done: boolean,
  ): void {
    const kind = done ? Kind.OPERATION_DONE : Kind.OPERATION;
    this.#ring.write(since, kind, name, scope, peer, bytes, disp, this.now() - since);
  }

  /** The communication call that is recorded next goes by requests of this turn. */
  issued(turn: number): void {
    this.#ring.write(this.now(), Kind.ISSUED, 0, 0, -1, 0, 0, turn);
  }

  /**
   * What ranks tell each other. To be made by all of them with the same name and scope.
   * @param scope what tells this flow from others of its name: the same at all ranks
   */
  flow(name: string, scope: string, size: number): Flow {
    return new Flow(this, this.#ring, this.text(name), this.text(scope), size);
  }

  /** This rank lets go of the lock of `peer`'s part, or (`acquired`) has got it. */
  released(scope: number, peer: number, exclusive: boolean): void {
    this.#ring.write(this.now(), Kind.RELEASED, 0, scope, peer, 0, exclusive ? 1 : 0, 0);
  }

  acquired(scope: number, peer: number, exclusive: boolean, waited: boolean): void {
    this.#ring.write(this.now(), Kind.ACQUIRED, 0, scope, peer, 0, exclusive ? 1 : 0, waited ? 1 : 0);
  }

  /** This rank has notified `peer`, by a call that began at `since`; or (`took`) has taken so many notifications. */
  notified(scope: number, peer: number, since = this.now()): void {
    this.#ring.write(since, Kind.NOTIFIED, 0, scope, peer, 0, 0, 0);
  }

  /** A phase of a superstep that began at `since` (trace-ring.ts says what the numbers are). */
  phase(kind: number, scope: number, peer: number, count: number, step: number, since: number, took: number): void {
    this.#ring.write(since, kind, 0, scope, peer, count, step, took);
  }

  took(scope: number, count: number): void {
    this.#ring.write(this.now(), Kind.TOOK, 0, scope, -1, count, 0, 0);
  }
}

/**
 * A recorder into memory of this process, and what it has recorded so far. For ranks that end when it does: a world of
 * one, ranks in virtual time.
 */
export function recordInMemory(
  rank: number,
  clock: Clock,
  events: number,
): { readonly recorder: Recorder; recording(): Recording } {
  const ring = new Uint8Array(ringBytes(events));
  return {
    recorder: new Recorder(rank, clock, ring.buffer, 0, events),
    recording: () => readRing(rank, ring.length, (bytes) => ring.slice(0, bytes)),
  };
}

/** One kind of thing that ranks tell each other, in order for each pair. Ranks are the world's. */
export class Flow {
  readonly #recorder: Recorder;
  readonly #ring: RingWriter;
  readonly #name: number;
  readonly #scope: number;
  readonly #sent: Float64Array;
  readonly #seen: Float64Array;

  /** @internal */
  constructor(recorder: Recorder, ring: RingWriter, name: number, scope: number, size: number) {
    this.#recorder = recorder;
    this.#ring = ring;
    this.#name = name;
    this.#scope = scope;
    this.#sent = new Float64Array(size);
    this.#seen = new Float64Array(size);
  }

  /** To be called before it is told. */
  sent(peer: number, bytes: number): void {
    this.#ring.write(this.#recorder.now(), Kind.SENT, this.#name, this.#scope, peer, bytes, 0, ++this.#sent[peer]);
  }

  /** The same for a request, or for what else a communication call makes. @returns its number */
  posted(peer: number, turn: number): number {
    const number = ++this.#sent[peer];
    this.#ring.write(this.#recorder.now(), Kind.SENT, this.#name, this.#scope, peer, 0, turn, number);
    return number;
  }

  /** The `number`-th to `peer` has done what it was to do. @param time nanoseconds, by the recorder's clock */
  tookEffect(peer: number, number: number, time = this.#recorder.now()): void {
    this.#ring.write(time, Kind.TOOK_EFFECT, this.#name, this.#scope, peer, 0, 0, number);
  }

  /** To be called after it was seen. */
  seen(peer: number, bytes: number): void {
    this.#ring.write(this.#recorder.now(), Kind.SEEN, this.#name, this.#scope, peer, bytes, 0, ++this.#seen[peer]);
  }

  /** Of requests that a device carries out, one after the other: the next one to `peer` is complete. */
  completed(peer: number): void {
    this.#ring.write(this.#recorder.now(), Kind.COMPLETED, this.#name, this.#scope, peer, 0, 0, ++this.#seen[peer]);
  }

  /** The same for what is told to all, by whichever rank it falls to: it is the `number`-th. */
  released(peer: number, number: number): void {
    this.#ring.write(this.#recorder.now(), Kind.SENT, this.#name, this.#scope, peer, 0, 1, number);
  }

  sawRelease(number: number): void {
    this.#ring.write(this.#recorder.now(), Kind.SEEN, this.#name, this.#scope, -1, 0, 1, number);
  }
}

function nameOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === 'string' ? code : typeof name === 'string' ? name : String(error);
}
