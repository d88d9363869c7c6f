/**
 * `npm run bench`: builds what is missing, then runs main.ts, which says what its options are; with `--micro` the
 * programs of micro/ instead, with `--types` types.ts.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildWhatIsMissing, root } from './build.mjs';

buildWhatIsMissing();
if (process.argv.includes('--micro')) {
  const folder = join(root, 'build/programs/bench/micro');
  for (const name of readdirSync(join(root, 'bench/micro')).sort()) {
    console.log(`\n${name}`);
    const { status } = spawnSync(process.execPath, [join(folder, name.replace(/\.ts$/, '.js'))], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
} else if (process.argv.includes('--types')) {
  await import('../build/programs/bench/types.js');
} else {
  await import('../build/programs/bench/main.js');
}
