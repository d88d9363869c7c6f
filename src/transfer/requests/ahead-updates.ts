/**
 * Updates that one request carries out, or several at once: sums and swaps of single words by the device, and what
 * owners do (owner-updates.ts).
 */
import { elementOffsets } from '../../datatype/layout.ts';
import { changesTarget, OpCode } from '../../datatype/op.ts';
import type { Side } from '../../datatype/sides.ts';
import { accumulateElements, type BulkKernels } from '../loads/accumulate.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import type { Stripes } from '../loads/stripes.ts';
import type { OwnerUpdate } from './owner-updates.ts';
import type { RemoteAccess, RemoteWord } from './remote-access.ts';
import { Reply } from './remote-stripes.ts';
import type { Ahead } from './request-tasks.ts';
import { type Arrays, halves, type Operands, refuseGone, refuseGoneOf, store, viewOf } from './update-operands.ts';

/** A sum with one word of 64 bits, or a look at it, by the device: many can be under way at once. */
export function addAhead(remote: RemoteAccess, operands: Operands, word: RemoteWord, op: number): Ahead {
  const { origin, from, result, into } = operands;
  const reply = new Reply();
  return {
    post: () => {
      refuseGone(operands, word.rank);
      const adds = op === OpCode.SUM ? viewOf(origin).getBigInt64(elementOffsets(from)[0], true) : 0n;
      remote.fetchAdd(word, ...halves(adds), reply.take);
    },
    isOver: () => reply.there,
    end() {
      if (result === undefined) return true;
      refuseGone(operands, word.rank);
      store(viewOf(result), elementOffsets(into!)[0], reply);
      return true;
    },
  };
}

/** A compare-and-swap of one. */
export function swapAhead(remote: RemoteAccess, arrays: Arrays, word: RemoteWord): Ahead {
  const reply = new Reply();
  return {
    post: () => {
      refuseGoneOf(arrays, word.rank);
      const [wanted, expected] = [arrays.origin, arrays.compare].map(viewOf);
      remote.compareSwap(
        word,
        expected.getUint32(0, true),
        expected.getUint32(4, true),
        wanted.getUint32(0, true),
        wanted.getUint32(4, true),
        reply.take,
      );
    },
    isOver: () => reply.there,
    end() {
      refuseGoneOf(arrays, word.rank);
      store(viewOf(arrays.result), 0, reply);
      return true;
    },
  };
}

/**
 * An accumulate of consecutive elements by their owner.
 * @param stripes of the copies here, which no other rank sees
 */
export function accumulateByOwner(
  operands: Operands,
  rank: number,
  to: Side,
  op: number,
  stripes: Stripes,
  kernels: BulkKernels | undefined,
): OwnerUpdate {
  const { origin, from, result, into } = operands;
  const combine = (part: RemotePart, at: number, code: number, found?: Uint8Array): void => {
    refuseGone(operands, rank);
    accumulateElements(part, at, to, origin, from, code, found, into, stripes, kernels);
  };
  return {
    op,
    fetches: result !== undefined,
    fill(part, at) {
      if (changesTarget(op)) combine(part, at, OpCode.REPLACE);
    },
    take: (part, at) => combine(part, at, OpCode.NO_OP, result),
  };
}

/** A compare-and-swap of an element by its owner. */
export function swapByOwner(arrays: Arrays, rank: number, size: number): OwnerUpdate {
  return {
    fetches: true,
    fill(part, at) {
      refuseGoneOf(arrays, rank);
      part.u8.set(arrays.origin.subarray(0, size), at);
      part.u8.set(arrays.compare.subarray(0, size), at + size);
    },
    take(part, at) {
      refuseGoneOf(arrays, rank);
      arrays.result.set(part.u8.subarray(at, at + size));
    },
  };
}
