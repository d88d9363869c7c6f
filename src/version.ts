/** The version of this package: ranks of one job have the same. */
import { readFileSync } from 'node:fs';

export function version(): string {
  return (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version;
}
