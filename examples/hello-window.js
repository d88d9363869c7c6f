// @ts-check
/**
 * Every rank writes a greeting into the memory of the next one. No rank calls a receive: after the fence, the greeting
 * is there.
 *
 *     npx onesided run -n 4 examples/hello-window.js
 */
import assert from 'node:assert/strict';
import { init, Window } from 'onesided';

const world = await init();
const { rank, size } = world;

// Collective: every rank contributes 64 bytes that the others may access.
const win = await Window.allocate(world, Uint8Array, 64);
const next = (rank + 1) % size;
const previous = (rank + size - 1) % size;

await win.fence(); // from now on, every rank may access every part
win.put(new TextEncoder().encode(`hello from rank ${rank}`), next, 0);
await win.fence(); // all operations issued before are complete, at all ranks

const text = new TextDecoder().decode(win.local).replace(/\0+$/, '');
console.log(`rank ${rank} found "${text}"`);
assert.equal(text, `hello from rank ${previous}`);

await win.free();
await world.finalize();
