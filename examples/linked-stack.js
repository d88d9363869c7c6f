// @ts-check
/**
 * A linked list that all ranks build at once, without a lock. The head is one word of rank 0, and every node is in the
 * memory of the rank that made it. compareAndSwap moves the head unless another rank has moved it meanwhile.
 *
 *     npx onesided run -n 4 examples/linked-stack.js
 */
import assert from 'node:assert/strict';
import { init, Op, Window } from 'onesided';

const NODES = 200;
const EMPTY = -1n;

const world = await init();
const { rank, size } = world;
// Word 0: the head (used at rank 0 only). Then, for each node of this rank, its value and the number of the next node.
const win = await Window.allocate(world, BigInt64Array, 1 + 2 * NODES);
const head = new BigInt64Array(1);
const expected = new BigInt64Array(1);
const unused = new BigInt64Array(1);
const node = new BigInt64Array(2);
let retries = 0;

await win.lockAll();
win.local[0] = EMPTY;
win.sync(); // after this, other ranks can see the store into my part
await world.barrier(); // no rank begins before rank 0 has set the head

for (let i = 0; i < NODES; i++) {
  // A node's number encodes its rank and its place there.
  const number = BigInt64Array.of(BigInt(rank * NODES + i));
  node[0] = BigInt(rank * 1000 + i);
  win.fetchAndOp(unused, expected, 0, 0, Op.NO_OP); // an atomic get, because other ranks change the word meanwhile
  await win.flush(0);
  for (;;) {
    node[1] = expected[0];
    win.put(node, rank, 1 + 2 * i);
    await win.flush(rank); // the node is complete before any rank can find it
    win.compareAndSwap(number, expected, head, 0, 0);
    await win.flush(0);
    if (head[0] === expected[0]) break;
    expected[0] = head[0]; // another rank was faster: try again from the current head
    retries++;
  }
}
await world.barrier();

// Every rank walks through the whole list.
win.get(head, 0, 0);
await win.flush(0);
const seen = new Set();
for (let at = head[0]; at !== EMPTY; at = node[1]) {
  const owner = Math.floor(Number(at) / NODES);
  win.get(node, owner, 1 + 2 * (Number(at) % NODES));
  await win.flush(owner);
  seen.add(node[0]);
}
await win.unlockAll();
assert.equal(seen.size, NODES * size);
console.log(`rank ${rank} pushed ${NODES} nodes (${retries} retries) and found ${seen.size}`);

await win.free();
await world.finalize();
