/**
 * `onesided/fabrics`: runs ranks as tasks of one process on a modelled fabric, in virtual time (`runTasks`), and loads
 * the descriptions of such fabrics.
 *
 * Each fabric of this package is a file in which each number names its source: `fabrics/*.json`. A program can have its
 * own (`loadFabric('./mine.json')`), or derive one from another: `readFabric` checks it.
 */
import { processorUse } from '../comm/processor-use.ts';
import { runTasks } from '../comm/tasks.ts';
import { publicCalls } from '../program-line.ts';
import { readFabric } from '../providers/modelled/description.ts';
import { fabricNames, loadFabric } from '../providers/modelled/fabrics.ts';
import { observeFabric } from '../providers/modelled/observed.ts';

export { type ProcessorUse, processorUse } from '../comm/processor-use.ts';
export { type FaultOptions, runTasks, type TaskOptions } from '../comm/tasks.ts';
export { type FabricDescription, readFabric } from '../providers/modelled/description.ts';
export type { Fabric } from '../providers/modelled/fabric-numbers.ts';
export { fabricNames, loadFabric } from '../providers/modelled/fabrics.ts';
export { observeFabric } from '../providers/modelled/observed.ts';

publicCalls(fabricNames, loadFabric, observeFabric, processorUse, readFabric, runTasks);
