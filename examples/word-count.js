// @ts-check
/**
 * A bulk-synchronous program that counts how often each word occurs in a text. Every process counts the words of its
 * part, and sends each word with its count to the process that owns the word. This takes two supersteps, and no locks.
 * The largest counts then go to process 0.
 *
 *     npx onesided run -n 4 examples/word-count.js
 */
import assert from 'node:assert/strict';
import { run } from 'onesided/bsp';

const WORDS = ['put', 'get', 'sync', 'send', 'move', 'process', 'superstep'];
/** Word i of the text, which is made up. */
const wordAt = (/** @type {number} */ i) => WORDS[(Math.imul(i, 0x9e3779b1) >>> 16) % WORDS.length];
const LENGTH = 10_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The process that owns a word: all processes agree on it. */
function ownerOf(/** @type {string} */ word, /** @type {number} */ nprocs) {
  let hash = 0;
  for (const letter of word) hash = (31 * hash + letter.charCodeAt(0)) % 65_521;
  return hash % nprocs;
}

await run(async (bsp) => {
  const { pid, nprocs } = bsp;
  bsp.setTagsize(4); // a message's tag is a count, its payload the word
  await bsp.sync();

  /** @type {Map<string, number>} */
  const own = new Map();
  const [from, to] = [Math.floor((LENGTH * pid) / nprocs), Math.floor((LENGTH * (pid + 1)) / nprocs)];
  for (let i = from; i < to; i++) own.set(wordAt(i), (own.get(wordAt(i)) ?? 0) + 1);
  for (const [word, count] of own) bsp.send(ownerOf(word, nprocs), Int32Array.of(count), encoder.encode(word));
  await bsp.sync();

  /** @type {Map<string, number>} */
  const sums = new Map();
  const count = new Int32Array(1);
  while (bsp.getTag(count) >= 0) {
    const word = decoder.decode(bsp.hpmove()?.payload);
    sums.set(word, (sums.get(word) ?? 0) + count[0]);
  }
  for (const [word, sum] of sums) bsp.send(0, Int32Array.of(sum), encoder.encode(word));
  await bsp.sync();

  if (pid !== 0) return;
  /** @type {[string, number][]} */
  const all = [];
  while (bsp.getTag(count) >= 0) all.push([decoder.decode(bsp.hpmove()?.payload), count[0]]);
  all.sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));

  let total = 0;
  for (const [word, sum] of all) {
    const expected = Array.from({ length: LENGTH }, (_, i) => wordAt(i)).filter((one) => one === word).length;
    assert.equal(sum, expected, word);
    total += sum;
  }
  assert.equal(total, LENGTH);
  console.log(`${LENGTH} words on ${nprocs} processes: ${all.map(([word, sum]) => `${word} ${sum}`).join(', ')}`);
});
