/**
 * What the library itself does in another rank's memory: atomics on words, and reads and writes between that memory and
 * some of its own (scratch.ts).
 *
 * Atomics leave what was there in a word (answers.ts) and call back. Reads and writes are generators, which end when
 * their requests are complete.
 */
import { forEachRun } from '../../datatype/copy.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Context } from '../../verbs/device.ts';
import type { MemoryRegion, ProtectionDomain } from '../../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../../verbs/queue-pair.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import type { Answer, Answers } from './answers.ts';
import type { NearMemory } from './near-memory.ts';
import type { Outstanding } from './outstanding.ts';
import type { Regions, RemoteRegion } from './regions.ts';
import { type Left, type Scratch, Scratches } from './scratch.ts';

/** Where an atomic takes place: 64 bits at an address of a rank's region. */
export interface RemoteWord {
  readonly rank: number;
  readonly rkey: number;
  readonly address: number;
}

/** A word that is 0, or says who has what it stands for; or none, with the address 0. */
export interface Lock {
  readonly word: Omit<RemoteWord, 'rank'>;
  /** What it is while this rank has it. */
  readonly holder: number;
}

const ignore = (): void => {};

function* until(left: Left): Generator<void, void> {
  while (left.count > 0) yield;
}

/** Calls `body` for each piece of `bytes` bytes from `start` on that one message can carry. */
export function inMessages(
  maxMsgSize: number,
  start: number,
  bytes: number,
  body: (offset: number, length: number) => void,
): void {
  for (let done = 0; done < bytes; done += maxMsgSize) body(start + done, Math.min(maxMsgSize, bytes - done));
}

export class RemoteAccess {
  /** Known when the ranks have connected. */
  regions: Regions | undefined;
  /** What this rank's own processor reaches; absent: everything goes by requests. */
  near: NearMemory | undefined;
  readonly #maxMsgSize: number;
  readonly #outstanding: Outstanding;
  readonly #scratches: Scratches;

  constructor(context: Context, pd: ProtectionDomain, outstanding: Outstanding) {
    this.#maxMsgSize = context.device.maxMsgSize;
    this.#outstanding = outstanding;
    this.#scratches = new Scratches(context, pd);
  }

