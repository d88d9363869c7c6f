/** Shared 32-bit words at one rank, through a window: what the structures keep their state in. */
import { Communicator } from '../collective/communicator.ts';
import { Op } from '../datatype/op.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { type Operation, readWait, type WaitOptions } from '../wait/operation.ts';
import { Window } from '../window/calls/window.ts';

/** Options of every structure: where it lives, and its name. */
export interface PlaceOptions extends WaitOptions {
  /** The rank whose memory holds the structure (default: 0). All ranks must give the same. */
  readonly owner?: number;
  /** The name in error messages (default: the name of the class). */
  readonly name?: string;
}

/** Of one structure that `agree` compares. */
const MOST_NUMBERS = 4;

export interface Place {
  readonly owner: number;
  readonly name: string;
  readonly wait: WaitOptions | undefined;
}

/** The options of a structure, read once and checked. @param others options that it has besides */
export function readPlace(
  call: string,
  comm: Communicator,
  options: PlaceOptions | undefined,
  others: readonly string[] = [],
): Place {
  const wait = readWait(call, options, ['owner', 'name', ...others]);
  const { owner = 0, name = call.slice(0, call.indexOf('.')) } = reading(call, 'owner and name of the options', () => {
    return { owner: options?.owner, name: options?.name };
  });
  if (typeof name !== 'string') throw argumentTypeError(`${call}: name must be a string, not ${show(name)}`);
  if (typeof owner !== 'number') {
    throw argumentTypeError(`${call}: owner must be a rank, not ${show(owner)}`, 'ERR_RANK');
  }
  if (!Number.isInteger(owner) || owner < 0 || owner >= comm.size) {
    throw argumentRangeError(
      `${call}: owner must be a rank from 0 to ${comm.size - 1}, not ${show(owner)}`,
      'ERR_RANK',
    );
  }
  return { owner, name, wait };
}

/**
 * Collective: reads the arguments, and makes sure that all ranks have given the same. A rank whose arguments are
 * refused makes the call fail everywhere.
 * @param read throws if an argument is wrong; gives the place, and what else has to be the same, by name
 */
export async function agree(
  call: string,
  comm: Communicator,
  read: () => { place: Place; shape: Readonly<Record<string, number>> },
): Promise<Place> {
  if (!Communicator.is(comm)) {
    throw argumentTypeError(
      `${call}: the first argument must be a communicator, such as the result of init(), not ${show(comm)}`,
      'ERR_COMM',
    );
  }
  if (comm.job.tasks !== undefined) {
    throw new RmaError(
      'ERR_RMA_WOULD_DEADLOCK',
      `${call}: its calls block the thread, which is that of all tasks of a modelled fabric; ` +
        'use windows there (fetchAndOp, compareAndSwap), or real ranks',
    );
  }
  let mine: ReturnType<typeof read> | undefined;
  let refusal: unknown;
  try {
    mine = read();
  } catch (error) {
    refusal = error;
  }
  const names = ['owner', ...Object.keys(mine?.shape ?? {})];
  const given = mine === undefined ? [] : [mine.place.owner, ...Object.values(mine.shape)];
  // The first number: how many are compared; 0 if they are refused.
  const numbers = new Float64Array(1 + MOST_NUMBERS);
  numbers.set([given.length, ...given]);
  const all = new Float64Array(numbers.length * comm.size);
  await comm.allgather(numbers, all, mine?.place.wait);
  if (mine === undefined) throw refusal;
  for (let rank = 0; rank < comm.size; rank++) {
    const theirs = all.subarray(rank * numbers.length, (rank + 1) * numbers.length);
    if (theirs[0] === 0) throw new RmaError('ERR_ARG', `${call}: rank ${rank} gave invalid arguments; see its error`);
    const i = numbers.findIndex((number, index) => number !== theirs[index]);
    if (i < 0) continue;
    const what =
      i === 0 ? 'creates another kind of structure' : `gave ${names[i - 1]} ${theirs[i]}, this rank ${numbers[i]}`;
    throw new RmaError('ERR_ARG', `${call}: all ranks must give the same arguments, but rank ${rank} ${what}`);
  }
  return mine.place;
}

