/** `onesided perf`: how long an operation takes on this machine, for a range of sizes. */

import { show } from '../errors.ts';
import { runProcesses } from '../launcher/processes.ts';
import { runThreads } from '../launcher/threads.ts';
import { nativeStatus } from '../native.ts';
import { moduleFile } from '../place.ts';
import { type Command, readOptions, UsageError } from './command.ts';

/** The loops of perf-rank.ts. */
const OPERATIONS: Readonly<Record<string, string>> = {
  put: 'put, then flush',
  get: 'get, then flush',
  accumulate: 'accumulate FLOAT64 SUM, then flush',
  'fetch-and-op': 'fetchAndOp INT64 SUM, then flush',
  'compare-and-swap': 'compareAndSwap INT64, then flush',
  lock: 'exclusive lock, put, unlock',
  fence: 'fence, put, fence, on all ranks',
  barrier: 'barrier of all ranks',
};

export const perf: Command = {
  summary: 'measure an operation between ranks of this machine',
  usage: `Usage: onesided perf <operation> [-n N] [--ranks processes|threads] [--json]

${Object.entries(OPERATIONS)
  .map(([name, what]) => `  ${name.padEnd(18)}${what}`)
  .join('\n')}

Rank 0 is the origin and rank 1 the target; -n N sets the number of ranks (default: 2). Each line shows the median of \
five
blocks of at least 20 ms, after a warm-up. --json prints one object with all samples.`,

  async run(args) {
    const { values, positionals } = readOptions(args, {
      n: { type: 'string', short: 'n' },
      ranks: { type: 'string' },
      json: { type: 'boolean' },
    });
    const [operation, ...rest] = positionals;
    if (operation === undefined || !Object.hasOwn(OPERATIONS, operation)) {
      throw new UsageError(`the operation must be one of ${Object.keys(OPERATIONS).join(', ')}`);
    }
    if (rest.length > 0) throw new UsageError(`unexpected argument '${rest[0]}'`);
    const size = Number(values.n ?? 2);
    if (!Number.isInteger(size) || size < 2 || size > 64)
      throw new UsageError(`-n must be a number of ranks from 2 to 64, not ${show(values.n)}`);
    const ranks = values.ranks ?? (nativeStatus().loaded ? 'processes' : 'threads');
    if (ranks !== 'processes' && ranks !== 'threads')
      throw new UsageError(`--ranks must be processes or threads, not ${show(ranks)}`);
    const script = moduleFile('cli/perf-rank')!;
    const start = ranks === 'processes' ? runProcesses : runThreads;
    const { exitCode, failure } = await start({
      size,
      script,
      args: [operation, ...(values.json === true ? ['--json'] : [])],
      output: { prefix: false },
      signals: true,
    });
    if (failure !== undefined && failure.message !== '') process.stderr.write(`onesided perf: ${failure.message}\n`);
    return exitCode;
  },
};
