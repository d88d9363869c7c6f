/** Which modules are instrumented, and how: those of the program, in JavaScript, or in TypeScript that Node strips. */
import * as nodeModule from 'node:module';
import { sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { moduleFolder } from '../../place.ts';
import { instrument } from './instrument.ts';

/** `process.features.typescript` of Node that strips types. */
type Strip = (source: string) => string;

function isProgram(file: string): boolean {
  if (file.includes(`${sep}node_modules${sep}`)) return false;
  return !file.startsWith(`${packageRoot()}${sep}dist${sep}`) && !file.startsWith(`${packageRoot()}${sep}src${sep}`);
}

let root: string | undefined;

/** Above the bundle `dist/races/…`, or `src/races/…`. */
function packageRoot(): string {
  root ??= moduleFolder().replace(/[\\/](dist|src)([\\/].*)?$/, '');
  return root;
}

interface Instrumented {
  readonly source: string;
  readonly format: string;
}

/** @returns `undefined`: it stays as it is */
export function instrumented(
  url: string,
  format: string | null | undefined,
  source: unknown,
): Instrumented | undefined {
  if (!url.startsWith('file:') || source === null || source === undefined || format === null || format === undefined)
    return undefined;
  const kind = format.replace('-typescript', '');
  if (kind !== 'module' && kind !== 'commonjs') return undefined;
  if (!isProgram(fileURLToPath(url.replace(/[?#].*$/, '')))) return undefined;
  let text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString();
  if (kind !== format) {
    const strip = (nodeModule as { stripTypeScriptTypes?: Strip }).stripTypeScriptTypes;
    if (strip === undefined) return undefined;
    text = strip(text);
  }
  const result = instrument(text, url, kind === 'module');
  return result === undefined ? undefined : { source: result, format: kind };
}

/** The same for a CommonJS module, by its file. */
export function instrumentedFile(file: string, source: string): string {
  if (!isProgram(file)) return source;
  return instrument(source, pathToFileURL(file).href, false) ?? source;
}
