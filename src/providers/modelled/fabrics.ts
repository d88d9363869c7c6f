/** The files that describe fabrics: those of this package lie in `fabrics/`, one a fabric; a program can have its own. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RmaError, show } from '../../errors.ts';
import { bundled, packageFolder } from '../../place.ts';
import { type Fabric, readFabric } from './description.ts';

/** The names of the fabrics of this package. None in a bundle, which has no files beside it: import their JSON there. */
export function fabricNames(): string[] {
  if (bundled()) return [];
  return readdirSync(fabricFolder())
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
    throw new RmaError('ERR_ARG', `there is no fabric ${show(name)}; there are ${known(fabricNames())}`);
  }
  const file = own ? name : join(fabricFolder(), `${name}.json`);
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

function fabricFolder(): string {
  return join(packageFolder(), 'fabrics');
}

/** What a name may be: for the message about one that is none. */
function known(names: readonly string[]): string {
  if (names.length > 0) return `${names.join(', ')}, and files that end in .json`;
  return "files that end in .json only (in a bundle, pass what you import from 'onesided/fabrics/NAME.json')";
}
