/** Maps descriptor 3, says so, waits while word 0 is 0, and exits with the result of the wait plus 10. */
import { addon } from '../../support/addon.ts';

const native = addon();
const words = new Int32Array(native.memoryMap(3, 0, 4096));
let result = 0;
// A wait may end early; the word says whether it did.
while (Atomics.load(words, 0) === 0) result = native.futexWait(words, 0, 0, Number.POSITIVE_INFINITY);
process.exit(10 + result);
