/**
 * Writes a map until it is stopped: a worker, or a process that has the map's memory as descriptor 3. It writes the
 * even keys or the odd ones, as its place is; each value has the next sequence number.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { randomBelow } from '../../../support/random-below.ts';
import { checkedValue, openMap } from '../support.ts';

export interface WriterData {
  readonly memory: ArrayBufferLike;
  readonly dead: Int32Array;
  readonly place: number;
  readonly seed: number;
  readonly bytes: number;
  readonly keys: number;
  /** The first sequence number. */
  readonly sequence: number;
  /** Keys below this one are set, and not deleted. Default: 0. */
  readonly kept?: number;
  /** The last sequence number of each key that was set, stored when the call has returned. */
  readonly acknowledged?: Int32Array;
  /** The writer stops inside `update` until this word is not 0; without it, it writes. */
  readonly gate?: Int32Array;
}

async function fromArguments(): Promise<WriterData> {
  const { loadNative } = await import('../../../../src/native.ts');
  const [bytes, mapped, place, seed, keys, kept, sequence] = process.argv.slice(2).map(Number);
  const memory = loadNative()!.memoryMap(3, 0, mapped);
  const dead = new Int32Array(memory, mapped - 256, 64);
  const acknowledged = new Int32Array(memory, mapped - 256 - 4 * keys, keys);
  return { memory, dead, place, seed, bytes, keys, kept, sequence, acknowledged };
}

const data = (workerData as WriterData | undefined) ?? (await fromArguments());
const { memory, dead, place, seed, bytes, keys, kept = 0, gate, acknowledged } = data;
const { map } = openMap<Uint8Array>(memory, place, dead, { bytes, codec: 'bytes' });
const below = randomBelow(seed);
const say = (word: string): void => {
  if (parentPort !== null) parentPort.postMessage(word);
  else console.log(word);
};

if (gate !== undefined) {
  map.update('key 0', () => {
    say('inside');
    Atomics.wait(gate, 0, 0);
    return checkedValue(0, data.sequence, 10);
  });
  say('done');
} else {
  say('writing');
  for (let sequence = data.sequence; ; sequence++) {
    const key = 2 * below(keys >>> 1) + (place & 1);
    const size = below(50) === 0 ? 2 + below(2000) : below(300);
    const value = checkedValue(key, sequence, Math.min(size, map.statistics().longest - 40));
    switch (below(12)) {
      case 0:
        if (key >= kept) map.delete(`key ${key}`);
        break;
      case 1:
        map.update(`key ${key}`, () => value);
        break;
      case 2:
        if (kept === 0 && below(200) === 0) map.clear();
        break;
      default:
        map.set(`key ${key}`, value);
        if (acknowledged !== undefined) Atomics.store(acknowledged, key, sequence);
    }
  }
}
