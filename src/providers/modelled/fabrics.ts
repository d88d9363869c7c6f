/** The files that describe fabrics: those of this package lie in `fabrics/`, one a fabric; a program can have its own. */
import { readdirSync, readFileSync } from 'node:fs';
import { RmaError, show } from '../../errors.ts';
import { type Fabric, readFabric } from './description.ts';

const FOLDER = new URL('../../../fabrics/', import.meta.url);

/** The names of the fabrics of this package. */
export function fabricNames(): string[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

/**
 * A fabric of this package, by its name, or one of the program's own, by the name of its file, which ends in `.json`.
 * Errors: `ERR_ARG`, which names file and field where the description is wrong.
 */
export function loadFabric(name: string): Fabric {
  const own = name.endsWith('.json');
  if (!own && !fabricNames().includes(name)) {
    throw new RmaError(
      'ERR_ARG',
      `there is no fabric ${show(name)}; there are ${fabricNames().join(', ')}, and files that end in .json`,
    );
  }
  const file = own ? name : new URL(`${name}.json`, FOLDER);
  const shown = own ? name : `fabrics/${name}.json`;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new RmaError('ERR_ARG', `fabric ${shown}: the file cannot be read (${(cause as Error).message})`, { cause });
  }
  let description: unknown;
  try {
    description = JSON.parse(text);
  } catch (cause) {
    throw new RmaError('ERR_ARG', `fabric ${shown}: the file is no JSON (${(cause as Error).message})`, { cause });
  }
  return readFabric(shown, description);
}
