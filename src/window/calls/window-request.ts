/** Requests: what the calls that begin with `r` return (MPI 4.1, 12.3.5). */
import { Rank } from '../../collective/group.ts';
import { argumentTypeError, readList, show } from '../../errors.ts';
import { Members } from '../../job/members.ts';
import { type Operation, readWait, type WaitOptions } from '../../wait/operation.ts';
import { DONE } from '../../wait/progress.ts';

/**
 * A communication call that can be waited for separately: the result of `rput`, `rget`, `raccumulate` and
 * `rgetAccumulate`.
 *
 * A request is complete when its origin may be reused and its result holds the data. For put and accumulate this says
 * nothing about the target; use `waitRemote`, `testRemote` or a flush for that.
 */
export class Request {
  #members: Members | undefined;
  /** Once complete, it stays so; several may wait for it. */
  #operation: Operation | undefined;

  /** Is told that the program knows of the completion: at the target, too, or only here. */
  readonly #told: ((remote: boolean) => void) | undefined;

  /** Makes what the remote forms wait for, where completion here does not say that the data are there. */
  #makePlaced: (() => Operation) | undefined;
  #placed: Operation | undefined;

  /** @internal Without an operation it is complete from the start, here and at the target. */
  constructor(
    members?: Members,
    operation?: Operation,
    told?: (remote: boolean) => void,
    makePlaced?: () => Operation,
  ) {
    this.#members = members;
    this.#operation = operation;
    this.#told = told;
    this.#makePlaced = makePlaced;
  }

  /** What to wait for, if anything. */
  #awaited(remote: boolean): Operation | undefined {
    if (!remote || this.#makePlaced === undefined) return this.#operation;
    this.#placed ??= this.#makePlaced();
    return this.#placed;
  }

