/**
 * Leaders hand tasks to workers and to each other: see bench/patterns/task-sharing.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/task-sharing.js -- [--per-node 2] [--tasks 1000] [--bytes 1024]
 *     [--lock SCHEME] [--lock-defer] [--lock-mode MODE] [--lock-migration POLICY] [--form sync|promise] [--json FILE]
 *     [--quiet]
 *
 * `--lock`, `--lock-defer`, `--lock-mode` and `--lock-migration` are the window's hints of those names.
 */
import { inWords, program } from '../patterns/program.ts';
import { taskSharing } from '../patterns/task-sharing.ts';

await program(
  {
    numbers: { 'per-node': [2, 1, 2 ** 16], tasks: [1000, 1, 1e8], bytes: [1024, 4, 2 ** 26] },
    hints: ['lock'],
  },
  ({ number: { 'per-node': perNode, tasks, bytes }, info }) => ({ perNode, tasks, bytes: inWords(bytes), info }),
  taskSharing,
  ({ nodes, perNode, tasks, phases, task }) =>
    `task sharing, ${nodes} nodes of ${perNode} ranks, ${tasks} tasks a rank and phase: ` +
    `${phases.map((time) => (time / 1e3).toFixed(2)).join(' + ')} ms, ${task.toFixed(3)} µs a task`,
);
