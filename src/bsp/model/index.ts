/**
 * `onesided/bsp/model`: what bulk-synchronous programs cost, on machines that were measured or come from the papers.
 *
 *     import { jacobi, microseconds, probe } from 'onesided/bsp/model';
 */
export { ALGORITHMS, type Algorithm, flatCost, type GridParts, jacobi } from './algorithms.ts';
export { loadMachines, type Machine, readMachine } from './machine-files.ts';
export {
  type Bsp2Machine,
  type BspMachine,
  flat,
  MACHINES,
  microseconds,
  type SuperSuperstep,
  type Superstep,
  superSuperstepCost,
  superstepCost,
} from './machines.ts';
export { leastSquares, type Probed, type ProbeOptions, probe, type Sample } from './probe.ts';
export { type ProbedUnits, probeUnits } from './probe-units.ts';
export {
  type BspReport,
  type ReportTotals,
  reportSummary,
  reportTable,
  reportTotals,
  type SuperstepReport,
} from './report.ts';
export { reportPicture } from './report-picture.ts';
