/** Which provider connects the ranks: what `ONESIDED_PROVIDER` says. */
import { RmaError, show } from '../errors.ts';
import type { Native } from '../native.ts';
import { DEFAULT_PROVIDER, PROVIDER_NAMES, providerNamed } from '../providers/provider-kinds.ts';
import type { Context } from '../verbs/device.ts';

function asked(): string {
  return process.env['ONESIDED_PROVIDER'] ?? DEFAULT_PROVIDER;
}

/** The provider's context of a rank that is a process. Errors: `ERR_PROVIDER_UNAVAILABLE`. */
export function openProcessContext(native: Native, table: Int32Array, rank: number, size: number): Context {
  const provider = providerNamed(asked());
  if (provider !== undefined) return provider.open(native, table, rank, size);
  throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `ONESIDED_PROVIDER must be ${PROVIDER_NAMES}, not ${show(asked())}`);
}

/** Whether the job connects ranks of several hosts. */
export function spansHosts(): boolean {
  return providerNamed(asked())?.spansHosts === true;
}

/**
 * Whether ranks of one host put and get by loads and stores, in a job on several hosts. `ONESIDED_NEIGHBOURS=device`:
 * no, as with all others.
 */
export function neighboursMap(): boolean {
  const how = process.env['ONESIDED_NEIGHBOURS'] ?? 'memory';
  if (how === 'memory' || how === 'device') return how === 'memory';
  throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `ONESIDED_NEIGHBOURS must be memory or device, not ${show(how)}`);
}
