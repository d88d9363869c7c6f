/**
 * Exit codes that the system would take for success.
 *
 * A process ends with eight bits of what it gives `process.exit`, and a worker thread with 32: 256, or 2^32, become 0.
 * A rank under a launcher ends with 1 instead, and notes its code in the control memory, for the message that names it.
 */
import { type Control, declareFailed, FailKind } from '../job/control-region.ts';

const MOST_NOTED = 2 ** 31 - 1;

/** Has this rank end with a failure if its exit code says so, though not in its last eight bits. */
export function keepExitCode(control: Control, rank: number): void {
  process.on('exit', (code) => {
    if (code === 0 || (code & 255) !== 0) return;
    if (Math.abs(code) <= MOST_NOTED) declareFailed(control, rank, FailKind.EXIT_CODE, code);
    process.exitCode = 1;
  });
}
