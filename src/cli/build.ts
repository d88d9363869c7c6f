/** `onesided build`: compiles the addon from the package's own sources. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { nativeStatus } from '../native.ts';
import { type Command, readOptions, UsageError } from './command.ts';

export const build: Command = {
  summary: 'compile the native addon, which ranks that are processes need',
  usage: `Usage: onesided build

Compiles the native addon from this package's sources. Needs Linux, a C++17 compiler, CMake, and the packages cmake-js,
node-addon-api and node-api-headers; says what is missing. Downloads nothing.`,

  run(args) {
    const { positionals } = readOptions(args, {});
    if (positionals.length > 0) throw new UsageError(`unexpected argument '${positionals[0]}'`);
    const script = fileURLToPath(new URL('../../native/build.mjs', import.meta.url));
    const { status } = spawnSync(process.execPath, [script, '--force'], { stdio: 'inherit' });
    if (status !== 0) return 1;
    const { loaded, reason } = nativeStatus();
    if (loaded) return 0;
    process.stderr.write(`onesided: the addon was built, but it is not available: ${reason}\n`);
    return 1;
  },
};
