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

export const build: Command = {
  summary: 'compile the native addon, which ranks that are processes need',
  usage: `Usage: onesided build

Compiles the native addon from this package's sources. Needs Linux, a C++17 compiler and CMake; says what is missing.
Downloads nothing. With libibverbs' header (apt-get install libibverbs-dev), RDMA devices can be used.

The addon goes into your cache folder, for this version of onesided and this kind of machine:
  ${cachedAddon() ?? 'none: you have no home folder; set XDG_CACHE_HOME to a folder of your own'}
There it is found by every project, also after "npm ci".`,

  async run(args) {
    const { positionals } = readOptions(args, {});
    if (positionals.length > 0) throw new UsageError(`unexpected argument '${positionals[0]}'`);
    if (process.platform !== 'linux') return refuse(`it needs Linux, this is ${process.platform}`);
    const file = join(packageFolder(), 'native', 'compile.mjs');
    const { compile } = (await import(pathToFileURL(file).href)) as Compiler;
    const to = cachedAddon();
    if (to === undefined) return refuse('you have no home folder; set XDG_CACHE_HOME to a folder of your own');
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
      process.stderr.write(`onesided: the addon was compiled, but does not load: ${reason}\n`);
      return 1;
    }
    process.stdout.write(`${to}\n`);
    if (path !== to) process.stderr.write(`onesided: ${path} is loaded before it\n`);
    return 0;
  },
};

function refuse(reason: string): number {
  process.stderr.write(
    `onesided: the native addon was not compiled: ${reason}. Ranks can run as threads without it.\n`,
  );
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
