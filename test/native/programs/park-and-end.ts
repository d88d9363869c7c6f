/** Ends in the manner named by its argument while a sleep is pending, or while a parker exists without one. */
import { addon } from '../../support/addon.ts';

const native = addon();
const words = new Int32Array(new SharedArrayBuffer(64));
const parker = new native.Parker(() => console.log('woken'));
switch (process.argv[2]) {
  case 'exit':
    parker.begin(words, 0, 0, Number.POSITIVE_INFINITY);
    setTimeout(() => process.exit(7), 50);
    break;
  case 'throw':
    parker.begin(words, 0, 0, Number.POSITIVE_INFINITY);
    setTimeout(() => {
      throw new Error('on purpose');
    }, 50);
    break;
  case 'idle':
    parker.begin(words, 0, 0, Number.POSITIVE_INFINITY);
    setTimeout(() => console.log(`interrupted ${parker.interrupt()}`), 50);
    break;
  case 'timeout':
    parker.begin(words, 0, 0, 50);
    break;
  default:
    throw new Error(`unknown manner: ${process.argv[2]}`);
}
