/**
 * `onesided/fabrics`: runs ranks as tasks of one process on a modelled fabric, in virtual time (`runTasks`), and loads
 * the descriptions of such fabrics.
 *
 * Each fabric of this package is a file in which each number names its source: `fabrics/*.json`. A program can have its
 * own (`loadFabric('./mine.json')`), or derive one from another: `readFabric` checks it.
 */
import { processorUse } from '../collective/processor-use.ts';
import { publicCalls } from '../program-line.ts';
import { readFabric } from '../providers/modelled/fabric-description.ts';
import { fabricNames, loadFabric } from '../providers/modelled/known-fabrics.ts';
import { observeFabric } from '../providers/modelled/observed.ts';
import { runTasks } from '../start/tasks.ts';

export type { BarrierKind, BarrierOptions } from '../collective/barrier-kinds.ts';
export { type ProcessorUse, processorUse } from '../collective/processor-use.ts';
export type { EthernetNumbers, TcpNumbers } from '../providers/modelled/ethernet/ethernet-numbers.ts';
export { tcpVariants } from '../providers/modelled/ethernet/tcp-variants.ts';
export { type FabricDescription, readFabric } from '../providers/modelled/fabric-description.ts';
export type { Fabric } from '../providers/modelled/fabric-numbers.ts';
export { fabricNames, loadFabric } from '../providers/modelled/known-fabrics.ts';
export { observeFabric } from '../providers/modelled/observed.ts';
export type { Race, RaceReport, RaceSide, ShadowSize } from '../races/race-findings.ts';
export type { RaceEdge } from '../races/race-order.ts';
export type { RaceOptions } from '../races/watch/task-races.ts';
export { type FaultOptions, runTasks, type TaskOptions } from '../start/tasks.ts';

publicCalls(fabricNames, loadFabric, observeFabric, processorUse, readFabric, runTasks);
