/**
 * Passes the signals that this process receives on to the ranks, which are in process groups of their own and do not
 * get the terminal's.
 */
import type { Supervisor } from './supervisor.ts';

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @returns a function that stops passing on */
export function passSignalsOn(supervisor: Supervisor): () => void {
  const interrupt = (signal: NodeJS.Signals): void => supervisor.interrupt(signal);
  // The ranks stop first, then this process. SIGSTOP, because SIGTSTP does not stop a process whose group has no
  // terminal.
  const suspend = (): void => {
    supervisor.forward('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  };
  const resume = (): void => supervisor.forward('SIGCONT');
  for (const signal of ENDING) process.on(signal, interrupt);
  process.on('SIGTSTP', suspend);
  process.on('SIGCONT', resume);
  return () => {
    for (const signal of ENDING) process.off(signal, interrupt);
    process.off('SIGTSTP', suspend);
    process.off('SIGCONT', resume);
  };
}
