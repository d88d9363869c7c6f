/**
 * `onesided/fabrics`: ranks as tasks of one process, on a modelled fabric, in virtual time (`runTasks`), and the
 * descriptions of such fabrics.
 *
 * The fabrics of this package are files, one a fabric, in which each number says where it comes from: `fabrics/*.json`.
 * A program can have its own (`loadFabric('./mine.json')`), or make one from another: `readFabric` checks it.
 */
export { type FaultOptions, runTasks, type TaskOptions } from '../comm/tasks.ts';
export { type Fabric, readFabric } from '../providers/modelled/description.ts';
export { fabricNames, loadFabric } from '../providers/modelled/fabrics.ts';
