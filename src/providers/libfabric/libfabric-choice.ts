/** Which of libfabric's providers a rank opens, and at which address. */
import { readdirSync } from 'node:fs';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { RmaError, show } from '../../errors.ts';

export interface FabricChoice {
  /** libfabric's name, `verbs;ofi_rxm`; or `tcp`, the best that it has for TCP. */
  readonly provider: string;
  /** An address of this host; empty: the provider has its own. */
  readonly address: string;
}

/** TCP by whatever this version of libfabric does it best (native/fabric_endpoint.cc). */
const TCP = 'tcp';
/** These find a network by an address of IP. */
const BY_ADDRESS = /^(tcp|net|sockets|udp|verbs)\b/;

/** Providers that say of themselves that they have what is needed, and have not: what happens with them. */
export const UNUSABLE: ReadonlyMap<string, string> = new Map([
  ['net', 'it refuses every atomic; net;ofi_rxm and tcp do not'],
  ['udp;ofi_rxd', 'it ends the process at the first message (libfabric 1.17)'],
]);

/**
 * What `ONESIDED_DEVICE` names: `libfabric:provider:address`, an address of this host or the name of one of its
 * interfaces. What is left out is chosen: EFA where there is a device of it, else TCP.
 * @param text the variable's value
 * @param own the address of this host that does if none is named
 * Errors: `ERR_PROVIDER_UNAVAILABLE`.
 */
export function chooseFabric(text: string, own: string): FabricChoice {
  const [, named, rest] = /^libfabric:([^:]*)(?::(.*))?$/s.exec(text) ?? [undefined, '', text];
  const provider = named || (rest ? TCP : standard());
  const why = UNUSABLE.get(provider);
  if (why !== undefined)
    throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `provider libfabric: its ${provider} cannot be used: ${why}`);
  const address = rest ? addressNamed(rest) : BY_ADDRESS.test(provider) ? own : '';
  return { provider, address };
}

/** The names of EFA's devices begin so. */
function standard(): string {
  try {
    if (readdirSync('/sys/class/infiniband').some((name) => /^(efa|rdmap)/.test(name))) return 'efa';
  } catch {}
  return TCP;
}

function addressNamed(text: string): string {
  if (isIP(text) !== 0) return text;
  const addresses = usable(text);
  if (addresses.length > 0) return addresses[0];
  throw new RmaError(
    'ERR_PROVIDER_UNAVAILABLE',
    `provider libfabric: ONESIDED_DEVICE=${show(text)} is neither an address nor an interface that has one; ` +
      `this host has ${Object.keys(networkInterfaces()).join(', ')} (or name libfabric:provider:address)`,
  );
}

/** The addresses of an interface, IPv4 before IPv6. */
function usable(name: string): string[] {
  const all = networkInterfaces()[name] ?? [];
  const routed = all.filter(({ address }) => !address.startsWith('fe80:'));
  return ['IPv4', 'IPv6'].flatMap((kind) =>
    routed.filter(({ family }) => family === kind).map(({ address }) => address),
  );
}
