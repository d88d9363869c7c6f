/**
 * A window whose accesses are told to the analysis of races. It is the log of accesses of its window
 * (window/epochs/accesses.ts): what it is told was checked, and has its layouts, whatever call it came by. A few calls
 * are watched themselves: those that say where an epoch was opened, and those that no log is told of.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { forEachRun } from '../../datatype/copy.ts';
import { Op } from '../../datatype/op.ts';
import type { Side } from '../../datatype/sides.ts';
import { bufferOf, byteOffsetOf } from '../../intrinsics.ts';
import { LockBit } from '../../sync/lock/lock-scheme.ts';
import { DONE } from '../../wait/progress.ts';
import type { WindowParts } from '../../window/creation/window-parts.ts';
import type { Accesses, AccessKind } from '../../window/epochs/accesses.ts';
import { OpKind, RaceEvent } from '../race-events.ts';
import { programSite } from './program-site.ts';
import type { RaceTeller } from './race-teller.ts';

const KINDS = { put: OpKind.PUT, get: OpKind.GET, accumulate: OpKind.UPDATE } as const;
type Method = (...args: unknown[]) => unknown;
type Methods = Record<string, Method | undefined>;

/** Told before any other rank can access the window. */
export function tellWindow(watch: RaceTeller, { trace: key, local, name, attachments }: WindowParts): void {
  const dynamic = attachments === undefined ? 0 : 1;
  const [title, ranks] = [watch.text(name), watch.text(communicatorOf(key))];
  const memory = dynamic === 1 || local.byteLength === 0 ? 0 : watch.memoryOf(bufferOf(local));
  watch
    .begin(key)
    .add(title)
    .add(ranks)
    .add(memory)
    .add(byteOffsetOf(local))
    .add(memory === 0 ? 0 : local.byteLength)
    .add(dynamic)
    .tell(RaceEvent.WINDOW);
}

interface OpenEpoch {
  readonly kind: string;
  readonly site: string;
  number: number;
}

export class WindowWatch implements Accesses {
  calls = 0;
  /** Nothing is delivered later than it is complete. */
  readonly buffers = undefined;
  readonly #watch: RaceTeller;
  readonly #parts: WindowParts;
  readonly #key: string;
  readonly #forget: (key: string) => void;
  readonly #locks = new Map<number, OpenEpoch>();
  #all: OpenEpoch | undefined;
  #started: OpenEpoch | undefined;
  #fence: OpenEpoch | undefined;
  /** The call that an operation is a part of, if it has another name. */
  #call: string | undefined;
  #isFreed = false;

  constructor(watch: RaceTeller, parts: WindowParts, forget: (key: string) => void) {
    this.#forget = forget;
    this.#watch = watch;
    this.#parts = parts;
    this.#key = parts.trace;
  }

  /** Operations are always complete some time; flushes must come here to say so. */
  get pending(): boolean {
    return !this.#isFreed;
  }

  // ---- accesses -----------------------------------------------------------------------------------------------------

