/**
 * Ranks on several hosts: each has a copy of the control memory, which a worker thread keeps like the others'
 * (control-worker.ts).
 */
import { randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { RmaError } from '../errors.ts';
import { type Control, controlBytes, formatControl, RankState, Slot, viewControl } from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import type { Native } from '../native.ts';
import { moduleFile } from '../place.ts';
import type { Context } from '../verbs/device.ts';
import { SILENCE_MS } from './control-links.ts';
import type { ControlWorkerData, News, Order } from './control-worker.ts';
import type { Patience } from './managers/manager.ts';
import { givenAddress, outsideAddresses } from './whereabouts.ts';

/** Where rank 0's worker listens; stands on its card. */
export interface Hub {
  readonly hosts: readonly string[];
  readonly port: number;
  readonly secret: string;
}

/** Addresses of this host that are put on the card. */
const MOST_HOSTS = 4;
/** How long the last words may take. */
const LEAVE_MS = 2000;

export class DistributedControl {
  readonly control: Control;
  readonly #buffer: SharedArrayBuffer;
  readonly #flag = new SharedArrayBuffer(4);
  readonly #rank: number;
  #worker: Worker | undefined;

  constructor(rank: number, size: number) {
    this.#rank = rank;
    this.#buffer = new SharedArrayBuffer(controlBytes(size, { rank }));
    this.control = viewControl(this.#buffer, size, { rank });
    formatControl(this.control);
    Atomics.store(this.control.slots, rank * this.control.slotWords + Slot.PID, process.pid);
  }

  /**
   * Rank 0: what the others have to know.
   * @param hosts addresses of this host at which the others are likely to reach it
   */
  async listen(hosts: readonly string[]): Promise<Hub> {
    const secret = randomBytes(16).toString('hex');
    const { port, failure } = await this.#news(this.#start(secret));
    if (port === undefined)
      throw new RmaError('ERR_COMM', `init: rank 0 cannot listen for the other ranks: ${failure}`);
    return { hosts: reachableAt(hosts), port, secret };
  }

  /** Rank 0, when all others know where it is: a rank that does not come now has failed. */
  expectAll(): void {
    this.#tell('expect all');
  }

  /** Any other rank. Resolves when it is connected. Errors: `ERR_COMM`, or what ends the patience. */
  async join({ hosts, port, secret }: Hub, patience: Patience): Promise<void> {
    const worker = this.#start(secret);
    this.#tell({ hub: { hosts, port } });
    const { failure } = await this.#news(worker, patience);
    if (failure === undefined) return;
    throw new RmaError(
      'ERR_COMM',
      `init: rank ${this.#rank} cannot connect to rank 0 at ${failure}; ` +
        'firewalls must allow TCP connections between the hosts of the ranks',
    );
  }

  /** @param who the ranks are, for messages; @param cores for all of them together */
  membership(native: Native, context: Context, who: readonly string[], cores: number): Membership {
    return {
      rank: this.#rank,
      size: who.length,
      control: this.control,
      context,
      cores,
      schedYield: () => native.schedYield(),
      describe: (other) => who[other],
      // The workers tell.
      alive: () => true,
      watched: true,
      distant: true,
      leave: () => this.close(),
    };
  }

  /**
   * Says the last words. The hub's worker, and with it this process, stays until the others have left, if this rank
   * leaves in agreement with them.
   */
  close(): void {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#tell('leave');
    this.#worker = undefined;
    Atomics.wait(new Int32Array(this.#flag), 0, 0, LEAVE_MS);
    const { slots, slotWords } = this.control;
    const agreed = Atomics.load(slots, this.#rank * slotWords + Slot.STATE) === RankState.FINALIZED;
    if (this.#rank === 0 && agreed) worker.ref();
    else void worker.terminate();
  }

  #tell(order: Order): void {
    this.#worker!.postMessage(order);
  }

  #start(secret: string): Worker {
    const data: ControlWorkerData = {
      buffer: this.#buffer,
      flag: this.#flag,
      rank: this.#rank,
      size: this.control.size,
      secret,
      silenceMs: SILENCE_MS,
    };
    const file = moduleFile('start/control-worker');
    if (file === undefined) {
      throw new RmaError(
        'ERR_COMM',
        'init: ranks on several hosts need the file control-worker.js beside this bundle, and it is missing; ' +
          'bundle "onesided/control-worker" into a file of that name',
      );
    }
    // The search for races tells it from those of the program.
    this.#worker = Object.assign(new Worker(file, { workerData: data }), { [Symbol.for('onesided.worker')]: true });
    this.#worker.unref();
    return this.#worker;
  }

  /** The next thing that the worker tells. Meanwhile it keeps the process. */
  async #news(worker: Worker, patience?: Patience): Promise<News> {
    const signal = patience?.signal;
    signal?.throwIfAborted();
    worker.ref();
    let give: (() => void) | undefined;
    try {
      return await new Promise<News>((resolve, reject) => {
        const onAbort = (): void => reject(signal!.reason);
        const onError = (cause: Error): void =>
          reject(
            new RmaError('ERR_COMM', `init: the thread that connects the ranks failed: ${cause.message}`, {
              cause,
            }),
          );
        worker.once('message', resolve).once('error', onError);
        signal?.addEventListener('abort', onAbort);
        give = () => {
          worker.off('message', resolve).off('error', onError);
          signal?.removeEventListener('abort', onAbort);
        };
      });
    } finally {
      give!();
      worker.unref();
    }
  }
}

/**
 * This host's addresses, likeliest first: those given, others of IPv4, of IPv6 without those that mean nothing
 * elsewhere, and, for containers that share a host's network, itself.
 */
export function reachableAt(likeliest: readonly string[]): string[] {
  const own = givenAddress();
  const all = [...(own === undefined ? [] : [own]), ...likeliest, ...outsideAddresses()];
  return [...[...new Set(all)].slice(0, MOST_HOSTS - 1), '127.0.0.1'];
}
