/**
 * Where this package's files are: its own modules or bundles, as they were installed, or all of them in another
 * program's bundle.
 */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * This module's own file; in a bundle, the bundle's. A bundle in CommonJS has no `import.meta`, and `__filename`
 * instead.
 */
function ownFile(): string {
  const url = (import.meta as { url?: string }).url;
  return url === undefined ? __filename : fileURLToPath(url);
}

/**
 * Whether this module has become a part of a file that is not the package's own: those are named by scripts/build.mjs.
 */
export function bundled(): boolean {
  return !/^(place\.[jt]s|onesided-(library|command|races)\.js)$/.test(basename(ownFile()));
}

/** The folder of this module, `src/` or `dist/`; in a bundle, the bundle's. */
export function moduleFolder(): string {
  return dirname(ownFile());
}

/** The folder of the package: the one above `src/` or `dist/`. Not in a bundle. */
export function packageFolder(): string {
  return dirname(moduleFolder());
}

/**
 * The file of a module of this package that is started by its path, as a worker thread:
 * `start/control-worker`, without its ending. In a bundle it is a bundle of its own, beside the first, and
 * bears the last part of that name. `undefined` if neither is there.
 */
export function moduleFile(name: string): string | undefined {
  const endings = bundled() ? ['.js', '.mjs', '.cjs'] : ['.js', '.ts'];
  const below = bundled() ? basename(name) : name;
  return endings.map((ending) => join(moduleFolder(), `${below}${ending}`)).find((file) => existsSync(file));
}

/**
 * Where the library keeps files of this user: `onesided` in `$XDG_CACHE_HOME`, or in `~/.cache`. `undefined` for a user
 * without a home.
 */
export function userCacheFolder(): string | undefined {
  let cache = process.env['XDG_CACHE_HOME'];
  if (cache === undefined || !isAbsolute(cache)) {
    try {
      cache = join(homedir(), '.cache');
    } catch {
      return undefined;
    }
  }
  return join(cache, 'onesided');
}
