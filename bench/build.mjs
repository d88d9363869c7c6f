/**
 * Builds what a program of bench/ needs and what is missing or older than its sources: the addon, where it can be
 * built, and the TypeScript.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export function buildWhatIsMissing() {
  run('native/build.mjs');
  // tsc writes its notes last, and beside its output: a build that was interrupted, or removed, counts as missing.
  const tsc = ['scripts/tsc.mjs', '-p', 'tsconfig.programs.json', '--noCheck'];
  for (const [command, project, notes, folders] of [
    [['scripts/build.mjs'], 'tsconfig.build.json', 'dist/.tsbuildinfo', ['src']],
    [tsc, 'tsconfig.programs.json', 'build/programs/.tsbuildinfo', ['src', 'bench', 'test/ranks']],
  ]) {
    const built = modified(join(root, notes));
    const sources = Math.max(modified(join(root, command[0])), modified(join(root, project)), ...folders.map(newest));
    if (sources < built) continue;
    console.log(`building ${project}`);
    run(...command);
    // Which it leaves alone where a changed file says the same as before.
    utimesSync(join(root, notes), new Date(), new Date());
  }
}

function run(script, ...args) {
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], { cwd: root, stdio: 'inherit' });
  if (status !== 0) {
    console.error(`${script} ${args.join(' ')} failed, see above; if packages are missing, run "npm ci"`);
    process.exit(1);
  }
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** When the newest TypeScript file below a folder was changed. */
function newest(folder) {
  const path = join(root, folder);
  if (modified(path) === 0) return 0;
  const files = readdirSync(path, { recursive: true, withFileTypes: true });
  return Math.max(
    0,
    ...files
      .filter(({ name }) => name.endsWith('.ts'))
      .map(({ parentPath, path, name }) => modified(join(parentPath ?? path, name))),
  );
}
