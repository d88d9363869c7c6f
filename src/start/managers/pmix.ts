/**
 * PMIx, spoken by libpmix: Open MPI's `mpirun`, and `srun --mpi=pmix`. The environment names the job in
 * `PMIX_NAMESPACE`.
 */
import { RmaError } from '../../errors.ts';
import type { Native } from '../../native.ts';
import { type ProcessManager, removeVariables } from './manager.ts';

/** Whether the environment names one. */
export function inPmix(): boolean {
  return process.env['PMIX_NAMESPACE'] !== undefined;
}

/** That manager. */
export function findPmix(native: Native): ProcessManager {
  const name = 'mpirun (PMIx)';
  let joined: { rank: number; size: number };
  try {
    joined = native.pmixInit();
  } catch (cause) {
    throw new RmaError(
      'ERR_COMM',
      `init: PMIX_NAMESPACE is set, but onesided cannot connect to ${name}: ${(cause as Error).message}; ` +
        'unset PMIX_NAMESPACE to run alone',
      { cause },
    );
  }
  return {
    rank: joined.rank,
    size: joined.size,
    name,
    exchange: async (card, { signal }) => {
      const cards = native.pmixExchange('onesided', card, joined.size);
      // What libpmix waits for cannot be called off; it goes on in its own thread, and this rank without it.
      let onAbort: (() => void) | undefined;
      const aborted = new Promise<never>((_, reject) => {
        onAbort = () => reject(signal.reason);
        if (signal.aborted) onAbort();
        signal.addEventListener('abort', onAbort, { once: true });
      });
      try {
        return await Promise.race([cards, aborted]);
      } catch (error) {
        if (error instanceof RmaError || signal.aborted) throw error;
        throw new RmaError('ERR_COMM', `init: ${name} failed to connect the ranks: ${(error as Error).message}`, {
          cause: error,
        });
      } finally {
        signal.removeEventListener('abort', onAbort!);
      }
    },
    forget: () => removeVariables('PMIX_NAMESPACE', 'PMIX_RANK', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'),
  };
}
