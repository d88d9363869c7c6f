/** Which modules are instrumented, and how: those of the program, in JavaScript, or in TypeScript that Node strips. */
import * as nodeModule from 'node:module';
import { sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { moduleFolder } from '../../place.ts';
import { UNSEEN_PACKAGE } from '../race-events.ts';
import { instrument } from './instrument.ts';

/** `process.features.typescript` of Node that strips types. */
type Strip = (source: string, options: { mode: 'strip' | 'transform' }) => string;
/** Is told of what will not be seen. */
export type CannotSee = (text: string) => void;

const FOLDER = `${sep}node_modules${sep}`;

/** Of the library: its modules are not the program's. */
function isOwn(file: string): boolean {
  return file.startsWith(`${packageRoot()}${sep}dist${sep}`) || file.startsWith(`${packageRoot()}${sep}src${sep}`);
}

/** Whether native code is the library's. */
export function isOwnAddon(file: string): boolean {
  return file.startsWith(`${packageRoot()}${sep}`) && !file.slice(packageRoot().length).includes(FOLDER);
}

function isProgram(file: string, cannotSee: CannotSee): boolean {
  if (isOwn(file)) return false;
  const at = file.lastIndexOf(FOLDER);
  if (at < 0) return true;
  const [first, second] = file.slice(at + FOLDER.length).split(sep);
  cannotSee(`${UNSEEN_PACKAGE}${first.startsWith('@') ? `${first}/${second}` : first}`);
  return false;
}

let root: string | undefined;

/** Above the bundle `dist/races/…`, or `src/races/…`. */
function packageRoot(): string {
  root ??= moduleFolder().replace(/[\\/](dist|src)([\\/].*)?$/, '');
  return root;
}

interface Instrumented {
  readonly source: string;
  /** As it was, if that is not known. */
  readonly format?: string;
}

/** @returns `undefined`: it stays as it is */
export function instrumented(
  url: string,
  format: string | null | undefined,
  source: unknown,
  cannotSee: CannotSee,
): Instrumented | undefined {
  if (!url.startsWith('file:') || source === null || source === undefined) return undefined;
  const kind = (format ?? '').replace(/-?typescript$/, '');
  if (kind !== 'module' && kind !== 'commonjs' && kind !== '') return undefined;
  const file = fileURLToPath(url.replace(/[?#].*$/, ''));
  // Of other ends without a format, Node knows more than this: JSON, addons.
  if (kind === '' && !/\.([cm]?[jt]s)$|^[^.]*$/.test(file.slice(file.lastIndexOf(sep) + 1))) return undefined;
  if (!isProgram(file, cannotSee)) return undefined;
  let text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString();
  const isTypeScript = format?.endsWith('typescript') === true;
  if (isTypeScript) {
    const stripped = withoutTypes(text, file, cannotSee);
    if (stripped === undefined) return undefined;
    text = stripped;
  }
  return kind === '' ? ofEither(text, url, file, isTypeScript, cannotSee) : ofKind(text, url, file, kind, cannotSee);
}

function ofKind(text: string, url: string, file: string, kind: string, cannotSee: CannotSee): Instrumented | undefined {
  const result = instrument(text, url, kind === 'module', (what, at) => cannotSee(`${file}:${at}: ${what}`));
  return result === undefined ? undefined : { source: result, format: kind };
}

/** Node finds out by the syntax whether it is CommonJS; so do we, and leave it to Node again. */
function ofEither(
  text: string,
  url: string,
  file: string,
  isTypeScript: boolean,
  cannotSee: CannotSee,
): Instrumented | undefined {
  const missed: string[] = [];
  const asCommon = ofKind(text, url, file, 'commonjs', (one) => missed.push(one));
  const isCommon = asCommon !== undefined || missed.length === 0;
  const result = isCommon ? asCommon : ofKind(text, url, file, 'module', cannotSee);
  if (isCommon) for (const one of missed) cannotSee(one);
  if (result === undefined || isTypeScript) return result;
  return { source: result.source };
}

/** @returns `undefined`: Node will do that, or will say why it cannot */
function withoutTypes(text: string, file: string, cannotSee: CannotSee): string | undefined {
  const strip = (nodeModule as { stripTypeScriptTypes?: Strip }).stripTypeScriptTypes;
  const features = process.features as { typescript?: unknown };
  // Transformed, lines and columns are others.
  if (strip !== undefined && features.typescript !== 'transform') {
    try {
      return silently(() => strip(text, { mode: 'strip' }));
    } catch {
      // Node says the same, with the place.
    }
  }
  cannotSee(`${file}: loads and stores of this module, whose types cannot be stripped`);
  return undefined;
}

/** Without the warning that what is called is new in Node. */
function silently<T>(call: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return call();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The same for a CommonJS module, by its file. */
export function instrumentedFile(file: string, source: string, cannotSee: CannotSee): string {
  if (!isProgram(file, cannotSee)) return source;
  return ofKind(source, pathToFileURL(file).href, file, 'commonjs', cannotSee)?.source ?? source;
}