  note(
    call: string,
    kind: AccessKind,
    reads: boolean,
    _where: string,
    target: number,
    at: number,
    side: Side,
    op: Op | undefined,
  ): void {
    this.calls++;
    const watch = this.#watch;
    const epoch = this.#epochOf(target);
    const name = this.#call === undefined ? call : this.#call === 'aggregate' ? `aggregate ${call}` : this.#call;
    const [line, title] = [watch.text(programSite()), watch.text(name)];
    watch
      .begin(this.#key)
      .add(target)
      .add(KINDS[kind])
      .add(reads ? 1 : 0)
      .add(side.base)
      .add(side.elementSize);
    watch.add(this.calls).add(line).add(title).add(epoch).add(this.#meetsOnly(op));
    forEachRun(side, (offset, bytes) => void watch.add(at + offset).add(at + offset + bytes));
    watch.tell(RaceEvent.OPERATION);
  }

  /**
   * With which operation alone this one may meet on an element (hint `accumulate_ops`): its own. −1: with all. MPI does
   * not say what a compare-and-swap is, so it meets all.
   */
  #meetsOnly(op: Op | undefined): number {
    if (op === undefined || (op === Op.NO_OP && this.#parts.hints.accumulate_ops !== 'same_op')) return -1;
    return op.code;
  }

  used(name: string, _target: number, array: TypedArray, side: Side, writes: boolean): void {
    const watch = this.#watch;
    const memory = watch.memoryOf(bufferOf(array));
    const title = watch.text(name);
    watch
      .begin(this.#key)
      .add(this.calls)
      .add(memory)
      .add(writes ? 1 : 0)
      .add(title);
    watch.addRuns(array, side).tell(RaceEvent.USE);
  }

  #completed(target: number | undefined, after: number, to: number, remote: boolean): void {
    const watch = this.#watch.begin(this.#key);
    watch
      .add(target ?? -1)
      .add(after)
      .add(to)
      .add(remote ? 1 : 0)
      .tell(RaceEvent.COMPLETED);
  }

  completed(target: number | undefined): void {
    this.#completed(target, 0, Number.POSITIVE_INFINITY, true);
  }

  completedHere(target: number | undefined, calls?: readonly [after: number, to: number]): void {
    this.#completed(target, calls?.[0] ?? 0, calls?.[1] ?? Number.POSITIVE_INFINITY, false);
  }

  completedCalls(target: number, after: number, to: number): void {
    this.#completed(target, after, to, true);
  }

  fenceBegins(): void {
    this.#watch.begin(this.#key).tell(RaceEvent.FENCE_BEGUN);
  }

  fenceEnds(): void {
    this.#watch.begin(this.#key).tell(RaceEvent.FENCE_ENDED);
  }

  accessEnds(): void {
    this.#watch.begin(this.#key).tell(RaceEvent.COMPLETE_BEGUN);
    this.#started = undefined;
  }

  // ---- epochs -------------------------------------------------------------------------------------------------------

  #epochOf(target: number): number {
    const epoch = this.#locks.get(target) ?? this.#all ?? this.#started ?? this.#fence;
    if (epoch === undefined) return 0;
    if (epoch.number === 0) epoch.number = this.#watch.epoch(epoch.kind, epoch.site);
    return epoch.number;
  }

  /** Watches the calls of a window that the log is not told of. */
  watch(window: object): void {
    const methods = window as Methods;
    const opened = (kind: string, set: (epoch: OpenEpoch | undefined, args: readonly unknown[]) => void): Around => ({
      before: () => ({ kind, site: programSite(), number: 0 }),
      after: (epoch, args) => set(epoch as OpenEpoch, args),
    });
    around(
      methods,
      'fence',
      opened('fence', (epoch) => (this.#fence = epoch)),
    );
    around(
      methods,
      'start',
      opened('start', (epoch) => (this.#started = epoch)),
    );
    around(
      methods,
      'lockAll',
      opened('lockAll', (epoch) => (this.#all = epoch)),
    );
    around(
      methods,
      'lock',
      opened('lock', (epoch, [target, type]) => {
        const kind = type === LockBit.EXCLUSIVE ? 'exclusive lock' : 'shared lock';
        this.#locks.set(target as number, { ...epoch!, kind });
      }),
    );
    around(methods, 'unlock', { after: (_, [target]) => void this.#locks.delete(target as number) });
    around(methods, 'unlockAll', { after: () => (this.#all = undefined) });
    for (const name of ['rput', 'rget', 'raccumulate', 'rgetAccumulate']) this.#inside(methods, name, name);
    this.#watchNotifications(methods);
    this.#watchMemory(methods);
    const { aggregate } = methods;
    replace(methods, 'aggregate', (...args) => {
      const handle = aggregate!.apply(window, args) as Methods;
      for (const name of ['put', 'get', 'accumulate']) this.#inside(handle, name, 'aggregate');
      return handle;
    });
    around(methods, 'free', {
      after: () => {
        if (this.#isFreed) return;
        this.#isFreed = true;
        this.#watch.begin(this.#key).tell(RaceEvent.FREED);
        this.#forget(this.#key);
      },
    });
  }

  #inside(methods: Methods, name: string, call: string): void {
    const original = methods[name]!;
    replace(methods, name, (...args) => {
      const before = this.#call;
      this.#call = call;
      try {
        return original.apply(methods, args);
      } finally {
        this.#call = before;
      }
    });
  }

  #watchNotifications(methods: Methods): void {
    const { put, putNotify } = methods;
    let notified = -1;
    // `putNotify` puts, and then notifies: the target may see that before the call returns.
    replace(methods, 'put', (...args) => {
      const result = put!.apply(methods, args);
      if (notified >= 0) this.#watch.begin(this.#key).add(notified).tell(RaceEvent.NOTIFIED);
      return result;
    });
    replace(methods, 'putNotify', (...args) => {
      notified = args[1] as number;
      try {
        return putNotify!.apply(methods, args);
      } finally {
        notified = -1;
      }
    });
    const took: Around = { after: () => this.#watch.begin(this.#key).tell(RaceEvent.TOOK) };
    around(methods, 'waitNotify', took);
    around(methods, 'testNotify', { ...took, isPolling: true });
  }

  #watchMemory(methods: Methods): void {
    const { sharedQuery, attach, detach } = methods;
    const { targets, comm } = this.#parts;
    replace(methods, 'sharedQuery', (...args) => {
      const view = sharedQuery!.apply(methods, args) as TypedArray;
      let owner = args[0] as number;
      // Rank.NULL: the first part that is not empty.
      if (owner < 0 || owner >= comm.size)
        owner =
          Array.from({ length: comm.size }, (_, rank) => rank).find((rank) => targets.of(rank)?.byteLength !== 0) ?? 0;
      if (view.byteLength === 0) return view;
      const low = byteOffsetOf(view);
      if (owner === comm.rank && bufferOf(view) === bufferOf(this.#parts.local)) return view;
      this.#watch.share(bufferOf(view), { low, high: low + view.byteLength, window: this.#key, owner, at: 0 });
      return view;
    });
    replace(methods, 'attach', (...args) => {
      const address = attach!.apply(methods, args) as number;
      const view = viewOf(args[0]);
      const memory = this.#watch.memoryOf(view.buffer);
      const watch = this.#watch.begin(this.#key).add(address).add(view.byteLength).add(memory);
      watch.add(view.byteOffset).tell(RaceEvent.ATTACH);
      this.#attached.push({ ...viewPlace(view), address });
      return address;
    });
    replace(methods, 'detach', (...args) => {
      const result = detach!.apply(methods, args);
      const place = viewPlace(viewOf(args[0]));
      const at = this.#attached.findIndex((one) => one.memory === place.memory && one.low === place.low);
      if (at < 0) return result;
      const [{ address, bytes }] = this.#attached.splice(at, 1);
      this.#watch.begin(this.#key).add(address).add(bytes).tell(RaceEvent.DETACH);
      return result;
    });
  }

  readonly #attached: { memory: ArrayBufferLike; low: number; bytes: number; address: number }[] = [];
}

function viewOf(memory: unknown): Uint8Array {
  if (!ArrayBuffer.isView(memory)) return new Uint8Array(memory as ArrayBuffer);
  return new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength);
}

function viewPlace(view: Uint8Array): { memory: ArrayBufferLike; low: number; bytes: number } {
  return { memory: view.buffer, low: view.byteOffset, bytes: view.byteLength };
}

/** The key of the communicator that a window was made on: what `Communicator.traceId` begins with. */
function communicatorOf(key: string): string {
  return key.slice(0, key.lastIndexOf('.'));
}

/** What is done around a call, in both of its forms. */
export interface Around {
  before?(args: readonly unknown[]): unknown;
  /** Once it has succeeded. */
  after(before: unknown, args: readonly unknown[]): void;
  /** It is called again and again until it gives true. */
  readonly isPolling?: boolean;
}

function around(methods: Methods, name: string, { before, after, isPolling = false }: Around): void {
  for (const form of [name, `${name}Sync`]) {
    const original = methods[form];
    if (original === undefined) continue;
    replace(methods, form, (...args) => {
      const began = before?.(args);
      const result = original.apply(methods, args);
      if (!(result instanceof Promise) || result === DONE) {
        if (!isPolling || result === true) after(began, args);
        return result;
      }
      return result.then((value: unknown) => {
        after(began, args);
        return value;
      });
    });
  }
}

export function replace(methods: object, name: string, method: Method): void {
  Object.defineProperty(methods, name, { value: method, configurable: true, writable: true });
}
