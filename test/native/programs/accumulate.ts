/** A worker that updates the first element of a shared array, 100 times in each of its rounds. */
import { workerData } from 'node:worker_threads';
import { OpCode } from '../../../src/datatype/op.ts';
import { TypeCode } from '../../../src/datatype/type-codes.ts';
import { updateDouble } from '../../../src/transfer/loads/accumulate.ts';
import { Stripes } from '../../../src/transfer/loads/stripes.ts';
import { addon } from '../../support/addon.ts';

const native = addon();
const { target, op, rounds, number, words } = workerData as {
  target: Float64Array;
  op: number;
  rounds: number;
  number: number;
  words: Int32Array;
};
const stripes = new Stripes(words, 0, {
  rank: number - 1,
  schedYield: native.schedYield,
  findFailure: () => undefined,
});
const origin = new Float64Array(100);
const first = new Int32Array(100);
for (let round = 0; round < rounds; round++) {
  for (let i = 0; i < 100; i++) {
    if (op === OpCode.SUM) origin[i] = 1;
    else if (op === OpCode.PROD) origin[i] = i % 2 === 0 ? 2 : 0.5;
    else origin[i] = round * 100 + i + number - 1 + (number === 3 ? 1 : 0);
  }
  // One of them in JavaScript.
  if (number === 2) for (const value of origin) updateDouble(target, 0, 0, op, value, stripes);
  else while (!addAll()) native.schedYield();
}

/**
 * All hundred or none: if the stripe cannot be had for some milliseconds, because its holder does not run, nothing is
 * done.
 */
function addAll(): boolean {
  const { FLOAT64 } = TypeCode;
  const none = undefined;
  return native.accumulateAt(op, FLOAT64, target, 0, first, origin, none, none, none, 100, words, 0, number) === 100;
}
