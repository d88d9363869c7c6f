/** Maps and forgets, and prints how many mappings are left when the garbage collector is through. Needs --expose-gc. */
import { closeSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { addon } from '../../support/addon.ts';

const native = addon();
const mappings = (): number => readFileSync('/proc/self/maps', 'latin1').split('onesided-collect').length - 1;
const fd = native.memoryCreate('onesided-collect');
native.memoryResize(fd, 64 * 4096);
(() => {
  for (let i = 0; i < 64; i++) new Uint8Array(native.memoryMap(fd, i * 4096, 4096))[0] = 1;
})();
const before = mappings();
for (let i = 0; i < 50 && mappings() > 0; i++) {
  globalThis.gc?.();
  await sleep(10);
}
closeSync(fd);
console.log(JSON.stringify({ before, after: mappings() }));
