/**
 * The files that describe fabrics: those of this package lie in `fabrics/`, one a fabric; a program can have its own.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RmaError, show } from '../../errors.ts';
import { bundled, packageFolder } from '../../place.ts';
import { readFabric } from './fabric-description.ts';
import type { Fabric } from './fabric-numbers.ts';

/**
 * Returns the names of this package's fabrics. In a bundle, which has no files beside it, there are none: import their
 * JSON there.
 */
export function fabricNames(): string[] {
  if (bundled()) return [];
  return readdirSync(fabricFolder())
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort();
}

/**
 * Loads a fabric: one of this package by its name, or one of the program's own by the name of its file, which ends in
 * `.json`.
 * Errors: `ERR_ARG`, which names the file and the field if the description is wrong.
 */
export function loadFabric(name: string): Fabric {
  const own = name.endsWith('.json');
  if (!own && !fabricNames().includes(name)) {
    throw new RmaError('ERR_ARG', `no fabric is named ${show(name)}; give ${known(fabricNames())}`);
  }
  const file = own ? name : join(fabricFolder(), `${name}.json`);
  const shown = own ? name : `fabrics/${name}.json`;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new RmaError('ERR_ARG', `fabric ${shown}: cannot read the file (${(cause as Error).message})`, { cause });
  }
  let description: unknown;
  try {
    description = JSON.parse(text);
  } catch (cause) {
    throw new RmaError('ERR_ARG', `fabric ${shown}: the file is not JSON (${(cause as Error).message})`, { cause });
  }
  return readFabric(shown, description);
}

function fabricFolder(): string {
  return join(packageFolder(), 'fabrics');
}

/** What a name may be: for the message about one that is none. */
function known(names: readonly string[]): string {
  if (names.length > 0) return `${names.join(', ')}, or the name of a file that ends in .json`;
  return (
    'the name of a file that ends in .json (in a bundle, pass the object that you import from ' +
    "'onesided/fabrics/NAME.json')"
  );
}
