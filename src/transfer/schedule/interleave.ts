/**
 * Puts and gets in turns, each kind in the order of its calls, beginning with the kind of the first call (dissertation
 * §10.1.1): data of puts leaves while data of gets comes, so both directions of the link are in use. What one kind has
 * more of than the other comes last.
 */
import { type Schedulable, scheduleKind } from './schedule-kind.ts';

function inTurns<T extends Schedulable>(held: readonly T[]): readonly T[] {
  const first = held.filter(({ puts }) => puts === held[0].puts);
  const second = held.filter(({ puts }) => puts !== held[0].puts);
  const turns = Math.min(first.length, second.length);
  return [
    ...first.slice(0, turns).flatMap((operation, i) => [operation, second[i]]),
    ...first.slice(turns),
    ...second.slice(turns),
  ];
}

export const interleave = scheduleKind({ name: 'interleave', order: inTurns });
