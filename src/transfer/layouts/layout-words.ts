/**
 * Layouts as another rank reads them, in 64-bit words: what is regular in a few words whatever the number of its
 * pieces, blocks of one length in a word each, everything else in two words a piece.
 *
 *   DENSE   bytes
 *   NEST    count, stride, first, block, n0, s0, n1, s1
 *   BLOCKS  count, stride, unit, block, and where each begins
 *   LIST    count, stride, where each begins, and then how long each is
 */
import type { Places } from '../../datatype/copy.ts';
import { Runs } from '../../datatype/runs.ts';
import { RunWalk } from './run-walk.ts';

const Form = Object.freeze({ DENSE: 0, NEST: 1, BLOCKS: 2, LIST: 3 });

/** How many words a layout takes. */
export function layoutWords({ runs }: Places): number {
  if (runs === undefined) return 2;
  if (runs.starts === undefined) return 9;
  return runs.lengths === undefined ? 5 + runs.count : 3 + 2 * runs.count;
}

export function encodeLayout(places: Places): Float64Array {
  const { runs, count, stride, bytes } = places;
  if (runs === undefined) return Float64Array.of(Form.DENSE, bytes);
  const words = new Float64Array(layoutWords(places));
  if (runs.starts === undefined) {
    const { first, block, n0, s0, n1, s1 } = runs;
    words.set([Form.NEST, count, stride, first, block, n0, s0, n1, s1]);
  } else if (runs.lengths === undefined) {
    words.set([Form.BLOCKS, count, stride, runs.unit, runs.block]);
    words.set(runs.starts, 5);
  } else {
    words.set([Form.LIST, count, stride]);
    words.set(runs.starts, 3);
    words.set(runs.lengths, 3 + runs.count);
  }
  return words;
}

/** What is decoded keeps nothing of the words. */
export function decodeLayout(words: Float64Array): Places {
  const form = words[0];
  const count = words[1];
  if (form === Form.DENSE) return dense(count);
  const stride = words[2];
  let runs: Runs;
  if (form === Form.NEST) runs = Runs.nest(words[4], words[3], words[5], words[6], words[7], words[8]);
  else if (form === Form.BLOCKS) runs = Runs.blocks(Int32Array.from(words.subarray(5)), words[3], words[4]);
  else {
    const n = (words.length - 3) / 2;
    runs = Runs.list(words.subarray(3, 3 + n), words.subarray(3 + n));
  }
  return { bytes: count * runs.bytes, runs, count, stride };
}

/** A list of the pieces that bytes `skip` … of a layout lie in. */
export function partOf(layout: Places, skip: number, bytes: number): Float64Array {
  const starts: number[] = [];
  const lengths: number[] = [];
  const walk = new RunWalk(layout, skip);
  for (let done = 0; done < bytes && walk.next(bytes - done); done += walk.bytes) {
    starts.push(walk.offset);
    lengths.push(walk.bytes);
  }
  const words = new Float64Array(3 + 2 * starts.length);
  words[0] = Form.LIST;
  words[1] = 1;
  words.set(starts, 3);
  words.set(lengths, 3 + starts.length);
  return words;
}

/** So many bytes, one after the other. */
export function dense(bytes: number): Places {
  return { bytes, runs: undefined, count: 1, stride: 0 };
}

/** How many stretches of consecutive bytes a side has, not counting that some of them may touch. */
export function piecesIn({ runs, count, bytes }: Places): number {
  if (bytes === 0) return 0;
  return runs === undefined ? 1 : runs.count * count;
}
