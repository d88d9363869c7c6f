/** Requests: what the calls that begin with `r` return (MPI 4.1, 12.3.5). */
import { Rank } from '../comm/group.ts';
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';
import { DONE, type Waiting } from '../comm/progress.ts';
import { argumentTypeError, readList, show } from '../errors.ts';

/**
 * One communication call, to be waited for by itself. It is complete when its origin may be used again and its result is there; for put and
 * accumulate that says nothing about the target: that is what `waitRemote` and `testRemote` are for, or a flush.
 */
export class Request {
  #progress: Waiting | undefined;
  /** Once complete, it stays so; several may wait for it. */
  #operation: Operation | undefined;

  /** @internal Without an operation it is complete from the start, here and at the target. */
  constructor(progress?: Waiting, operation?: Operation) {
    this.#progress = progress;
    this.#operation = operation;
  }

  /** @internal Whether `value` is a request; runs no code of the caller's. */
  static is(value: unknown): value is Request {
    return typeof value === 'object' && value !== null && #operation in value;
  }

  /** Complete here. After a deadline or an abort the request is still under way: wait again. Errors: `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`. */
  wait(options?: WaitOptions): Promise<void> {
    try {
      const wait = readWait('wait', options);
      return this.#operation === undefined ? DONE : this.#progress!.wait(this.#operation, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  waitSync(options?: WaitOptions): void {
    const wait = readWait('wait', options);
    if (this.#operation === undefined) return;
    this.#progress!.waitSync(this.#operation, wait);
    this.#operation = undefined;
  }

  /** Whether it is complete here. Never waits. */
  test(): boolean {
    if (this.#operation === undefined) return true;
    if (!this.#progress!.look(this.#operation)) return false;
    this.#operation = undefined;
    return true;
  }

  /** @internal `Operation.isPolling` of what it stands for. */
  get isPolling(): boolean {
    return this.#operation?.isPolling?.() === true;
  }

  /**
   * Complete here and at the target: the data can be seen by whoever may load or get it there. The providers of this version tell of both
   * at once.
   */
  waitRemote(options?: WaitOptions): Promise<void> {
    return this.wait(options);
  }

  waitRemoteSync(options?: WaitOptions): void {
    this.waitSync(options);
  }

  testRemote(): boolean {
    return this.test();
  }

  /** Complete when all are (`MPI_Waitall`). `null` stands for no request, here and in the other lists (`MPI_REQUEST_NULL`). */
  static async waitAll(requests: RequestList, options?: WaitOptions): Promise<void> {
    const { all, wait } = readRequests('Request.waitAll', requests, options);
    await Promise.all(all.map((request) => request.wait(wait)));
  }

  static waitAllSync(requests: RequestList, options?: WaitOptions): void {
    const { all, wait } = readRequests('Request.waitAll', requests, options);
    for (const request of all) request.waitSync(wait);
  }

  /**
   * Waits until one is complete (`MPI_Waitany`). The list stays as it is: put `null` in its place to hear of the others.
   * @returns its place in the list, or `Rank.UNDEFINED` if there is no request in it
   */
  static async waitAny(requests: RequestList, options?: WaitOptions): Promise<number> {
    const { all, places, wait } = readRequests('Request.waitAny', requests, options);
    if (all.length === 0) return Rank.UNDEFINED;
    const any = new AnyOf('Request.waitAny', all);
    if (!any.advance()) await all[0].#progress!.wait(any, wait);
    return places[any.found];
  }

  static waitAnySync(requests: RequestList, options?: WaitOptions): number {
    const { all, places, wait } = readRequests('Request.waitAny', requests, options);
    if (all.length === 0) return Rank.UNDEFINED;
    const any = new AnyOf('Request.waitAny', all);
    if (!any.advance()) all[0].#progress!.waitSync(any, wait);
    return places[any.found];
  }

  /** Whether all are complete (`MPI_Testall`). */
  static testAll(requests: RequestList): boolean {
    const { all } = readRequests('Request.testAll', requests, undefined);
    return all.filter((request) => !request.test()).length === 0;
  }
}

type RequestList = readonly (Request | null)[];

/** The request of a call that is complete when it is issued. There is nothing to tell one from another. */
export const COMPLETE = new Request();

class AnyOf implements Operation {
  found = -1;
  readonly #call: string;
  readonly #requests: readonly Request[];

  constructor(call: string, requests: readonly Request[]) {
    this.#call = call;
    this.#requests = requests;
  }

  advance(): boolean {
    this.found = this.#requests.findIndex((request) => request.test());
    return this.found >= 0;
  }

  describe(): string {
    return `${this.#call} of ${this.#requests.length} requests`;
  }

  isPolling(): boolean {
    return this.#requests.some((request) => request.isPolling);
  }
}

function readRequests(
  call: string,
  requests: RequestList,
  options: WaitOptions | undefined,
): { all: readonly Request[]; places: readonly number[]; wait: WaitOptions | undefined } {
  const wait = readWait(call, options);
  const all: Request[] = [];
  const places: number[] = [];
  for (const [place, request] of readList(call, 'the list of requests', requests).entries()) {
    if (request === null) continue;
    if (!Request.is(request))
      throw argumentTypeError(`${call}: every entry must be a Request or null, not ${show(request)}`);
    all.push(request);
    places.push(place);
  }
  return { all, places, wait };
}
