/** Where this package's files are: its modules as they were installed, or all of them in one bundle. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The folder of the package: the one above `src/` or `dist/`. In a bundle, the one above the bundle's own folder.
 *
 * A function, since a bundle in CommonJS has no `import.meta`: its file is named by `__filename` there.
 */
export function packageFolder(): string {
  return dirname(moduleFolder());
}

/** The folder of this module, `src/` or `dist/`; in a bundle, the bundle's. */
export function moduleFolder(): string {
  const url = (import.meta as { url?: string }).url;
  return dirname(url === undefined ? __filename : fileURLToPath(url));
}

/**
 * The file of a module of this package that is started by its path, as a worker thread: `comm/bootstrap/control-worker`, without its ending.
 * In a bundle it is a bundle of its own, beside the first, and bears the last part of that name. `undefined` if neither is there.
 */
export function moduleFile(name: string): string | undefined {
  const folder = moduleFolder();
  const [last] = name.split('/').slice(-1);
  const inPackage = ['.js', '.ts'].map((ending) => join(folder, `${name}${ending}`));
  const inBundle = ['.js', '.mjs', '.cjs'].map((ending) => join(folder, `${last}${ending}`));
  return [...inPackage, ...inBundle].find((file) => existsSync(file));
}