  /** Adds to the word, modulo 2^64. @param again as of `compareSwap` */
  fetchAdd({ rank, rkey, address }: RemoteWord, lo: number, hi: number, answer: Answer = ignore, again = false): void {
    if (!again && this.#nearTo(rank)?.fetchAdd(rank, rkey, address, lo, hi, answer)) return;
    const build = (qp: QueuePair, id: number, answers: Answers, slot: number): void => {
      qp.wrAtomicFetchAdd(id, SendFlag.SIGNALED, rkey, address, lo >>> 0, hi >>> 0);
      answers.setSge(qp, slot);
    };
    this.#outstanding.ask(rank, answer, build, again);
  }

  /**
   * Replaces the word by `swap` if it is `compare`: two halves each, low half first.
   * @param again the caller asks until another rank has changed the word (`Processor.asks`)
   */
  compareSwap(
    { rank, rkey, address }: RemoteWord,
    compareLo: number,
    compareHi: number,
    swapLo: number,
    swapHi: number,
    answer: Answer,
    again = false,
  ): void {
    if (this.#nearTo(rank)?.swapped(rank, rkey, address, compareLo, compareHi, swapLo, swapHi, answer)) return;
    const build = (qp: QueuePair, id: number, answers: Answers, slot: number): void => {
      const [lo, hi, newLo, newHi] = [compareLo >>> 0, compareHi >>> 0, swapLo >>> 0, swapHi >>> 0];
      qp.wrAtomicCmpSwp(id, SendFlag.SIGNALED, rkey, address, lo, hi, newLo, newHi);
      answers.setSge(qp, slot);
    };
    this.#outstanding.ask(rank, answer, build, again);
  }

  /** A region that this rank's processor reaches, and may change now. */
  partHere(rank: number, region: RemoteRegion): RemotePart | undefined {
    return this.#nearTo(rank)?.partOf(rank, region);
  }

  /** `compareSwap` by this rank's processor. @returns whether it has replaced the word */
  swappedHere({ rank, rkey, address }: RemoteWord, lo: number, hi: number, swapLo: number, swapHi: number): boolean {
    return this.#nearTo(rank)?.swapped(rank, rkey, address, lo, hi, swapLo, swapHi, ignore) === true;
  }

  /** Absent while something of this rank is under way to the other, behind which all comes that is done now. */
  #nearTo(rank: number): NearMemory | undefined {
    return this.near !== undefined && this.#outstanding.isSilentTo(rank) ? this.near : undefined;
  }

  /**
   * Posts an update that the owner carries out (`QueuePair.wrUpdate`, with what `does` is). Its word and elements are
   * the first `bytes` of `memory`, whose `left` says when it is complete.
   */
  update(
    { rank, rkey, address }: RemoteWord,
    does: number,
    lock: Lock,
    { region, left }: Scratch,
    bytes: number,
  ): void {
    const { word, holder } = lock;
    this.#outstanding.track(rank, left, (qp, id) => {
      qp.wrUpdate!(id, SendFlag.SIGNALED, rkey, address, does, word.rkey, word.address, holder);
      qp.wrSetSge(region.lkey, region.address, bytes);
    });
  }

  /** Memory for the results of reads and the sources of writes: registered from its first byte on. */
  scratch(bytes: number): Scratch {
    return this.#scratches.take(bytes);
  }

  /**
   * Posts a read of `bytes` bytes from byte `at` + `place` of a region to `place` in the memory `local`. The generator
   * ends when they are there.
   */
  read(
    rank: number,
    at: number,
    { lkey, address: here, memory }: MemoryRegion,
    place: number,
    bytes: number,
    { rkey, address } = this.regions!.of(rank),
    left: Left = { count: 0 },
  ): Generator<void, void> {
    if (this.#nearTo(rank)?.read(rank, rkey, address + at + place, bytes, memory.buffer, place)) return until(left);
    inMessages(this.#maxMsgSize, place, bytes, (offset, length) => {
      this.#outstanding.track(rank, left, (qp, id) => {
        qp.wrRdmaRead(id, SendFlag.SIGNALED, rkey, address + at + offset);
        qp.wrSetSge(lkey, here + offset, length);
      });
    });
    return until(left);
  }

  /**
   * Posts writes of all that `to` covers, from byte `place` on in the memory `local`, to byte `at` + `place` of a
   * region.
   */
  write(
    rank: number,
    at: number,
    { lkey, address: here, memory }: MemoryRegion,
    place: number,
    to: Side,
    { rkey, address } = this.regions!.of(rank),
    left: Left = { count: 0 },
  ): Generator<void, void> {
    forEachRun(to, (start, bytes) => {
      const [there, from] = [address + at + place + start, place + start];
      if (this.#nearTo(rank)?.write(rank, rkey, there, bytes, memory.buffer, from)) return;
      inMessages(this.#maxMsgSize, place + start, bytes, (offset, length) => {
        this.#outstanding.track(rank, left, (qp, id) => {
          qp.wrRdmaWrite(id, SendFlag.SIGNALED, rkey, address + at + offset);
          qp.wrSetSge(lkey, here + offset, length);
        });
      });
    });
    return until(left);
  }

  /**
   * Posts a write of a word, given as two halves. The generator ends when the target's device has it; a read that is
   * posted behind it finds it in memory.
   */
  store({ rank, rkey, address }: RemoteWord, lo: number, hi: number): Generator<void, void> {
    const left = { count: 0 };
    this.#outstanding.track(rank, left, (qp, id, answers, slot) => {
      answers.words[2 * slot] = lo;
      answers.words[2 * slot + 1] = hi;
      qp.wrRdmaWrite(id, SendFlag.SIGNALED, rkey, address);
      answers.setSge(qp, slot);
    });
    return until(left);
  }

  /** The device carries out no request any more. */
  close(): void {
    this.#scratches.close();
  }
}
