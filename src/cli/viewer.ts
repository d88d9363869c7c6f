/** Opens a file in the program that the system has for it. */
import { spawn } from 'node:child_process';

/** Milliseconds after which an opener that has not ended is taken for a viewer: without a desktop, xdg-open is one. */
const PATIENCE_MS = 3000;

interface Opener {
  readonly name: string;
  readonly args: readonly string[];
  readonly verbatim: boolean;
}

/** @param file its whole path: it begins with no dash, so no opener takes it for an option */
export function openerOf(platform: NodeJS.Platform, file: string): Opener {
  if (platform === 'darwin') return { name: 'open', args: [file], verbatim: false };
  // A command of the shell, which takes the first text in quotes for the title of a window.
  if (platform === 'win32') return { name: 'cmd', args: ['/d', '/s', '/c', `"start "" "${file}""`], verbatim: true };
  return { name: 'xdg-open', args: [file], verbatim: false };
}

/** @returns why it was not opened; `undefined` if it was */
export function openInViewer(file: string): Promise<string | undefined> {
  const { name, args, verbatim } = openerOf(process.platform, file);
  return new Promise((resolve) => {
    // A viewer outlives the command, and says nothing in its terminal.
    const child = spawn(name, args, { stdio: 'ignore', detached: true, windowsVerbatimArguments: verbatim });
    const timer = setTimeout(() => {
      child.unref();
      resolve(undefined);
    }, PATIENCE_MS);
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve(error.code === 'ENOENT' ? `there is no ${name} here` : `${name} cannot be started (${error.code})`);
    });
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      resolve(code === 0 ? undefined : `${name} ended with ${signal ?? code}`);
    });
  });
}
