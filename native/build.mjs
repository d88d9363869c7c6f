/**
 * Builds the addon of a clone with cmake-js if it is missing, older than its sources, or built before the headers of
 * libibverbs or libfabric came or went. Downloads nothing.
 *
 *     node native/build.mjs            build if needed
 *     node native/build.mjs --force    build in any case
 *
 * The library works without the addon (ranks as worker threads), so where it cannot be built this says why and
 * succeeds, unless --force asked for it.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const native = dirname(fileURLToPath(import.meta.url));
const root = dirname(native);
const out = join(root, 'build', 'native');
const binary = join(out, 'Release', 'onesided.node');
/** What the addon was built of, besides its sources: the package's version, and the optional headers. */
const ingredientsFile = join(out, 'ingredients');
/** Optional: rdma.cc and fabric.cc include them if the compiler finds them. */
const headerAt = (name) =>
  ['/usr/include', '/usr/local/include'].map((folder) => join(folder, name)).find((header) => existsSync(header));
export const HEADERS = ['infiniband/verbs.h', 'rdma/fabric.h'].map((name) => headerAt(name) ?? `/usr/include/${name}`);

/**
 * @param {{ force?: boolean }} [options]
 * @returns {{ binary: string, reason?: undefined } | { binary?: undefined, reason: string }}
 */
export function buildInClone({ force = false } = {}) {
  if (process.platform !== 'linux') return { reason: `it needs Linux, this is ${process.platform}` };
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const ingredients = `${version}\n${HEADERS.filter(existsSync).join('\n')}`;
  // From scratch: what was compiled without a header does not depend on it for the build tool, and would stay as it is.
  const anew = force || !existsSync(ingredientsFile) || readFileSync(ingredientsFile, 'utf8') !== ingredients;
  if (!anew && !stale()) return { binary };
  for (const tool of ['cmake', 'c++']) {
    if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).error !== undefined) {
      return { reason: `${tool} is not installed` };
    }
  }
  let cmakeJs;
  try {
    cmakeJs = createRequire(import.meta.url).resolve('cmake-js/bin/cmake-js');
  } catch {
    return { reason: 'cmake-js is not installed: run "npm ci"' };
  }
  const args = [cmakeJs, anew ? 'rebuild' : 'compile', '--directory', native, '--out', out, '--log-level', 'error'];
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) return { reason: 'the compiler failed, see above' };
  writeFileSync(ingredientsFile, ingredients);
  console.log(`native addon: built ${binary}`);
  return { binary };
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function stale() {
  const built = modified(binary);
  const sources = readdirSync(native).filter((name) => /\.(cc|h|txt|map)$/.test(name));
  return sources.some((name) => modified(join(native, name)) > built);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const force = process.argv.includes('--force');
  const { reason } = buildInClone({ force });
  if (reason !== undefined) {
    console.error(`native addon: not built: ${reason}. Ranks can run as worker threads without it.`);
    process.exit(force ? 1 : 0);
  }
}
