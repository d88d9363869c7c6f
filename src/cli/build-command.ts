/** `onesided build`: compiles the addon from the package's own sources, into the user's cache. */
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cachedAddon } from '../addon.ts';
import { nativeStatus } from '../native.ts';
import { packageFolder } from '../place.ts';
import { type Command, readOptions, UsageError } from './command.ts';

/** native/compile.mjs. */
interface Compiler {
  compile(out: string): { readonly binary: string; readonly reason?: undefined } | { readonly reason: string };
}

const NO_HOME = 'you have no home folder; set XDG_CACHE_HOME to a folder of your own';

export const build: Command = {
  summary: 'compile the native addon, which runs ranks as processes',
  usage: `Usage: onesided build

Compiles the native addon from this package's sources. Needs Linux, a C++17 compiler and CMake, and says what is \
missing.
Downloads nothing. With libibverbs' header (apt-get install libibverbs-dev), the addon supports RDMA devices.

The addon goes into your cache folder, under this version of onesided and this kind of machine:
  ${cachedAddon() ?? NO_HOME}
All your projects find it there, also after "npm ci".`,

  async run(args) {
    const { positionals } = readOptions(args, {});
    if (positionals.length > 0) throw new UsageError(`unexpected argument '${positionals[0]}'`);
    if (process.platform !== 'linux') return refuse(`it needs Linux, and this is ${process.platform}`);
    const file = join(packageFolder(), 'native', 'compile.mjs');
    const { compile } = (await import(pathToFileURL(file).href)) as Compiler;
    const to = cachedAddon();
    if (to === undefined) return refuse(NO_HOME);
    const folder = mkdtempSync(join(tmpdir(), 'onesided-build-'));
    try {
      process.stderr.write('onesided: compiling the native addon; this takes up to a minute\n');
      const made = compile(folder);
      if (made.reason !== undefined) return refuse(made.reason);
      install(made.binary, to);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const { loaded, path, reason } = nativeStatus();
    if (!loaded) {
      process.stderr.write(`onesided: the compiled addon does not load: ${reason}\n`);
      return 1;
    }
    process.stdout.write(`${to}\n`);
    if (path !== to) process.stderr.write(`onesided: ${path} takes precedence over it\n`);
    return 0;
  },
};

function refuse(reason: string): number {
  process.stderr.write(`onesided: cannot compile the native addon: ${reason}. Without it, ranks can run as threads.\n`);
  return 1;
}

/** Whole or not at all: other processes may be loading what is there. */
function install(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  const aside = `${to}.${process.pid}`;
  try {
    copyFileSync(from, aside);
    renameSync(aside, to);
  } finally {
    rmSync(aside, { force: true });
  }
}
