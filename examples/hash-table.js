// @ts-check
/**
 * A hash table that is spread over all ranks, without locks: one compareAndSwap takes a place for a word. Every rank
 * counts the words of its share of a text, and several ranks meet the same word at the same time.
 *
 *     npx onesided run -n 4 examples/hash-table.js -- 20000
 */
import assert from 'node:assert/strict';
import { init, Op, Window } from 'onesided';

const WORDS = Number(process.argv[2] ?? 20_000);
const VOCABULARY = 400;
const EMPTY = 0n;

const world = await init();
const { rank, size } = world;
/** Places of each rank: twice as many as can be needed, so that one is always free. */
const PLACES = Math.ceil((2 * VOCABULARY) / size);
const keys = await Window.allocate(world, BigUint64Array, PLACES, { name: 'keys' });
const counts = await Window.allocate(world, Int32Array, PLACES, { name: 'counts' });

/** A word of up to eight letters, as a number that is not 0. @param {string} word */
function keyOf(word) {
  let key = EMPTY;
  for (const letter of word) key = (key << 8n) | BigInt(letter.charCodeAt(0));
  return key;
}

/** Where to look for a key first, among all places of all ranks. @param {bigint} key */
const hash = (key) => Number(((key * 0x9e3779b97f4a7c15n) & 0xffff_ffff_ffff_ffffn) >> 32n) % (PLACES * size);

/** The place of a key, which takes a free one if it has none yet. @param {bigint} key */
async function placeOf(key) {
  const before = new BigUint64Array(1);
  for (let place = hash(key); ; place = (place + 1) % (PLACES * size)) {
    const owner = Math.floor(place / PLACES);
    keys.compareAndSwap(BigUint64Array.of(key), BigUint64Array.of(EMPTY), before, owner, place % PLACES);
    await keys.flush(owner);
    // The place was free and is ours now, or another rank took it for the same word.
    if (before[0] === EMPTY || before[0] === key) return place;
  }
}

/** The text: some words are far more frequent than others. @param {number} i */
const wordAt = (i) => `w${Math.floor(VOCABULARY * (((i * 7919) % 1009) / 1009) ** 3)}`;

await keys.lockAll();
await counts.lockAll();
for (let i = rank; i < WORDS; i += size) {
  const place = await placeOf(keyOf(wordAt(i)));
  counts.accumulate(Int32Array.of(1), Math.floor(place / PLACES), place % PLACES, Op.SUM);
}
await counts.unlockAll(); // every count is complete
await keys.unlockAll();
await world.barrier();

// Rank 0 reads the whole table, and counts the words by itself.
if (rank === 0) {
  const table = new Map();
  const allKeys = new BigUint64Array(PLACES * size);
  const allCounts = new Int32Array(PLACES * size);
  await keys.lockAll();
  await counts.lockAll();
  for (let r = 0; r < size; r++) {
    keys.get(allKeys.subarray(r * PLACES, (r + 1) * PLACES), r, 0);
    counts.get(allCounts.subarray(r * PLACES, (r + 1) * PLACES), r, 0);
  }
  await keys.unlockAll();
  await counts.unlockAll();
  allKeys.forEach((key, place) => {
    if (key === EMPTY) return;
    assert.ok(!table.has(key), 'no word has two places');
    table.set(key, allCounts[place]);
  });
  const expected = new Map();
  for (let i = 0; i < WORDS; i++) expected.set(keyOf(wordAt(i)), (expected.get(keyOf(wordAt(i))) ?? 0) + 1);
  assert.deepEqual(table, expected);
  console.log(`${WORDS} words counted by ${size} ranks, ${table.size} different ones`);
}

await keys.free();
await counts.free();
await world.finalize();
