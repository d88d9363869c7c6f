/** What completions are polled into, alike in all providers. */
import type { WorkCompletions } from './completion-queue.ts';

/** Room for `n` completions. */
export function workCompletions(n: number): WorkCompletions {
  return {
    wrId: new Float64Array(n),
    status: new Uint8Array(n),
    opcode: new Uint8Array(n),
    flags: new Uint8Array(n),
    byteLen: new Uint32Array(n),
    immData: new Uint32Array(n),
    qpNum: new Uint32Array(n),
    srcQp: new Uint32Array(n),
  };
}
