/** Windows of 64 MiB made and freed, `--many=N` of them: how long this rank's heap file is at the end. */
import { fstatSync, readdirSync, readlinkSync } from 'node:fs';
import { init, Window } from 'onesided';
import { argument } from './support/cases.ts';

const WORDS = 2 ** 24;

/** The length of this process's heap file. */
function heapBytes(): number {
  for (const name of readdirSync('/proc/self/fd')) {
    let file: string;
    try {
      file = readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      // The descriptor by which the folder was read.
      continue;
    }
    if (file.startsWith('/memfd:onesided-heap')) return fstatSync(Number(name)).size;
  }
  throw new Error('this rank has no heap file');
}

const many = Number(argument('many') ?? 100);
const world = await init();
const next = (world.rank + 1) % world.size;
let [zero, right] = [true, true];
for (let i = 1; i <= many; i++) {
  const win = await Window.allocate(world, Int32Array, WORDS);
  // One word of each end is enough: the unit tests look at all.
  zero &&= win.local[0] === 0 && win.local[WORDS - 1] === 0;
  await win.fence();
  win.put(Int32Array.of(i), next, 0);
  win.put(Int32Array.of(i), next, WORDS - 1);
  await win.fence();
  right &&= win.local[0] === i && win.local[WORDS - 1] === i;
  await win.free();
}
console.log(JSON.stringify({ zero, right, heapBytes: heapBytes() }));
await world.finalize();
