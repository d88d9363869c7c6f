/**
 * What all processes must do alike in a superstep: register and remove variables in the same order, set the same size
 * of tags, and go on or end. A process that does any of this says so in numbers, and each process compares those with
 * its own. A superstep in which no process does any of it needs no comparison. If two processes differ, every process
 * has one that differs from its own, so all learn of it in the same `sync`.
 */

/** Of one process, in one superstep. Without all of it, the numbers are none. */
export interface Changes {
  readonly ends: boolean;
  /** In bytes; `undefined` if it is not set. */
  readonly tagSize: number | undefined;
  /** How many variables are registered. */
  readonly pushed: number;
  /** Of each of them, as many numbers: bytes, or `NO_VARIABLE`; where others reach it (variables.ts). */
  readonly variables: readonly number[];
  /** The numbers of variables that are removed. */
  readonly popped: readonly number[];
}

export const NO_NUMBERS = new Float64Array(0);
const FIXED = 4;
const UNSET = -1;

export function numbersOf({ ends, tagSize, pushed, variables, popped }: Changes): Float64Array {
  if (!ends && tagSize === undefined && pushed === 0 && popped.length === 0) return NO_NUMBERS;
  const numbers = new Float64Array(FIXED + popped.length + variables.length);
  numbers.set([ends ? 1 : 0, tagSize ?? UNSET, pushed, popped.length]);
  numbers.set(popped, FIXED);
  numbers.set(variables, FIXED + popped.length);
  return numbers;
}

/** What makes two processes differ, in words, or `undefined` if they do not. */
export function difference(mine: Float64Array, theirs: Float64Array, pid: number): string | undefined {
  const [ends, tagSize, pushed, popped] = fixedOf(mine);
  const [theirEnds, theirTagSize, theirPushed, theirPopped] = fixedOf(theirs);
  if (ends !== theirEnds) {
    const [they, me] = ends ? ['sync()', 'end()'] : ['end()', 'sync()'];
    return `process ${pid} called ${they}, this one ${me}; all must have the same number of supersteps`;
  }
  if (pushed !== theirPushed) {
    return (
      `process ${pid} registered ${theirPushed} variables in this superstep, this one ${pushed}; ` +
      'all must register the same ones in the same order (null where a process has none)'
    );
  }
  if (popped !== theirPopped) {
    return (
      `process ${pid} removed ${theirPopped} registrations in this superstep, this one ${popped}; ` +
      'all must remove the same ones in the same order'
    );
  }
  for (let i = 0; i < popped; i++) {
    if (mine[FIXED + i] === theirs[FIXED + i]) continue;
    return (
      `process ${pid} removed another variable than this one (the ${i + 1}. popReg() of the superstep); ` +
      'all must remove the same ones in the same order'
    );
  }
  if (tagSize !== theirTagSize) {
    const size = (bytes: number): string => (bytes === UNSET ? 'none' : `${bytes} bytes`);
    const [its, mine] = [size(theirTagSize), size(tagSize)];
    return `process ${pid} set a tag size of ${its}, this one of ${mine}; all must set the same`;
  }
  return undefined;
}

/** One of the numbers of each variable that is registered, by process: one number where all have the same. */
export function columnOf(all: readonly Float64Array[], column: number): (number | Float64Array)[] {
  const [, , pushed, popped] = fixedOf(all[0]);
  const first = FIXED + popped;
  const stride = pushed === 0 ? 0 : (all[0].length - first) / pushed;
  return Array.from({ length: pushed }, (_, i) => {
    const values = Float64Array.from(all, (numbers) => numbers[first + stride * i + column]);
    return values.every((value) => value === values[0]) ? values[0] : values;
  });
}

function fixedOf(numbers: Float64Array): readonly number[] {
  return numbers.length === 0 ? [0, UNSET, 0, 0] : (numbers.subarray(0, FIXED) as unknown as readonly number[]);
}
