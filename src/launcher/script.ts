/**
 * Checks that a script can be run before any rank is started, so that there is one message and not one from each rank.
 */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { argumentTypeError, show } from '../errors.ts';

/**
 * The absolute path of a script.
 * @param execArgv options for Node that the ranks get
 * Throws an error with code `ERR_ARG` and one line that says what is wrong and what to do.
 */
export function resolveScript(
  script: string,
  execArgv: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): string {
  const path = resolve(script);
  let isDirectory: boolean;
  try {
    isDirectory = statSync(path).isDirectory();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' || code === 'ENOTDIR' ? 'does not exist' : `cannot be read (${code})`;
    throw argumentTypeError(`the script ${show(script)} ${why}; looked for ${path}`);
  }
  if (isDirectory) throw argumentTypeError(`the script ${show(script)} is a directory; name the file to run`);
  if (/\.[mc]?ts$/.test(path) && !runsTypeScript(execArgv, env)) {
    throw argumentTypeError(
      `Node ${process.versions.node} does not run TypeScript (${script}): compile it first, use Node 22.18 or newer, ` +
        'or give the ranks a loader, as in NODE_OPTIONS="--import tsx"',
    );
  }
  return path;
}

/** Options of Node that can make it run TypeScript. */
const LOADERS = ['--import', '--require', '-r', '--loader', '--experimental-loader'];
const STRIPPERS = ['--experimental-strip-types', '--experimental-transform-types'];

/** Whether the ranks can run TypeScript: Node strips types itself, or a loader was asked for. */
function runsTypeScript(execArgv: readonly string[], env: NodeJS.ProcessEnv): boolean {
  // `process.features.typescript` exists from Node 22.10 on: false, 'strip' or 'transform'.
  if ((process.features as { typescript?: unknown }).typescript) return true;
  const options = [...execArgv, ...(env['NODE_OPTIONS'] ?? '').split(/\s+/)];
  return options.some((option) => [...LOADERS, ...STRIPPERS].includes(option.split('=', 1)[0]));
}
