/**
 * `npm test`: the part of the tests that has to pass before anything lands. It takes two minutes, also where one of two
 * cores is kept busy, and needs nothing but Node and the compiler. `npm run test:all` runs everything.
 *
 * What belongs here: a file of each layer that says whether the layer holds, and that has never failed for another
 * reason than a fault. What waits for times, draws hundreds of cases or starts a job for each of them does not.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import all from '../../vitest.config.ts';
import { existing } from './files.ts';

const SLOW_ON_FABRICS = 'aggregates|auto|calibration|deadlocks|free-calls|helper|holding|hybrid-deferred|overtaking';

/**
 * Tests of one thread, which leave nothing behind: the files of a worker share its process, and its modules. A process
 * for each, which loads the library, took twice the time.
 */
const TOGETHER = [
  'test/bench/{lu,peers,perftest,random-access,random-stream,statistics}.test.ts',
  'test/bsp/{datagram-carrier,paced-carrier,packets,routed-counts}.test.ts',
  'test/comm/{collectives-model,control-copy,failure-agreement,given-away,group}.test.ts',
  'test/comm/{messages,mismatch,notices,options,servers,spinning,tasks}.test.ts',
  'test/conformance/{peers,tasks}.test.ts',
  'test/datatype/*.test.ts',
  'test/docs/{calls,mpi-names,schemes,walk}.test.ts',
  `test/fabrics/!(${SLOW_ON_FABRICS}|processor-use).test.ts`,
  'test/launcher/{host-list,host-rings,line-merger,supervisor}.test.ts',
  'test/native/{arguments,copies}.test.ts',
  'test/races/{analysis,instrument,picture}.test.ts',
  'test/providers/{cores,free-ranges,growing-columns,process-heap,rdma-core}.test.ts',
  'test/sync/{all-lock,barrier,fence-schemes,lock-schemes,notifications,queue-lock}.test.ts',
  'test/service/map/{calls,model}.test.ts',
  'test/support/*.test.ts',
  'test/trace/recorder.test.ts',
  'test/transfer/!(auto|backlog|noncontiguous|remote-stripes|stripes).test.ts',
  'test/verbs/{emulator,emulator-attachments,modelled-waits}.test.ts',
  'test/window/{hints,messages,refusals,shared-directory,stacks}.test.ts',
];

/**
 * Those that need modules, or a process, of their own: they count what is left, or what the process used, or put other
 * modules in place of some.
 */
const ALONE = [
  'test/comm/{abort-signals,init}.test.ts',
  'test/docs/claims.test.ts',
  'test/fabrics/processor-use.test.ts',
  'test/providers/libfabric.test.ts',
  'test/service/map/crash.test.ts',
  // A minute, of which its members sleep most.
  'test/service/storm.test.ts',
  'test/verbs/emulator-keys.test.ts',
];

/** Tests that start ranks: one file at a time. Some of them leave cases out here (support/gate.ts). */
const WITH_RANKS = [
  'test/attack/calls.test.ts',
  'test/bench/random-access-run.test.ts',
  'test/bsp/bsp.test.ts',
  'test/comm/message-progress.test.ts',
  'test/conformance/{communication,errors,memory-model,semantics,synchronization}.test.ts',
  'test/launcher/{failures,run-threads}.test.ts',
  'test/package/install.test.ts',
  'test/robustness/{kill,stacks}.test.ts',
  'test/window/{arguments,epochs,transfer}.test.ts',
];

const { include: _, ...common } = all.test!;
const root = fileURLToPath(new URL('../..', import.meta.url));

export default defineConfig({
  resolve: all.resolve!,
  root,
  test: {
    ...common,
    exclude: common.exclude!.filter((pattern) => pattern !== 'test/package/**'),
    // Always the same random cases: new ones are for the other commands to find.
    env: {
      ...common.env,
      ONESIDED_TEST_GATE: '1',
      ONESIDED_SEED: process.env['ONESIDED_SEED'] ?? '1',
      ONESIDED_TEST_STORM: '60',
    },
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: existing(root, TOGETHER),
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: existing(root, ALONE), maxWorkers: 2, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'ranks',
          include: existing(root, WITH_RANKS),
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
