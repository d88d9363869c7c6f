/**
 * Compiles the addon by CMake, without anything from npm: `onesided build` in an installed package, and prebuilt
 * addons. Downloads nothing.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const native = dirname(fileURLToPath(import.meta.url));

/** What CMake needs besides a C++ compiler. */
const TOOLS = [
  ['cmake', 'CMake'],
  ['make', 'make'],
];

/**
 * The folders of the headers of node-addon-api and Node-API: the package has copies, a clone has the packages.
 * @returns {string[] | undefined} `undefined` where there are none
 */
export function headerFolders() {
  const copies = join(native, 'include');
  if (existsSync(copies)) return [copies];
  const { resolve } = createRequire(import.meta.url);
  try {
    const api = dirname(resolve('node-addon-api/package.json'));
    const node = dirname(resolve('node-api-headers/package.json'));
    return [api, join(node, 'include')];
  } catch {
    return undefined;
  }
}

/**
 * @param {string} out a folder for what is compiled; it may hold an earlier build
 * @param {Record<string, string>} [settings] of CMake: `CMAKE_CXX_COMPILER`, …
 * @returns {{ binary: string } | { reason: string }} the addon's file, or what is missing
 */
export function compile(out, settings = {}) {
  const compiler = settings['CMAKE_CXX_COMPILER'] ?? process.env['CXX'] ?? 'c++';
  const tools = [...TOOLS, [compiler.split(' ')[0], 'a C++17 compiler']];
  const missing = tools.filter(([tool]) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).error !== undefined);
  if (missing.length > 0) {
    const names = missing.map(([tool, what]) => (tool === what ? tool : `${what} (${tool})`)).join(' and ');
    return { reason: `${names} cannot be found; on Debian and Ubuntu: apt-get install cmake g++ make` };
  }
  const include = headerFolders();
  if (include === undefined) return { reason: 'the headers of node-addon-api are missing; in a clone, run "npm ci"' };
  const values = { CMAKE_BUILD_TYPE: 'Release', CMAKE_JS_INC: include.join(';'), ...settings };
  const definitions = Object.entries(values).map(([name, value]) => `-D${name}=${value}`);
  for (const args of [
    ['-S', native, '-B', out, ...definitions],
    ['--build', out, '--parallel', '2'],
  ]) {
    const { status, stdout, stderr } = spawnSync('cmake', args, { encoding: 'utf8', maxBuffer: 1 << 26 });
    if (status === 0) continue;
    process.stderr.write(`${stdout}${stderr}`);
    return { reason: `"cmake ${args[0]} …" failed, see above` };
  }
  return { binary: join(out, 'onesided.node') };
}
