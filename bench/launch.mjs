/** Starts a program of bench/ on ranks: builds what is missing, then does as `onesided run` does, in this terminal. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildWhatIsMissing, root } from './build.mjs';

/**
 * @param {string} program its path in bench/, without the ending
 * @param {{ ranks?: string, kind?: string, run?: Record<string, string>, args: readonly string[] }} options `kind`:
 * processes, threads; where the addon is missing, threads. `run`: options of `onesided run`
 */
export function launch(program, { ranks, kind, run: options = {}, args }) {
  buildWhatIsMissing();
  const run = [
    ...[join(root, 'dist/cli/main.js'), 'run', '--no-prefix'],
    ...(ranks === undefined ? [] : ['-n', ranks]),
    ...(kind === undefined ? [] : ['--ranks', kind]),
    ...Object.entries(options).flatMap(([option, value]) => [`--${option}`, value]),
    ...[join(root, `build/programs/bench/${program}.js`), '--', ...args],
  ];
  const launcher = spawn(process.execPath, run, { stdio: 'inherit' });
  // The launcher gets the terminal's signals itself, and passes them on to the ranks; this waits for it.
  for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});
  process.on('SIGTERM', () => launcher.kill('SIGTERM'));
  launcher.on('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}
