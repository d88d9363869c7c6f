/** Starts a program of bench/ on ranks: builds what is missing, then does as `onesided run` does, in this terminal. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildWhatIsMissing, root } from './build.mjs';

/**
 * @param {string} program its path in bench/, without the ending
 * @param {{ ranks: string, kind?: string, trace?: string, args: readonly string[] }} options `kind`: processes,
 * threads; where the addon is missing, threads. `trace`: the file for a trace
 */
export function launch(program, { ranks, kind, trace, args }) {
  buildWhatIsMissing();
  const run = [
    ...[join(root, 'dist/cli/main.js'), 'run', '-n', ranks, '--no-prefix'],
    ...(kind === undefined ? [] : ['--ranks', kind]),
    ...(trace === undefined ? [] : ['--trace', trace]),
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
