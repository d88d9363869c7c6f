/** Memory of the program's own: the ways by which the other ranks can reach it. */
import { types } from 'node:util';
import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import { RmaError } from '../../errors.ts';
import { isResizable } from '../../intrinsics.ts';
import { loadNative, type Native } from '../../native.ts';
import { fenceNamed } from '../../sync/fence/fence-kinds.ts';
import { type Share, servesMemory, shareMemory } from '../../transfer/served/user-memory.ts';
import type { Memory } from '../../verbs/memory.ts';
import type { Offer } from './offer.ts';
import type { Hints } from './window-info.ts';

/**
 * Memory that others can map, or reach by requests; `undefined` if they can do neither: then the kernel and a thread of
 * this rank reach it (transfer/served/user-memory.ts), which is so where the emulator poses as a device, too
 * (`ONESIDED_DEBUG=requests`). The caller has checked that it is an array. Errors: `ERR_BUFFER`.
 */
export function reachable(
  comm: Communicator,
  call: string,
  memory: TypedArray,
): { readonly memory: Memory; readonly discard: () => void } | undefined {
  const known = comm.job.libraryMemory.get(memory.buffer);
  if (known !== undefined) return { memory: known, discard: () => {} };
  refuseResizable(call, memory);
  const { context } = comm.job;
  const exposed = comm.size === 1 ? undefined : context.exposeMemory(memory.buffer, memory.byteLength);
  if (exposed !== undefined) return { memory: exposed, discard: () => exposed.free() };
  if (servesMemory(context)) return undefined;
  const own = context.adoptMemory(memory.buffer);
  return { memory: own, discard: () => own.free() };
}

function refuseResizable(call: string, memory: TypedArray): void {
  const { buffer } = memory;
  if (!isResizable(buffer)) return;
  throw new RmaError(
    'ERR_BUFFER',
    `${call}: the ${types.isSharedArrayBuffer(buffer) ? 'Shared' : ''}ArrayBuffer is resizable, ` +
      'so its memory could change while other ranks access it; use a buffer of fixed length',
  );
}

/** Lets the other ranks access memory of this rank's own. @param memory absent: added later. Errors: `ERR_SIZE` */
export function shareOwn(comm: Communicator, call: string, native: Native, memory: TypedArray | undefined): Share {
  try {
    return shareMemory(comm.job, native, memory);
  } catch (cause) {
    if (cause instanceof RmaError && cause.code !== 'ERR_VERBS') throw cause;
    throw new RmaError(
      'ERR_SIZE',
      `${call}: cannot allocate the library's own memory for the window: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** The best way to memory that is not the library's. Errors: `ERR_BUFFER` if there is none. */
export function offerOwnMemory(
  comm: Communicator,
  call: string,
  memory: TypedArray,
  hints: Hints,
): Pick<Offer, 'memory' | 'share' | 'discard'> {
  const exposed = reachable(comm, call, memory);
  if (exposed !== undefined) return exposed;
  const native = loadNative();
  if (native !== undefined) {
    const share = shareOwn(comm, call, native, memory);
    return { memory: undefined, share, discard: () => share.withdraw() };
  }
  if (comm.size === 1 && fenceNamed(hints.fence).moves === 'immediately')
    return { memory: undefined, discard: () => {} };
  throw new RmaError(
    'ERR_BUFFER',
    `${call}: without the native addon (see "onesided info") other threads cannot access a plain ArrayBuffer; ` +
      'use a SharedArrayBuffer of fixed length, memory from comm.allocMem, or Window.allocate',
  );
}
