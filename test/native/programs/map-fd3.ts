/** Maps descriptor 3, adds to its first word as often as told, and sets the second. */
import { fstatSync } from 'node:fs';
import { addon } from '../../support/addon.ts';

const words = new Int32Array(addon().memoryMap(3, 0, fstatSync(3).size));
for (let i = 0; i < Number(process.argv[2]); i++) Atomics.add(words, 0, 1);
Atomics.store(words, 1, process.pid);
