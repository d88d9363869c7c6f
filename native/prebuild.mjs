/**
 * Makes the prebuilt addons of the package: `prebuilds/linux-x64-glibc/onesided.node`,
 * `prebuilds/linux-arm64-glibc/onesided.node`.
 *
 *     node native/prebuild.mjs          for this machine, and for the other architecture if its compiler is installed
 *     node native/prebuild.mjs --all    both, with RDMA, or it fails: what is published
 *
 * For this machine it is the clone's own build. For the other one: `apt-get install g++-aarch64-linux-gnu` (or
 * `g++-x86-64-linux-gnu`). RDMA needs libibverbs' header at compile time (`apt-get install libibverbs-dev`).
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildInClone, HEADERS } from './build.mjs';
import { compile, headerFolders } from './compile.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const TARGETS = {
  x64: { processor: 'x86_64', compiler: 'x86_64-linux-gnu-g++', machine: 'Advanced Micro Devices X86-64' },
  arm64: { processor: 'aarch64', compiler: 'aarch64-linux-gnu-g++', machine: 'AArch64' },
};
/** The glibc that Node's own binaries need since version 18. */
const NEWEST_GLIBC = [2, 28];

/**
 * `ONESIDED_PREBUILD=x64`: only for that architecture.
 *
 * @param {boolean} all fail if one cannot be made, or lacks RDMA
 * @returns {string[]} what was made: `linux-x64-glibc`, …
 */
export function prebuild(all) {
  rmSync(join(root, 'prebuilds'), { recursive: true, force: true });
  const made = [];
  const only = process.env['ONESIDED_PREBUILD'];
  for (const [arch, target] of Object.entries(TARGETS)) {
    if (!all && only !== undefined && only !== arch) continue;
    const { binary, reason } = arch === process.arch ? buildInClone() : cross(arch, target);
    const missing = HEADERS.find((header) => !existsSync(header));
    const lacking = reason ?? (all && missing ? `${missing} is missing, so it would lack a provider` : undefined);
    if (lacking !== undefined) {
      console.error(`prebuilt addon for linux-${arch}: not made: ${lacking}`);
      if (all) process.exit(1);
      continue;
    }
    check(binary, target.machine);
    const name = `linux-${arch}-glibc`;
    const folder = join(root, 'prebuilds', name);
    mkdirSync(folder, { recursive: true });
    copyFileSync(binary, join(folder, 'onesided.node'));
    made.push(name);
  }
  return made;
}

/** For another architecture, whose compiler has its own headers; those of libibverbs and libfabric are the same on all. */
function cross(arch, { processor, compiler }) {
  const out = join(root, 'build', 'cross', arch);
  const include = headerFolders() ?? [];
  const folder = join(out, 'include');
  mkdirSync(folder, { recursive: true });
  for (const header of HEADERS.filter(existsSync)) {
    const link = join(folder, basename(dirname(header)));
    rmSync(link, { force: true });
    symlinkSync(dirname(header), link);
  }
  include.push(folder);
  return compile(out, {
    CMAKE_SYSTEM_NAME: 'Linux',
    CMAKE_SYSTEM_PROCESSOR: processor,
    CMAKE_CXX_COMPILER: compiler,
    CMAKE_JS_INC: include.join(';'),
  });
}

/**
 * An addon that would not load elsewhere is not made: for the wrong machine, or one that needs more than every Node
 * does.
 */
function check(binary, machine) {
  const { stdout, error } = spawnSync('readelf', ['-W', '-h', '-d', '--dyn-syms', binary], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    env: { ...process.env, LC_ALL: 'C' },
  });
  if (error !== undefined) stop(binary, `cannot be checked: ${error.message}`);
  if (!stdout.includes(machine)) stop(binary, `is not for ${machine}`);
  const libraries = [...stdout.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name);
  const unexpected = libraries.filter((name) => !/^(libc\.so\.6|libgcc_s\.so\.1|ld-linux.*)$/.test(name));
  if (unexpected.length > 0) stop(binary, `needs ${unexpected.join(', ')}`);
  for (const [, name, major, minor] of stdout.matchAll(/(\S+)@GLIBC_(\d+)\.(\d+)/g)) {
    const newer = Number(major) - NEWEST_GLIBC[0] || Number(minor) - NEWEST_GLIBC[1];
    if (newer > 0) stop(binary, `needs ${name} of glibc ${major}.${minor}; old_glibc.cc can give it an older one`);
  }
}

function stop(binary, reason) {
  console.error(`prebuilt addon: ${binary} ${reason}`);
  process.exit(1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const made = prebuild(process.argv.includes('--all'));
  console.log(`prebuilt addons: ${made.join(', ') || 'none'}`);
}
