/**
 * Builds the addon with cmake-js if it is missing, older than its sources, or built before libibverbs' header came or went. Downloads nothing.
 *
 *     node native/build.mjs            build if needed
 *     node native/build.mjs --force    build in any case
 *     node native/build.mjs --prebuild build if needed, and copy it to prebuilds/ for packing
 *
 * The library works without the addon (ranks as worker threads), so where it cannot be built this says why and
 * succeeds, unless --force or --prebuild asked for it.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const native = dirname(fileURLToPath(import.meta.url));
const root = dirname(native);
const out = join(root, 'build', 'native');
const binary = join(out, 'Release', 'onesided.node');
/** With which optional headers the addon was built. */
const headersFile = join(out, 'headers');
/** Optional: rdma.cc includes it if the compiler finds it. */
const headers = ['/usr/include', '/usr/local/include']
  .map((folder) => join(folder, 'infiniband/verbs.h'))
  .filter((header) => existsSync(header))
  .join('\n');
const demanded = process.argv.includes('--force') || process.argv.includes('--prebuild');

function give(reason) {
  console.error(`native addon: not built: ${reason}. Ranks can run as worker threads without it.`);
  process.exit(demanded ? 1 : 0);
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function stale() {
  const built = modified(binary);
  return readdirSync(native).some((name) => modified(join(native, name)) > built);
}

/** From scratch: what was compiled without a header does not depend on it for the build tool, and would stay as it is. */
const anew =
  process.argv.includes('--force') || !existsSync(headersFile) || readFileSync(headersFile, 'utf8') !== headers;

if (process.platform !== 'linux') give(`it needs Linux, this is ${process.platform}`);

if (anew || stale()) {
  for (const tool of ['cmake', 'c++']) {
    if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).error !== undefined) give(`${tool} is not installed`);
  }
  let cmakeJs;
  try {
    cmakeJs = createRequire(import.meta.url).resolve('cmake-js/bin/cmake-js');
  } catch {
    give('cmake-js is not installed (npm install cmake-js node-addon-api node-api-headers)');
  }
  const args = [cmakeJs, anew ? 'rebuild' : 'compile', '--directory', native, '--out', out, '--log-level', 'error'];
  const { status } = spawnSync(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) give('the compiler failed, see above');
  writeFileSync(headersFile, headers);
  console.log(`native addon: built ${binary}`);
}

if (process.argv.includes('--prebuild')) {
  const folder = join(root, 'prebuilds', `${process.platform}-${process.arch}`);
  mkdirSync(folder, { recursive: true });
  copyFileSync(binary, join(folder, 'onesided.node'));
}
