/** The providers that connect processes and threads. The ranks of a modelled fabric are tasks (`runTasks`). */
import { emulator } from './emulator/emulator-provider.ts';
import { libfabric } from './libfabric/libfabric-provider.ts';
import type { Availability, ProviderKind } from './provider-kind.ts';
import { rdmaCore } from './rdma-core/rdma-provider.ts';

export const PROVIDERS = [emulator, rdmaCore, libfabric] as const;

export type ProviderName = (typeof PROVIDERS)[number]['name'];

export const DEFAULT_PROVIDER: ProviderName = PROVIDERS.find(({ isDefault }) => isDefault)!.name;

/** For refusals. */
export const PROVIDER_NAMES: string = PROVIDERS.map(({ name }) => name).join(' or ');

/** Those that connect ranks of several hosts, for refusals. */
export const DISTANT_PROVIDER_NAMES: string = PROVIDERS.filter(({ openDistant }) => openDistant !== undefined)
  .map(({ name }) => name)
  .join(' or ');

/** The provider of this name; `undefined` if there is none. */
export function providerNamed(name: string): (typeof PROVIDERS)[number] | undefined {
  return PROVIDERS.find((kind) => kind.name === name);
}

/** Whether a provider connects ranks of several hosts; of one that there is not, its rank says so. */
export function connectsHosts(name: string | undefined): boolean {
  const kind: ProviderKind | undefined = PROVIDERS.find((one) => one.name === name);
  return kind === undefined || kind.openDistant !== undefined;
}

/** Those that connect ranks of several hosts, by name: why one cannot be used on this host, or nothing if it can. */
export function distantProviders(): Readonly<Record<string, string | null>> {
  const kinds: readonly ProviderKind[] = PROVIDERS;
  const distant = kinds.filter(({ openDistant }) => openDistant !== undefined);
  return Object.fromEntries(
    distant.map(({ name, report }) => {
      const { available, reason = 'it is not available' } = report().json as Availability;
      return [name, available ? null : reason];
    }),
  );
}
