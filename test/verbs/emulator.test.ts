/** The direct emulator, with all devices in one thread. Between threads and processes: emulator-ranks.test.ts. */
import { openEmulator } from '../../src/providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../../src/providers/emulator/local-fabric.ts';
import { verbsConformance } from './conformance/index.ts';

await verbsConformance('the direct emulator', { open: (count) => createLocalFabric(count).map(openEmulator) });
