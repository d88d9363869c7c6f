/** What test/ranks/robust-calls.ts prints: for each call its error, as `CODE: MESSAGE`, or `none`. */
import { expect } from 'vitest';

export type Outcomes = Readonly<Record<string, string>>;

/**
 * Those that wait for the rank that is gone, whatever the windows are made of. The others may have nothing to ask of
 * it.
 */
const WAITING = [
  ...['barrier', 'barrierSync', 'allreduce', 'allreduceSync', 'receive', 'receiveSync', 'split', 'allocate'],
  ...['fence', 'fenceSync', 'waitNotify', 'waitNotifySync', 'start', 'startSync', 'wait', 'waitSync'],
  ...['free', 'finalize'],
];

export function expectFailures(outcomes: Outcomes, message: RegExp): void {
  for (const [call, outcome] of Object.entries(outcomes)) {
    if (outcome === 'none') expect(WAITING, call).not.toContain(call);
    else {
      expect(outcome, call).toMatch(/^ERR_RMA_RANK_FAILED: /);
      expect(outcome.slice(outcome.indexOf(' ') + 1), call).toMatch(message);
    }
  }
  expect(Object.keys(outcomes)).toEqual(expect.arrayContaining(WAITING));
}
