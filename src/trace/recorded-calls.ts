/**
 * Recording methods: an object of a traced job gets its own `fence`, `lock`, … that record a span around the class's.
 * Objects of other jobs are as they were, and the class's methods do not know of it.
 */
import type { Recorder, SpanDetails } from './recorder.ts';

/** What is recorded about a method besides its name. */
export interface CallRecord {
  /** From the arguments, before the call. */
  details?(args: readonly unknown[]): SpanDetails;
  /** Before the call is made. */
  before?(args: readonly unknown[]): void;
  /** Once it has succeeded, after its end was recorded. */
  after?(args: readonly unknown[]): void;
  /** It is called again and again until it gives true: only that is recorded. */
  readonly polls?: boolean;
}

type Method = (...args: unknown[]) => unknown;

/**
 * Replaces methods of one object, and their `…Sync` twins, by ones that record.
 * @param done the promise that stands for "nothing was waited for"
 */
export function recordCalls(
  object: object,
  recorder: Recorder,
  scope: number,
  calls: Readonly<Record<string, CallRecord>>,
  done: Promise<void>,
): void {
  for (const [name, record] of Object.entries(calls)) {
    for (const form of [name, `${name}Sync`]) {
      const original = (object as Record<string, Method | undefined>)[form];
      if (original === undefined) continue;
      const method = record.polls
        ? polling(object, recorder, name, scope, original, record)
        : recording(object, recorder, name, scope, original, record, done);
      override(object, form, method);
    }
  }
}

/** Gives an object a method of its own. */
export function override(object: object, name: string, method: Method): void {
  Object.defineProperty(object, name, { value: method, configurable: true, writable: true });
}

function recording(
  object: object,
  recorder: Recorder,
  name: string,
  scope: number,
  original: Method,
  { details, before, after }: CallRecord,
  done: Promise<void>,
): Method {
  return (...args) => {
    before?.(args);
    const span = recorder.begin('call', name, { scope, ...details?.(args) });
    const succeeded = (): void => {
      recorder.end(span);
      after?.(args);
    };
    let result: unknown;
    try {
      result = original.apply(object, args);
    } catch (error) {
      recorder.end(span, error);
      throw error;
    }
    if (!(result instanceof Promise) || result === done) {
      succeeded();
      return result;
    }
    return result.then(
      (value: unknown) => {
        succeeded();
        return value;
      },
      (error: unknown) => {
        recorder.end(span, error);
        throw error;
      },
    );
  };
}

function polling(
  object: object,
  recorder: Recorder,
  name: string,
  scope: number,
  original: Method,
  { details, after }: CallRecord,
): Method {
  return (...args) => {
    const since = recorder.now();
    const result = original.apply(object, args);
    if (result === true) {
      recorder.end(recorder.begin('call', name, { scope, since, ...details?.(args) }));
      after?.(args);
    }
    return result;
  };
}
