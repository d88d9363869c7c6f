/**
 * All figures, in the order of their measuring: the longest first, so that no core is left alone with one at the end.
 */

import { adaptedPace } from './adapted-pace.ts';
import { adapterBarriers } from './adapter-barriers.ts';
import { automatic } from './automatic.ts';
import { bspBarriers } from './bsp-barriers.ts';
import { b8 } from './bsp-choice.ts';
import { bspModels } from './bsp-models.ts';
import { bspPrograms } from './bsp-programs.ts';
import { chapter4 } from './chapter-4.ts';
import { factorizations } from './chapter-4-lu.ts';
import { chapter5 } from './chapter-5.ts';
import { chapter6 } from './chapter-6.ts';
import { fenceArrivals } from './chapter-6-arrival.ts';
import { haloFences } from './chapter-6-halo.ts';
import { chapter7, manyProcesses } from './chapter-7.ts';
import { chapter8 } from './chapter-8.ts';
import { assisted } from './chapter-8-assisted.ts';
import { protocol } from './chapter-8-protocol.ts';
import { chapter9 } from './chapter-9.ts';
import { kernels } from './chapter-9-nas.ts';
import { chapter10 } from './chapter-10.ts';
import { chapterBsp } from './chapter-bsp.ts';
import { contendedLocks } from './contended-locks.ts';
import type { Figure } from './figure.ts';
import { offeredLoad } from './offered-load.ts';
import { predictedSupersteps } from './predicted-supersteps.ts';
import { recovered } from './recovered.ts';
import { slotTimes } from './slot-times.ts';
import { slottedPackets } from './slotted-packets.ts';

const LONGEST = ['D9.4', 'D5.10', 'D5.9', 'D7.5', 'T5', 'T3', 'T6'];

/** What the figures of a chapter are measured on. */
interface Chapter {
  readonly figures: readonly Figure[];
  readonly fabrics: readonly string[];
}

export const CHAPTERS: readonly Chapter[] = [
  { figures: [...chapter4, ...factorizations, ...contendedLocks], fabrics: ['infinihost-64'] },
  { figures: chapter5, fabrics: ['connectx-16-cores', 'infinihost-64'] },
  { figures: [...fenceArrivals, ...chapter6, haloFences], fabrics: ['infinihost-64'] },
  { figures: [...chapter7, manyProcesses], fabrics: ['infinihost-64'] },
  { figures: [...protocol, ...chapter8, ...assisted], fabrics: ['infinihost-express', 'infinihost-pci-x'] },
  { figures: [...chapter9, ...kernels], fabrics: ['myrinet-2000'] },
  { figures: [...chapterBsp, ...bspBarriers, b8], fabrics: ['bsp-ib-16', 'infinihost-64'] },
  { figures: chapter10, fabrics: ['infinihost-express', 'infinihost-pci-x'] },
  {
    figures: [automatic],
    fabrics: ['infinihost-64', 'infinihost-express', 'infinihost-pci-x', 'connectx-16-cores', 'bsp-ib-16'],
  },
  { figures: bspPrograms, fabrics: ['bsp-ib-16'] },
  { figures: adapterBarriers, fabrics: ['myrinet-lanai-xp', 'myrinet-lanai-9.1', 'quadrics-elan3'] },
  { figures: [...offeredLoad, ...slottedPackets, ...slotTimes, ...recovered], fabrics: ['ethernet-10-bus'] },
  { figures: [...adaptedPace, ...predictedSupersteps], fabrics: ['ethernet-100-switch', 'ethernet-10-bus'] },
  { figures: bspModels, fabrics: ['infinihost-64', 'connectx-16-cores'] },
];

export const FIGURES: readonly Figure[] = CHAPTERS.flatMap(({ figures }) => figures).sort(
  (a, b) => LONGEST.indexOf(b.id) - LONGEST.indexOf(a.id),
);
