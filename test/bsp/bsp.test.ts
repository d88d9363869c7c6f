/** BSPlib (`onesided/bsp`) on ranks that are processes and threads, with every way of delivering a superstep. */
import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { IN_GATE } from '../support/gate.ts';
import { rankRuns, seedOfRun } from '../support/ranks.ts';

const WAYS = {
  'shared memory': ['--delivery=shared'],
  'shared memory, headers of 12 bytes': ['--delivery=shared', '--headers=plain'],
  'messages, counts to all': ['--delivery=packed', '--counts=all-to-all'],
  'zero-copy receive': ['--delivery=zero-copy'],
  'the way that the last superstep suggests': ['--delivery=auto'],
  'messages, counts by a tree': ['--delivery=packed', '--counts=tree', '--headers=plain'],
  'packets in slots': ['--delivery=packed', '--pacing={"slot":20,"packet":200}'],
  'packets at the pace that was best': ['--delivery=packed', '--pacing="auto"', '--counts=tree'],
  datagrams: ['--delivery=datagrams'],
  'datagrams that are asked for too early': ['--delivery=datagrams', '--nackAfter=0', '--counts=tree'],
  'messages, counts by multicast': ['--delivery=packed', '--counts=multicast'],
  'what there is by default, and random programs by any way': [],
};

/** In the gate, what goes by any way, once: all ways are tried on tasks there (conformance/tasks.test.ts). */
const tried = Object.entries(WAYS).slice(IN_GATE ? -1 : 0);

describe.each(tried)('BSPlib by %s', (_, args) => {
  for (const { kind, size } of rankRuns(IN_GATE ? [3] : [1, 2, 3, 5])) {
    describeCases(`on ${size} ranks as ${kind}`, 'bsp', {
      kind,
      size,
      args: [...args, `--seed=${seedOfRun()}`, `--programs=${IN_GATE ? 2 : 20}`],
    });
  }
});
