/** `onesided run --races`: has the ranks write what they do, and looks for races in it when the job has ended. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { JobResult, LaunchOptions } from '../launcher/job-start.ts';
import { moduleFile } from '../place.ts';
import {
  analysisOf,
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

/** Runs a job, and shows its races. A job that fails has its own exit code. */
export async function runSearched(
  request: RaceRequest,
  options: LaunchOptions,
  run: (options: LaunchOptions) => Promise<JobResult>,
): Promise<JobResult> {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-races-'));
  try {
    const hooks = moduleFile('races/instrument/register');
    const words = [request.strict && 'strict', request.throw && 'throw'].filter((word) => word !== false);
    const env = {
      ...(options.env ?? process.env),
      [RACES_VARIABLE]: words.join(',') || '1',
      [RACES_LOGS_VARIABLE]: folder,
    };
    const execArgv = [...(options.execArgv ?? [])];
    if (hooks !== undefined) execArgv.push('--import', pathToFileURL(hooks).href);
    const result = await run({ ...options, env, execArgv });
    const [{ analyzeLogs }, { showReport }] = await Promise.all([
      import('../races/logs/race-log-reader.ts'),
      import('../races/race-text.ts'),
    ]);
    const report = analyzeLogs(folder, options.size, analysisOf(request));
    const code = showReport(report, request, (text) => void process.stderr.write(text));
    return { ...result, exitCode: result.exitCode || code };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
