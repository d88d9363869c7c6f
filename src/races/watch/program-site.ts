/**
 * Which line of the program has called. The stack says it: of the frames, the first that is not the library's. Finding
 * line and column takes some microseconds, so what was found is kept by the place in the script.
 */
import { sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { moduleFolder } from '../../place.ts';
import { raceRuntime } from './tracked-memory.ts';

const MOST_FRAMES = 24;
/** What is known of a script's places. */
const known = new Map<string, Map<number, string>>();
let own: readonly [string, string] | undefined;

export function programSite(): string {
  const { site, sites } = raceRuntime();
  if (site >= 0) return sites[site];
  const before = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  if (before !== undefined && !before.writable) return '?';
  const limit = Error.stackTraceLimit;
  const probe: { stack?: unknown } = {};
  Error.stackTraceLimit = MOST_FRAMES;
  Error.prepareStackTrace = (_, sites) => sites;
  let frames: unknown;
  try {
    Error.captureStackTrace(probe, programSite);
    frames = probe.stack;
  } finally {
    Error.stackTraceLimit = limit;
    if (before === undefined) delete (Error as { prepareStackTrace?: unknown }).prepareStackTrace;
    else Object.defineProperty(Error, 'prepareStackTrace', before);
  }
  return Array.isArray(frames) ? siteIn(frames as NodeJS.CallSite[]) : '?';
}

function siteIn(frames: readonly NodeJS.CallSite[]): string {
  const folder = moduleFolder();
  own ??= [`${folder}${sep}`, `${pathToFileURL(folder).href}/`];
  for (const frame of frames) {
    const file = frame.getFileName();
    if (typeof file !== 'string' || file.startsWith('node:')) continue;
    if (file.startsWith(own[0]) || file.startsWith(own[1])) continue;
    const places = known.get(file) ?? new Map<number, string>();
    known.set(file, places);
    const position = (frame as unknown as { getPosition?(): number }).getPosition?.() ?? -1;
    const site = places.get(position) ?? placeOf(file, frame.getLineNumber() ?? 0, frame.getColumnNumber() ?? 0);
    if (position >= 0) places.set(position, site);
    return site;
  }
  return '?';
}

function placeOf(file: string, line: number, column: number): string {
  const { columns } = raceRuntime();
  const url = file.startsWith('file:') ? file : pathToFileURL(file).href;
  return `${url.startsWith('file:') ? fileURLToPath(url) : file}:${line}:${columns.get(url)?.(line, column) ?? column}`;
}
