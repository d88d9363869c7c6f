/** `Window.createDynamic`: no part at first; each rank attaches memory when it likes (attachments.ts). */
import type { Communicator } from '../../collective/communicator.ts';
import { argumentRangeError, show } from '../../errors.ts';
import { loadNative } from '../../native.ts';
import { servesMemory } from '../../transfer/served/user-memory.ts';
import { beginWindow, type WindowInTheMaking } from './begin-window.ts';
import { checkOptions, inForce } from './offer.ts';
import { shareOwn } from './own-memory.ts';
import type { WindowOptions } from './window-parts.ts';

export function beginCreateDynamic(comm: Communicator, options: WindowOptions | undefined): WindowInTheMaking {
  const call = 'Window.createDynamic';
  return beginWindow(comm, call, 'dynamic', options, (given) => {
    if (given.dispUnit !== undefined && given.dispUnit !== 1) {
      throw argumentRangeError(
        `${call}: displacements are addresses, so dispUnit must be 1, not ${show(given.dispUnit)}`,
        'ERR_DISP',
      );
    }
    const { loadStore } = comm.job.context.capabilities;
    const checked = checkOptions(comm, call, given, 1);
    const local = new Uint8Array(new ArrayBuffer(0));
    const common = {
      ...checked,
      // Schemes whose memory or agent has to be known when the window is created.
      hints: inForce(comm, checked.hints, {
        fence: ({ moves }) => moves === 'immediately' || (moves === 'by requests' && !loadStore),
        lock: ({ forDynamic }) => forDynamic === true,
      }),
    };
    if (!servesMemory(comm.job.context)) return { ...common, local, memory: undefined, discard: () => {} };
    const native = loadNative();
    const share = native && shareOwn(comm, call, native, undefined);
    return { ...common, local, memory: undefined, discard: () => share?.withdraw(), ...(share && { share }) };
  });
}
