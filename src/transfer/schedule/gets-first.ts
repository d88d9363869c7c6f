/**
 * Gets before puts, each kind in the order of its calls (dissertation §10.1.2): the origin waits until its gets have
 * brought their data, a round trip, and need not wait behind the data of its puts for the beginning of that.
 */
import { scheduleKind } from './schedule-kind.ts';

export const getsFirst = scheduleKind({
  name: 'gets-first',
  order: (held) => [...held.filter(({ puts }) => !puts), ...held.filter(({ puts }) => puts)],
});
