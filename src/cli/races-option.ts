/** `onesided run --races`: has the ranks tell what they do, and shows the races in it when the job has ended. */
import { accessSync, constants, rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { HostsOptions } from '../launcher/hosts/run-hosts.ts';
import type { JobResult, LaunchOptions } from '../launcher/job-start.ts';
import { moduleFile } from '../place.ts';
import type { RaceReport } from '../races/race-findings.ts';
import {
  analysisOf,
  RACES_HOSTS_VARIABLE,
  RACES_LIVE_VARIABLE,
  RACES_LOGS_VARIABLE,
  RACES_MEMORY_VARIABLE,
  RACES_VARIABLE,
  type RaceRequest,
  readRaces,
} from '../races/race-request.ts';
import { UsageError } from './command.ts';

/** What the options ask for, or the environment. */
export function racesOf(words: string | undefined, memory: string | undefined): RaceRequest | undefined {
  const { env } = process;
  const given = words ?? (env[RACES_VARIABLE] || undefined);
  if (given === undefined || (words === undefined && given === '0')) {
    if (memory !== undefined) throw new UsageError('--races-memory needs --races');
    return undefined;
  }
  try {
    const name = words === undefined ? RACES_VARIABLE : '--races';
    const memoryName = memory === undefined ? RACES_MEMORY_VARIABLE : '--races-memory';
    const request = readRaces(name, given, memory ?? env[RACES_MEMORY_VARIABLE], memoryName);
    for (const file of [request.file, request.picture]) if (file !== undefined) checkFolder(name, file);
    return request;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** A report that could not be written would be lost when the job has ended. */
function checkFolder(name: string, file: string): void {
  const folder = dirname(resolve(file));
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new UsageError(`${name}: ${file} cannot be written: ${(error as Error).message}`);
  }
}

export type RankKind = 'processes' | 'threads';

/** Where a job's ranks tell what they do, and what is found in it. */
interface Search {
  /** What the ranks are started with. */
  readonly env: NodeJS.ProcessEnv;
  readonly races?: SharedArrayBuffer;
  /** All ranks have ended. */
  report(): RaceReport | Promise<RaceReport>;
  close(): void | Promise<void>;
}

interface LogSearch extends Search {
  readonly folder: string;
}

/**
 * Ranks write files, which are read in the end.
 * @param firstOf of a job on several hosts: by rank, the first rank of its host
 */
async function searchOfLogs(request: RaceRequest, size: number, firstOf?: readonly number[]): Promise<LogSearch> {
  const [{ analyzeLogs }, { makeLogFolder }] = await Promise.all([
    import('../races/logs/race-log-reader.ts'),
    import('../races/logs/log-folder.ts'),
  ]);
  const folder = makeLogFolder();
  return {
    folder,
    env: { [RACES_LOGS_VARIABLE]: folder, ...(firstOf !== undefined && { [RACES_HOSTS_VARIABLE]: firstOf.join(',') }) },
    report: () => analyzeLogs(folder, size, analysisOf(request), firstOf),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Ranks ask while they run. */
async function searchWhileRunning(request: RaceRequest, size: number, kind: RankKind): Promise<Search> {
  const { LiveSearch } = await import('../races/live/live-search.ts');
  const search = new LiveSearch(size, kind, analysisOf(request));
  const { place } = search;
  return {
    ...(typeof place === 'string' ? { env: { [RACES_LIVE_VARIABLE]: place } } : { env: {}, races: place }),
    report: () => search.report(),
    close: () => search.close(),
  };
}

/** Runs a job, and shows its races. A job that fails has its own exit code. */
export async function runSearched(
  request: RaceRequest,
  options: LaunchOptions,
  kind: RankKind,
  run: (options: LaunchOptions) => Promise<JobResult>,
): Promise<JobResult> {
  const { size } = options;
  const search = await (request.throw ? searchWhileRunning(request, size, kind) : searchOfLogs(request, size));
  const { races } = search;
  return searched(request, options, search, (given) => run({ ...given, ...(races !== undefined && { races }) }));
}

/** The same on several hosts. */
export async function runSearchedHosts(
  request: RaceRequest,
  options: HostsOptions,
  run: (options: HostsOptions) => Promise<JobResult>,
): Promise<JobResult> {
  const { size, hosts } = options;
  const firstOf = Array.from({ length: size }, (_, rank) => hosts.find(({ ranks }) => ranks.includes(rank))!.ranks[0]);
  const search = await searchOfLogs(request, size, firstOf);
  return searched(request, options, search, (given) => run({ ...options, ...given, logs: search.folder }));
}

async function searched(
  request: RaceRequest,
  options: LaunchOptions,
  search: Search,
  run: (options: LaunchOptions) => Promise<JobResult>,
): Promise<JobResult> {
  try {
    const hooks = moduleFile('races/instrument/register');
    const words = [request.strict && 'strict', request.throw && 'throw'].filter((word) => word !== false);
    const env = { ...(options.env ?? process.env), [RACES_VARIABLE]: words.join(',') || '1', ...search.env };
    const execArgv = [...(options.execArgv ?? [])];
    if (hooks !== undefined) execArgv.push('--import', pathToFileURL(hooks).href);
    const result = await run({ ...options, env, execArgv });
    const { showReport } = await import('../races/race-text.ts');
    const code = showReport(await search.report(), request, (text) => void process.stderr.write(text));
    return { ...result, exitCode: result.exitCode || code };
  } finally {
    await search.close();
  }
}
