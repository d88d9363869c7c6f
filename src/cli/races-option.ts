/** `onesided run --races`: has the ranks tell what they do, and shows the races in it when the job has ended. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { JobResult, LaunchOptions } from '../launcher/job-start.ts';
import { moduleFile } from '../place.ts';
import type { RaceReport } from '../races/race-findings.ts';
import {
  analysisOf,
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
    return readRaces(words === undefined ? RACES_VARIABLE : '--races', given, memory ?? env[RACES_MEMORY_VARIABLE]);
  } catch (error) {
    throw new UsageError((error as Error).message);
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

/** Ranks write files, which are read in the end. */
async function searchOfLogs(request: RaceRequest, size: number): Promise<Search> {
  const { analyzeLogs } = await import('../races/logs/race-log-reader.ts');
  const folder = mkdtempSync(join(tmpdir(), 'onesided-races-'));
  return {
    env: { [RACES_LOGS_VARIABLE]: folder },
    report: () => analyzeLogs(folder, size, analysisOf(request)),
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
  try {
    const hooks = moduleFile('races/instrument/register');
    const words = [request.strict && 'strict', request.throw && 'throw'].filter((word) => word !== false);
    const env = { ...(options.env ?? process.env), [RACES_VARIABLE]: words.join(',') || '1', ...search.env };
    const execArgv = [...(options.execArgv ?? [])];
    if (hooks !== undefined) execArgv.push('--import', pathToFileURL(hooks).href);
    const { races } = search;
    const result = await run({ ...options, env, execArgv, ...(races !== undefined && { races }) });
    const { showReport } = await import('../races/race-text.ts');
    const code = showReport(await search.report(), request, (text) => void process.stderr.write(text));
    return { ...result, exitCode: result.exitCode || code };
  } finally {
    await search.close();
  }
}
