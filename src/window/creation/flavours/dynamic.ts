/** `Window.createDynamic`: no part at first; each rank attaches memory when it likes (attachments.ts). */
import type { Communicator } from '../../../comm/communicator.ts';
import { argumentRangeError, RmaError, show } from '../../../errors.ts';
import { loadNative } from '../../../native.ts';
import { fenceNamed } from '../../../sync/fence/kinds.ts';
import { lockNamed } from '../../../sync/lock/kinds.ts';
import { shareMemory } from '../../../transfer/user-memory.ts';
import { beginWindow, type WindowInTheMaking } from '../begin.ts';
import { checkOptions } from '../offer.ts';
import type { WindowOptions } from '../parts.ts';

export function beginCreateDynamic(comm: Communicator, options: WindowOptions | undefined): WindowInTheMaking {
  const call = 'Window.createDynamic';
  return beginWindow(comm, call, 'dynamic', options, (given) => {
    if (given.dispUnit !== undefined && given.dispUnit !== 1) {
      throw argumentRangeError(
        `${call}: displacements are addresses, so dispUnit must be 1, not ${show(given.dispUnit)}`,
        'ERR_DISP',
      );
    }
    const common = checkOptions(comm, call, given, 1);
    const local = new Uint8Array(new ArrayBuffer(0));
    const { loadStore } = comm.job.context.capabilities;
    const { fence, lock } = common.hints;
    const { moves } = fenceNamed(fence);
    for (const [key, value] of [
      ['fence', moves === 'immediately' || (moves === 'by requests' && !loadStore) ? undefined : fence],
      ['lock', lockNamed(lock).forDynamic ? undefined : lock],
    ]) {
      if (value === undefined) continue;
      throw new RmaError(
        'ERR_INFO_VALUE',
        `${call}: the hint ${key} cannot be "${value}" for a dynamic window, ` +
          'whose memory is not known when it is created',
      );
    }
    if (!loadStore) return { ...common, local, memory: undefined, discard: () => {} };
    const native = loadNative();
    const share = native && shareMemory(comm.job, native, undefined);
    return { ...common, local, memory: undefined, discard: () => share?.withdraw(), ...(share && { share }) };
  });
}
