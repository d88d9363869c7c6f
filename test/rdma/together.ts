/** What the tests of small accesses that go together are written in. */
import { onTestFinished } from 'vitest';
import { WcStatus } from '../../src/verbs/completion-queue.ts';
import { SendFlag } from '../../src/verbs/queue-pair.ts';
import { connect, End, name, pollSuccess, post, write } from '../verbs/conformance/harness.ts';
import { openMembers } from './device.ts';

export const LONG = { timeout: 120_000 };
export const SUCCESS = name(WcStatus.SUCCESS);
export const FLUSHED = name(WcStatus.WR_FLUSH_ERR);
export const PLACES = { maxSendWr: 256, maxInlineData: 64, cqe: 512 };

function pair(): [End, End] {
  const contexts = openMembers(2);
  onTestFinished(() => {
    for (const context of contexts) context.close();
  });
  const [a, b] = contexts.map((context) => new End(context));
  connect(a, b, PLACES);
  return [a, b];
}

interface Write {
  readonly at: number;
  readonly bytes: Uint8Array;
  readonly rkey?: number;
  readonly flags?: number;
}

/** Posts writes by one call, inline where they fit. Request `i` has the number `first + i`. */
export function list(from: End, to: End, writes: readonly Write[], first = 0): void {
  post(from, (qp) => {
    writes.forEach(({ at, bytes, rkey = to.region.rkey, flags = SendFlag.SIGNALED }, i) => {
      qp.wrRdmaWrite(first + i, flags, rkey, to.at(at));
      qp.wrSetInlineData(bytes, 0, bytes.length);
    });
  });
}

export const word = (value: number): Uint8Array => new Uint8Array(Float64Array.of(value).buffer);
export const wordAt = (end: End, at: number): number => new Float64Array(end.memory.buffer, at, 1)[0];

/** A connection that was used once, so that both know each other's keys. */
export async function warm(): Promise<[End, End]> {
  const [a, b] = pair();
  write(a, b, 1, 0, 0, 8);
  await pollSuccess(a.sendCq);
  write(b, a, 1, 0, 0, 8);
  await pollSuccess(b.sendCq);
  return [a, b];
}
