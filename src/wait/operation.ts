/**
 * An operation that waits, written once for both forms.
 *
 * `advance` does what can be done now and says whether the operation is complete; it never blocks. The `Sync` form of a
 * call advances in a loop and then sleeps in the kernel, the promise form sleeps on the event loop (see `progress.ts`).
 */
import { argumentRangeError, argumentTypeError, reading, show } from '../errors.ts';
import { refuseUnknown } from '../options.ts';
import { isAborted } from './abort-signals.ts';

/**
 * The types of the DOM, of @types/node or of newer libraries of TypeScript that the package's declarations name: for
 * programs that are compiled without those. Where they are there, these are the same.
 */
declare global {
  interface AbortSignal {}
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
}

export interface Operation {
  advance(): boolean;
  /** What is waited for, for error messages: `barrier of 4 ranks (waiting for rank 2)`. */
  describe(): string;
  /** Called when the wait ends early (deadline, abort, failed rank): leaves nothing behind that could act later. */
  abandon?(): void;
  /**
   * Whether it must be looked at again soon, because no bell rings when it can go on; or after how many milliseconds.
   */
  isPolling?(): boolean | number;
  /** Called now and then when the wait lasts long, some times a second at most. */
  linger?(): void;
}

/** Milliseconds after which an operation must be looked at again even if no bell rings; none waits for ever. */
export function dueOf(operation: Operation | undefined): number {
  const polling = operation?.isPolling?.() ?? false;
  return typeof polling === 'number' ? polling : polling ? 0 : Number.POSITIVE_INFINITY;
}

/**
 * Ends its wait early. Whatever that throws matters less than the reason why the wait ends, and the caller is told that
 * reason.
 */
export function abandonQuietly(operation: Operation): void {
  try {
    operation.abandon?.();
  } catch {
    // See above.
  }
}

/** Written as a generator: `yield` means "nothing more can be done now". Its return value is the operation's result. */
export class GeneratorOperation<T> implements Operation {
  #generator: Generator<void, T>;
  #description: string;
  result!: T;

  constructor(generator: Generator<void, T>, description: string) {
    this.#generator = generator;
    this.#description = description;
  }

  advance(): boolean {
    const step = this.#generator.next();
    if (!step.done) return false;
    this.result = step.value;
    return true;
  }

  describe(): string {
    return this.#description;
  }

  abandon(): void {
    this.#generator.return(undefined as T);
  }
}

/** The last argument of all calls that wait. */
export interface WaitOptions {
  /** Aborts the wait; the call fails with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The timeout in milliseconds, more than 0, after which the call fails with `ERR_RMA_TIMEOUT`; absent: the default of
   * the job; `Infinity`: none.
   */
  readonly timeout?: number | undefined;
}

const WAIT = ['signal', 'timeout'];
const NONE: readonly string[] = [];

/**
 * The options of a call that waits, read once, before the call begins anything: what the caller's object says later, or
 * whether it then throws, does not matter. An option that does not exist is refused: it may be a misspelt deadline.
 * @param others options that the call has besides
 * @param zero what a timeout of 0 means; refused if absent
 */
export function readWait(
  call: string,
  options: WaitOptions | undefined,
  others: readonly string[] = NONE,
  zero?: number,
): WaitOptions | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null) {
    throw argumentTypeError(`${call}: options must be { ${[...others, ...WAIT].join(', ')} }, not ${show(options)}`);
  }
  refuseUnknown(call, 'the options', options, others === NONE ? WAIT : [...others, ...WAIT]);
  const { signal, timeout, isSignal } = reading(call, 'signal and timeout of the options', () => {
    const given = options.timeout;
    const read = { signal: options.signal, timeout: given === 0 ? (zero ?? 0) : given, isSignal: true };
    if (read.signal === undefined) return read;
    read.isSignal = read.signal instanceof AbortSignal;
    if (read.isSignal) isAborted(read.signal);
    return read;
  });
  if (!isSignal) throw argumentTypeError(`${call}: signal must be an AbortSignal, not ${show(signal)}`);
  checkTimeout(call, timeout);
  return { signal, timeout };
}

/** 0 is refused: some take it for "do not wait", some for "no timeout". */
export function checkTimeout(call: string, timeout: unknown): void {
  if (timeout === undefined) return;
  if (typeof timeout !== 'number')
    throw argumentTypeError(`${call}: timeout must be a number of milliseconds, not ${show(timeout)}`);
  if (timeout > 0) return;
  throw argumentRangeError(
    `${call}: timeout must be more than 0 milliseconds, not ${show(timeout)}; ` +
      'leave it out for the default, or pass Infinity for no timeout',
  );
}
