/** What a rank does for others in calls of a window that do not wait. */
import { expect, test } from 'vitest';
import { nowAndThen } from '../../src/window/creation/now-and-then.ts';

test('one call in sixteen serves all that serves, in its order; the others serve nothing', () => {
  const served: string[] = [];
  const serve = nowAndThen([() => served.push('locks'), undefined, () => served.push('layouts')])!;
  for (let call = 1; call <= 48; call++) {
    serve();
    expect(served.length, `call ${call}`).toBe(2 * Math.floor(call / 16));
  }
  expect(served.slice(0, 2)).toEqual(['locks', 'layouts']);
});

test('where nothing serves, there is nothing to call', () => {
  expect(nowAndThen([undefined, undefined])).toBeUndefined();
});
