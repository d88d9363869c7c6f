/** Which provider connects the ranks: what `ONESIDED_PROVIDER` says. */
import { RmaError, show } from '../errors.ts';
import type { Native } from '../native.ts';
import type { ProviderKind } from '../providers/provider-kind.ts';
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

/** The provider, if it connects ranks of several hosts. */
export function distantProvider(): (ProviderKind & Required<Pick<ProviderKind, 'openDistant'>>) | undefined {
  const provider: ProviderKind | undefined = providerNamed(asked());
  const { openDistant } = provider ?? {};
  return provider && openDistant && { ...provider, openDistant };
}
