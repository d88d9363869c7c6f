/** A world of one: a program that no launcher started. It has windows like any other; its only target is itself. */

import { coresHere } from '../cores.ts';
import { controlBytes, viewControl } from '../job/control-region.ts';
import type { Membership } from '../job/membership.ts';
import { openContext } from '../providers/emulator/emulator-provider.ts';
import { createLocalFabric } from '../providers/emulator/local-fabric.ts';
import { recordAlone } from './tracing.ts';

export function joinAlone(): Membership {
  const control = viewControl(new SharedArrayBuffer(controlBytes(1)), 1);
  return {
    rank: 0,
    size: 1,
    control,
    context: openContext(createLocalFabric(1)[0]),
    cores: coresHere(),
    describe: () => 'this process',
    alive: () => true,
    watched: true,
    ...recordAlone(),
    leave: () => {},
  };
}
