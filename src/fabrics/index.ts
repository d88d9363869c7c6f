/**
 * `onesided/fabrics`: what modelled fabrics are like, for `runTasks`.
 *
 * The fabrics of this package are files, one a fabric, in which each number says where it comes from: `fabrics/*.json`. A program can have its own (`loadFabric('./mine.json')`), or make one
 * from another: `readFabric` checks it.
 */
export { type Fabric, readFabric } from '../providers/modelled/description.ts';
export { fabricNames, loadFabric } from '../providers/modelled/fabrics.ts';