/** The least power of two that is not below `n`: positions that wrap around at 2^32 then map evenly to places. */
export function ringLength(n: number): number {
  return n <= 1 ? 1 : 2 ** (32 - Math.clz32(n - 1));
}

/**
 * Words of a window, in one `lockAll` epoch from beginning to end. Each call is one atomic operation at the owner,
 * complete when it returns; all ranks see all of them in one order (they are atomic accumulates, each flushed: on
 * memory of this machine, sequentially consistent instructions).
 */
export class Words {
  readonly comm: Communicator;
  readonly owner: number;
  readonly name: string;
  readonly #window: Window<Int32Array>;
  readonly #origin = new Int32Array(1);
  readonly #compare = new Int32Array(1);
  readonly #result = new Int32Array(1);

  /** Collective: words at the owner, `initial` gives their values there. Before they are used, `begin`. */
  static async create(comm: Communicator, place: Place, initial: Int32Array): Promise<Words> {
    const { owner, name, wait } = place;
    const length = comm.rank === owner ? initial.length : 0;
    const window = await Window.allocate(comm, Int32Array, length, { ...wait, name });
    if (comm.rank === owner) window.local.set(initial);
    window.lockAllSync();
    window.sync();
    return new Words(comm, place, window);
  }

  /**
   * Collective: returns when the words have their values at all ranks. Errors: those of a collective; the words are
   * unusable.
   */
  async begin(wait: WaitOptions | undefined): Promise<void> {
    try {
      // No barrier of the program's, which would go on with this one if it ended early.
      await this.comm.collective({ name: 'sync.create', steps: () => this.comm.farewell() }, wait).promise;
    } catch (error) {
      // Freed with the communicator, which no epoch may keep from that.
      this.#window.unlockAllSync();
      throw error;
    }
  }

  private constructor(comm: Communicator, place: Place, window: Window<Int32Array>) {
    this.comm = comm;
    this.owner = place.owner;
    this.name = place.name;
    this.#window = window;
  }

  add(word: number, by: number): number {
    return this.#fetch(word, by, Op.SUM);
  }

  or(word: number, bits: number): number {
    return this.#fetch(word, bits, Op.BOR);
  }

  load(word: number): number {
    return this.#fetch(word, 0, Op.NO_OP);
  }

  /** Stores, and gives what was there before. */
  exchange(word: number, value: number): number {
    return this.#fetch(word, value, Op.REPLACE);
  }

  /** The word before; it is `to` now if that was `from`. */
  compareAndSwap(word: number, from: number, to: number): number {
    this.#compare[0] = from;
    this.#origin[0] = to;
    this.#window.compareAndSwap(this.#origin, this.#compare, this.#result, this.owner, word);
    this.#window.flushSync(this.owner);
    return this.#result[0];
  }

  #fetch(word: number, value: number, op: Op<'move' | 'arithmetic' | 'bitwise'>): number {
    this.#origin[0] = value;
    this.#window.fetchAndOp(this.#origin, this.#result, this.owner, word, op);
    this.#window.flushSync(this.owner);
    return this.#result[0];
  }

  wait(operation: Operation, options: WaitOptions | undefined): Promise<void> {
    return this.comm.members.wait(operation, options);
  }

  waitSync(operation: Operation, options: WaitOptions | undefined): void {
    this.comm.members.waitSync(operation, options);
  }

  /** Lets a rank that sleeps look again at what it waits for. */
  wake(rank: number): void {
    this.comm.job.context.wake(this.comm.group.worldRanks[rank]);
  }

  /** Collective. */
  async free(options: WaitOptions | undefined): Promise<void> {
    this.#window.unlockAllSync();
    await this.#window.free(options);
  }
}
