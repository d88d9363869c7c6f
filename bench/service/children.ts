/** Processes that the service rows start: workers that answer, and one that keeps a core busy. */
import { type ChildProcess, spawn } from 'node:child_process';

/** What a message of a worker has under this name: the next one that has it. Fails if the worker ends. */
export function heard<T>(child: Pick<ChildProcess, 'on' | 'off' | 'once'>, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a worker ended with ${code}`));
    const take = (message: Record<string, T>): void => {
      if (message[what] === undefined) return;
      child.off('message', take);
      child.off('exit', ended);
      resolve(message[what]);
    };
    child.on('message', take);
    child.once('exit', ended);
  });
}

/** Until its parent is gone, too. */
const HOG = 'for (const parent = process.ppid; process.ppid === parent; );';

/** Keeps a core busy, if asked to, while `body` runs. */
export async function beside<T>(busy: boolean, body: () => Promise<T>): Promise<T> {
  const hog = busy ? spawn(process.execPath, ['-e', HOG], { stdio: 'ignore' }) : undefined;
  try {
    return await body();
  } finally {
    hog?.kill('SIGKILL');
  }
}
