/** `onesided run`: starts the ranks of a job and sees them to their end. */
import { closeSync, existsSync, openSync, unlinkSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { addonAdvice } from '../addon.ts';
import { show } from '../errors.ts';
import { runHosts } from '../launcher/hosts/run-hosts.ts';
import { type JobResult, type LaunchOptions, MAX_RANKS } from '../launcher/job-start.ts';
import { runProcesses } from '../launcher/processes.ts';
import { runThreads } from '../launcher/threads.ts';
import { loadNative, nativeStatus } from '../native.ts';
import { DEFAULT_PROVIDER, PROVIDER_NAMES, PROVIDERS, providerNamed } from '../providers/provider-kinds.ts';
import type { RaceRequest } from '../races/race-request.ts';
import { readEvents, type TraceRequest, traceFromEnvironment } from '../trace/trace-request.ts';
import { bspReport } from './bsp-report-option.ts';
import { type Command, readOptions, UsageError } from './command.ts';
import { HOSTS_OPTIONS, HOSTS_USAGE, type HostsRequest, readHostsOptions } from './hosts-options.ts';
import { type RankKind, racesOf, runSearched, runSearchedHosts } from './races-option.ts';

const STARTERS: Readonly<Record<RankKind, (options: LaunchOptions) => Promise<JobResult>>> = {
  processes: runProcesses,
  threads: runThreads,
};

const OPTIONS = {
  ranks: { type: 'string' },
  n: { type: 'string', short: 'n' },
  provider: { type: 'string' },
  timeout: { type: 'string' },
  grace: { type: 'string' },
  'keep-going': { type: 'boolean' },
  'no-prefix': { type: 'boolean' },
  trace: { type: 'string' },
  'trace-events': { type: 'string' },
  'bsp-report': { type: 'string' },
  'bsp-machine': { type: 'string' },
  races: { type: 'string' },
  'races-memory': { type: 'string' },
  ...HOSTS_OPTIONS,
} as const;

/** These take a value only behind a `=`. */
const ALIASES: Readonly<Record<string, string>> = {
  '-np': '-n',
  '--bsp-report': '--bsp-report=',
  '--races': '--races=',
};

export const run: Command = {
  summary: 'run a program on N ranks',
  usage: `Usage: onesided run -n N [options] script [-- args]
       onesided run --hosts a:N,b:N [options] script [-- args]

Runs "node script args" as N ranks of one job. Arguments after the script are passed to it.

  -n N, -np N            number of ranks, 1 to ${MAX_RANKS}
  --ranks processes      run each rank as a process (default; needs the native addon)
  --ranks threads        run the ranks as worker threads of one process (no addon needed, no standard input)
${HOSTS_USAGE}
${PROVIDERS.map(({ name, summary }) => `  --provider ${name.padEnd(12)}${summary}`).join('\n')}
  --timeout S            end the job after S seconds, with exit code 124
  --grace S              give the other ranks S seconds to end after a rank failed (default: 2)
  --keep-going           go on when ranks fail, for programs that shrink their communicator; the job ends well if
                         any rank does
  --no-prefix            print no "[rank] " before each line; processes write directly to this terminal
  --trace FILE           record the run; open FILE in https://ui.perfetto.dev or with "onesided trace"
  --bsp-report[=FILE]    show what the supersteps of a BSP program were, and what the model predicts; with FILE, all of
                         them as FILE.json and FILE.svg
  --bsp-machine M        predict by this machine: "probe" measures it when a computation begins (default), "none" makes
                         no predictions, anything else is a file of JSON as probe() of onesided/bsp/model gives it
  --races[=WORDS]        look for data races between the ranks, and say which lines make them; the exit code is 66 if
                         there is one and nothing else failed. Words, with commas: "strict" (atomic calls order
                         nothing, as in MPI), "throw" (a race is thrown at the call that makes it), FILE.json,
                         FILE.svg (a picture)
  --races-memory M       keep what was accessed in at most M MiB (default: six times the windows, 64 to 1024)
  --trace-events N       keep the last N events of each rank (default: 65536, fewer with many ranks)

The first rank that fails ends the job, unless it has --keep-going. The job has that rank's exit code, or 128 + the
signal's number if a signal ended the rank. SIGINT, SIGTERM and SIGHUP are forwarded to the ranks; a second one kills
them.`,

  async run(args) {
    const { options, kind, hosts, races } = read(args);
    const start = (ranks: RankKind): Promise<JobResult> =>
      races === undefined ? STARTERS[ranks](options) : runSearched(races, options, ranks, STARTERS[ranks]);
    if (hosts !== undefined) {
      const all = { ...options, ...hosts };
      return report(await (races === undefined ? runHosts(all) : runSearchedHosts(races, all, runHosts)));
    }
    if (kind === undefined && loadNative() === undefined) {
      process.stderr.write(
        `onesided: the native addon is not available (${nativeStatus().reason}); running the ranks as threads; ` +
          `${addonAdvice()}\n`,
      );
      return report(await start('threads'));
    }
    return report(await start(kind ?? 'processes'));
  },
};

function report({ exitCode, failure, traceNote, superstepNote, lossNote }: JobResult): number {
  if (superstepNote !== undefined) process.stderr.write(`onesided: ${superstepNote}\n`);
  if (traceNote !== undefined) process.stderr.write(`onesided: ${traceNote}\n`);
  if (lossNote !== undefined) process.stderr.write(`onesided: ${lossNote}\n`);
  if (failure !== undefined && failure.message !== '') process.stderr.write(`onesided: ${failure.message}\n`);
  return exitCode;
}

function read(args: string[]): {
  options: LaunchOptions;
  kind: RankKind | undefined;
  hosts: HostsRequest | undefined;
  races: RaceRequest | undefined;
} {
  const known = args.map((argument) => ALIASES[argument] ?? argument);
  // The first positional argument is the script; what follows is not for us, so it is not even parsed.
  const { tokens } = parseArgs({ args: known, options: OPTIONS, strict: false, allowPositionals: true, tokens: true });
  const at = tokens.find((token) => token.kind === 'positional')?.index ?? args.length;
  const { values } = readOptions(known.slice(0, at), OPTIONS);
  if (at === args.length) throw new UsageError('no script given');
  const rest = args.slice(at + 1);
  if (rest[0] === '--') rest.shift();
  const hosts = readHostsOptions(values, values.n === undefined ? undefined : count(values.n));
  if (values.n === undefined && hosts === undefined) throw new UsageError('give the number of ranks with -n N');
  const { ranks, provider: name = DEFAULT_PROVIDER } = values;
  if (ranks !== undefined && ranks !== 'processes' && ranks !== 'threads')
    throw new UsageError(`--ranks must be processes or threads, not ${show(ranks)}`);
  const provider = providerNamed(name);
  if (provider === undefined) throw new UsageError(`--provider must be ${PROVIDER_NAMES}, not ${show(name)}`);
  if (ranks !== undefined && !provider.ranks.includes(ranks))
    throw new UsageError(`--provider ${name} needs --ranks ${provider.ranks.join(' or ')}`);
  if (hosts !== undefined && ranks === 'threads') throw new UsageError('--hosts needs --ranks processes');
  const size = hosts?.size ?? count(values.n!);
  const options: LaunchOptions = {
    size,
    script: args[at],
    ...(values.provider !== undefined && { env: { ...process.env, ONESIDED_PROVIDER: name } }),
    args: rest,
    execArgv: process.execArgv,
    timeout: seconds('--timeout', values.timeout, false),
    grace: seconds('--grace', values.grace, true),
    keepGoing: values['keep-going'] === true,
    trace: traceOf(values.trace, values['trace-events'], size, isReported(values)),
    supersteps: superstepsOf(values, size, args[at]),
    output: values['no-prefix'] === true ? 'direct' : {},
    signals: true,
  };
  const races = racesOf(values.races, values['races-memory']);
  if (races?.throw === true && hosts !== undefined)
    throw new UsageError(
      '--races=throw needs ranks of this host, which can ask the launcher at each call; without throw, races of ' +
        'several hosts are reported in the end',
    );
  return { options, kind: ranks, hosts, races };
}

/** The option, or the variable. */
function reportFile(values: { readonly 'bsp-report'?: string }): string | undefined {
  return values['bsp-report'] ?? (process.env['ONESIDED_BSP_REPORT'] || undefined);
}

const isReported = (values: { readonly 'bsp-report'?: string }): boolean => reportFile(values) !== undefined;

/** What `--bsp-report` asks for, or the environment. */
function superstepsOf(
  values: { readonly 'bsp-report'?: string; readonly 'bsp-machine'?: string; readonly 'trace-events'?: string },
  size: number,
  script: string,
): LaunchOptions['supersteps'] {
  const file = reportFile(values);
  const { 'bsp-machine': option, 'trace-events': events } = values;
  const machine = option ?? (process.env['ONESIDED_BSP_MACHINE'] || 'probe');
  const machineName = option === undefined ? 'ONESIDED_BSP_MACHINE' : '--bsp-machine';
  if (file === undefined) {
    if (option !== undefined) throw new UsageError('--bsp-machine needs --bsp-report');
    return undefined;
  }
  if (file !== '')
    for (const end of ['json', 'svg']) checkWritable('report', `${file.replace(/\.(json|svg)$/, '')}.${end}`);
  const kept = events === undefined ? undefined : readEvents('--trace-events', events);
  return bspReport({ file, machine, machineName, events: kept, size, script });
}

/** What `--trace` asks for, or the environment. @param reported events are of supersteps, too */
function traceOf(
  file: string | undefined,
  events: string | undefined,
  size: number,
  reported: boolean,
): TraceRequest | undefined {
  const env = { ...process.env, ...(file !== undefined && { ONESIDED_TRACE: file }) };
  const asked = traceFromEnvironment(env, size);
  if (asked === undefined && (file !== undefined || (events !== undefined && !reported)))
    throw new UsageError(
      file === undefined ? '--trace-events needs --trace FILE or --bsp-report' : '--trace needs a file name',
    );
  const trace = asked && (events === undefined ? asked : { ...asked, events: readEvents('--trace-events', events) });
  if (trace !== undefined) checkWritable('trace', trace.file);
  return trace;
}

/** Checks this now, and not when the job has run. A file that is there stays as it is. */
function checkWritable(what: string, file: string): void {
  const there = existsSync(file);
  try {
    closeSync(openSync(file, 'a'));
  } catch (error) {
    throw new UsageError(`cannot write the ${what}: ${(error as Error).message}`);
  }
  if (!there) unlinkSync(file);
}

function count(text: string): number {
  const n = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(n >= 1 && n <= MAX_RANKS))
    throw new UsageError(`-n must be a number of ranks from 1 to ${MAX_RANKS}, not ${show(text)}`);
  return n;
}

function seconds(option: string, text: string | undefined, zero: boolean): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0 || (zero && value === 0)))
    throw new UsageError(`${option} must be a number of seconds, not ${show(text)}`);
  return value;
}
