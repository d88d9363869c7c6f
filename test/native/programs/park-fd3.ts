/**
 * Maps descriptor 3 and sleeps on word 0 with a parker. Prints "asleep", then the result of the sleep and the CPU time
 * in microseconds that the sleep took, all threads together.
 */
import { addon } from '../../support/addon.ts';

const native = addon();
const words = new Int32Array(native.memoryMap(3, 0, 4096));
let before = process.cpuUsage();
const parker = new native.Parker((result) => {
  const { user, system } = process.cpuUsage(before);
  console.log(`woken ${result} ${user + system}`);
});
parker.begin(words, 0, 0, Number.POSITIVE_INFINITY);
// Starting up is not counted: the program is quiet by then.
setTimeout(() => {
  before = process.cpuUsage();
  console.log('asleep');
}, 200);