  /** That is complete. */
  #ended(remote: boolean): void {
    this.#operation = undefined;
    if (remote) this.#makePlaced = undefined;
    this.#told?.(remote);
  }

  /** @internal Whether `value` is a request; runs no code of the caller's. */
  static is(value: unknown): value is Request {
    return typeof value === 'object' && value !== null && #operation in value;
  }

  /**
   * Waits until the request is complete at this rank. After a timeout or an abort the request is still in progress:
   * wait again. Cost: none if operations are complete when issued; otherwise the wait for those that were issued to the
   * target before, and for this one. Errors: `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`; on a device, `ERR_VERBS` (it has
   * failed, or the connection was lost).
   */
  wait(options?: WaitOptions): Promise<void> {
    return this.#wait(options, false);
  }

  #wait(options: WaitOptions | undefined, remote: boolean): Promise<void> {
    try {
      const wait = readWait('wait', options);
      const operation = this.#awaited(remote);
      const done = operation === undefined ? DONE : this.#members!.wait(operation, wait);
      if (done !== DONE) return done.then(() => this.#ended(remote));
      this.#ended(remote);
      return done;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Blocks until the request is complete at this rank; otherwise like `wait`. */
  waitSync(options?: WaitOptions): void {
    this.#waitSync(options, false);
  }

  #waitSync(options: WaitOptions | undefined, remote: boolean): void {
    const wait = readWait('wait', options);
    const operation = this.#awaited(remote);
    if (operation !== undefined) this.#members!.waitSync(operation, wait);
    this.#ended(remote);
  }

  /** Returns whether the request is complete at this rank. Never waits. Errors: as `wait`, except `ERR_RMA_TIMEOUT`. */
  test(): boolean {
    return this.#test(false);
  }

  #test(remote: boolean): boolean {
    const operation = this.#awaited(remote);
    if (operation !== undefined && !this.#members!.look(operation)) return false;
    this.#ended(remote);
    return true;
  }

  /** @internal What it stands for, while that is not complete. */
  get awaited(): Operation | undefined {
    return this.#operation;
  }

  /** @internal `Operation.isPolling` of what it stands for. */
  get isPolling(): boolean {
    return this.#operation?.isPolling?.() === true;
  }

  /**
   * Waits until the request is complete at this rank and at the target: any rank that may load or get the data there
   * sees it. Where completion at this rank does not say that (iWARP), it costs what a flush of the target does. Errors:
   * as `wait`.
   */
  waitRemote(options?: WaitOptions): Promise<void> {
    return this.#wait(options, true);
  }

  /** Blocks until the request is complete at the target; otherwise like `waitRemote`. */
  waitRemoteSync(options?: WaitOptions): void {
    this.#waitSync(options, true);
  }

  /** Returns whether the request is complete at this rank and at the target. Never waits. Errors: as `test`. */
  testRemote(): boolean {
    return this.#test(true);
  }

  /**
   * Waits until all requests are complete (`MPI_Waitall`). In this and the other lists, `null` stands for no request
   * (`MPI_REQUEST_NULL`). Errors: as `wait`.
   */
  static async waitAll(requests: RequestList, options?: WaitOptions): Promise<void> {
    const { all, wait } = readRequests('Request.waitAll', requests, options);
    await Promise.all(all.map((request) => request.wait(wait)));
  }

  /** Blocks until all requests are complete; otherwise like `Request.waitAll`. */
  static waitAllSync(requests: RequestList, options?: WaitOptions): void {
    const { all, wait } = readRequests('Request.waitAll', requests, options);
    if (all.length === 0) return;
    const every = new Several('Request.waitAll', all, all.length);
    if (!every.advance()) Request.#membersOf(all).waitSync(every, wait);
  }

  /**
   * Waits until one of the requests is complete (`MPI_Waitany`). The list does not change: replace the completed
   * request by `null` before you wait for the others. Errors: as `wait`.
   * @returns the index of the completed request, or `Rank.UNDEFINED` if the list contains no request
   */
  static async waitAny(requests: RequestList, options?: WaitOptions): Promise<number> {
    const { all, places, wait } = readRequests('Request.waitAny', requests, options);
    if (all.length === 0) return Rank.UNDEFINED;
    const any = new Several('Request.waitAny', all, 1);
    if (!any.advance()) await Request.#membersOf(all).wait(any, wait);
    return places[any.found];
  }

  /** Blocks until one of the requests is complete; otherwise like `Request.waitAny`. */
  static waitAnySync(requests: RequestList, options?: WaitOptions): number {
    const { all, places, wait } = readRequests('Request.waitAny', requests, options);
    if (all.length === 0) return Rank.UNDEFINED;
    const any = new Several('Request.waitAny', all, 1);
    if (!any.advance()) Request.#membersOf(all).waitSync(any, wait);
    return places[any.found];
  }

  /** Those that requests wait for which are not all complete. */
  static #membersOf(requests: readonly Request[]): Members {
    const all = new Set(requests.flatMap((request) => request.#members ?? []));
    return all.size === 1 ? [...all][0] : Members.together([...all]);
  }

  /** Returns whether all requests are complete (`MPI_Testall`). Never waits. */
  static testAll(requests: RequestList): boolean {
    const { all } = readRequests('Request.testAll', requests, undefined);
    return all.filter((request) => !request.test()).length === 0;
  }
}

type RequestList = readonly (Request | null)[];

/** The request of a call that is complete when it is issued. There is nothing to tell one from another. */
export const COMPLETE = new Request();

/** One of some requests is complete, or all are. */
class Several implements Operation {
  /** The first that was found to be complete. */
  found = -1;
  readonly #call: string;
  readonly #requests: readonly Request[];
  readonly #enough: number;

  constructor(call: string, requests: readonly Request[], enough: number) {
    this.#call = call;
    this.#requests = requests;
    this.#enough = enough;
  }

  advance(): boolean {
    if (this.#enough > 1) return this.#requests.filter((request) => !request.test()).length === 0;
    this.found = this.#requests.findIndex((request) => request.test());
    return this.found >= 0;
  }

  describe(): string {
    return `${this.#call} of ${this.#requests.length} requests`;
  }

  abandon(): void {
    for (const { awaited } of this.#requests) awaited?.abandon?.();
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
