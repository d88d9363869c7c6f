/** What was asked for about races: `--races`, `ONESIDED_RACES`. */
import { argumentTypeError, show } from '../errors.ts';

export interface RaceRequest {
  readonly strict: boolean;
  readonly throw: boolean;
  /** The report as JSON goes there; absent: nowhere. */
  readonly file: string | undefined;
  /** The picture goes there. */
  readonly picture: string | undefined;
  /** Bytes for what was accessed; absent: the default. */
  readonly memory: number | undefined;
}

export const RACES_VARIABLE = 'ONESIDED_RACES';
export const RACES_MEMORY_VARIABLE = 'ONESIDED_RACES_MEMORY';
/** Where the ranks of a launcher write what they tell. */
export const RACES_LOGS_VARIABLE = 'ONESIDED_RACES_LOGS';
/** Of a job on several hosts: by rank, the first rank of its host; with commas. */
export const RACES_HOSTS_VARIABLE = 'ONESIDED_RACES_HOSTS';
/** Where they ask while they run, if races are thrown: the path of a memory file. Threads are given theirs. */
export const RACES_LIVE_VARIABLE = 'ONESIDED_RACES_LIVE';

const MIB = 2 ** 20;
const NOTHING = ['', '1', 'yes', 'true'];

/**
 * @param words what follows `--races=`: `strict`, `throw`, files that end in `.json` and `.svg`; with commas
 * @param memory MiB
 */
export function readRaces(
  name: string,
  words: string,
  memory: string | undefined,
  memoryName = `${name}-memory`,
): RaceRequest {
  let [strict, throws] = [false, false];
  let [file, picture]: (string | undefined)[] = [];
  for (const word of words.split(',').map((one) => one.trim())) {
    if (NOTHING.includes(word)) continue;
    if (word === 'strict') strict = true;
    else if (word === 'throw') throws = true;
    else if (/\.json$/.test(word)) file = onlyOne(name, file, word);
    else if (/\.svg$/.test(word)) picture = onlyOne(name, picture, word);
    else
      throw argumentTypeError(
        `${name}: ${show(word)} is unknown; it takes strict, throw, FILE.json and FILE.svg, separated by commas`,
      );
  }
  const mib = memory === undefined || memory === '' ? undefined : Number(memory);
  if (mib !== undefined && !(mib >= 1 && mib <= 2 ** 20))
    throw argumentTypeError(`${memoryName}: a number of MiB from 1 to 2^20 is needed, not ${show(memory)}`);
  return { strict, throw: throws, file, picture, memory: mib === undefined ? undefined : mib * MIB };
}

function onlyOne(name: string, before: string | undefined, file: string): string {
  if (before !== undefined)
    throw argumentTypeError(`${name}: the report goes to one file of a kind, not to ${show(before)} and ${show(file)}`);
  return file;
}

/** What the environment asks for. */
export function racesFromEnvironment(env: NodeJS.ProcessEnv): RaceRequest | undefined {
  const words = env[RACES_VARIABLE];
  if (words === undefined || words === '' || words === '0') return undefined;
  return readRaces(RACES_VARIABLE, words, env[RACES_MEMORY_VARIABLE], RACES_MEMORY_VARIABLE);
}

/** What an analysis takes of it. */
export function analysisOf({ strict, memory }: RaceRequest): { strict: boolean; memory?: number } {
  return { strict, ...(memory !== undefined && { memory }) };
}
