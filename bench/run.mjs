/**
 * `npm run bench`: builds what is missing, then runs main.ts, which says what its options are; with `--micro` the
 * programs of micro/ instead, with `--types` types.ts, with `--filter service` those of
 * service/.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildWhatIsMissing, root } from './build.mjs';

buildWhatIsMissing();
const at = process.argv.indexOf('--filter');
const filter = at < 0 ? undefined : process.argv[at + 1];
if (process.argv.includes('--micro')) {
  const folder = join(root, 'build/programs/bench/micro');
  for (const name of readdirSync(join(root, 'bench/micro')).sort()) {
    console.log(`\n${name}`);
    const { status } = spawnSync(process.execPath, [join(folder, name.replace(/\.ts$/, '.js'))], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
} else if (process.argv.includes('--types')) {
  await import('../build/programs/bench/types.js');
} else if (filter?.startsWith('service')) {
  await import('../build/programs/bench/service/main.js');
} else {
  await import('../build/programs/bench/main.js');
}
