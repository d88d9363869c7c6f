/** Where a process is: which processes share memory with it, and at which address its host is reached. */
import { readFileSync, readlinkSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import { argumentTypeError, show } from '../errors.ts';

/** The variable by which a launcher tells its ranks at which address other hosts reach theirs. */
export const ADDRESS_VARIABLE = 'ONESIDED_ADDRESS';

/** The variable by which a launcher tells its ranks how their host is called. */
export const HOST_VARIABLE = 'ONESIDED_HOST';

/** For messages. */
export function hostName(): string {
  return (process.env[HOST_VARIABLE] || hostname()).slice(0, 64);
}

/**
 * Processes with the same one can open each other's descriptors: same boot, same process numbers, same user. Those of
 * another network are in another container, for which the same process numbers are an exception.
 */
export function placeOfProcess(): string {
  return `${boot()} ${namespace('pid')} ${namespace('net')} ${process.getuid!()}`;
}

/** The machine of a place, or rather its boot: processes with the same one share its cores. */
export function machineOf(place: string): string {
  return place.split(' ', 1)[0];
}

/** Of this process; a kernel without such namespaces has one network for all. */
function namespace(kind: 'pid' | 'net'): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch (error) {
    if (kind === 'net') return '';
    throw error;
  }
}

function boot(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

/**
 * This host's addresses that mean something elsewhere: those of IPv4 first, and of each kind those of interfaces by
 * which packets to anywhere leave.
 */
export function outsideAddresses(): string[] {
  const all = networkInterfaces();
  const routes = defaultInterfaces();
  const names = [...new Set([...routes, ...Object.keys(all)])];
  const outside = names
    .flatMap((name) => all[name] ?? [])
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address));
  return ['IPv4', 'IPv6'].flatMap((family) =>
    outside.filter((one) => one.family === family).map(({ address }) => address),
  );
}

/** The interfaces of default routes, as the kernel lists them. */
function defaultInterfaces(): string[] {
  try {
    const lines = readFileSync('/proc/net/route', 'latin1').split('\n').slice(1);
    return lines.map((line) => line.split('\t')).flatMap(([name, to]) => (to === '00000000' ? [name] : []));
  } catch {
    return [];
  }
}

/** The address that the environment gives. Errors: `ERR_ARG` (it is none). */
export function givenAddress(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const given = env[ADDRESS_VARIABLE];
  if (given === undefined || given === '') return undefined;
  if (isIP(given) === 0) {
    throw argumentTypeError(
      `${ADDRESS_VARIABLE} must be an address of IP at which other hosts reach ${hostName()}, such as 10.0.0.1, ` +
        `not ${show(given)}`,
    );
  }
  return given;
}

/**
 * The address at which other hosts of a job are likely to reach this one: the one that the environment gives; else the
 * one at which ssh has reached it (the third word of `SSH_CONNECTION`), if it is one of this host's own and not the
 * loopback's: the variable is inherited by what is started elsewhere; else the first that means something elsewhere.
 */
export function hostAddress(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const given = givenAddress(env);
  if (given !== undefined) return given;
  const outside = outsideAddresses();
  const reached = env['SSH_CONNECTION']?.split(' ')[2];
  return reached !== undefined && outside.includes(reached) ? reached : outside[0];
}

/** Whether this host has an address. */
export function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((list) => list?.some((one) => one.address === address));
}

/**
 * An address of this host's own, at which others are likely to reach it: the one that the environment gives, if it is
 * one (others may know a host by the address of a gateway); else the one by which it has reached one of them; else as
 * {@link hostAddress}; the loopback's if there is no other.
 */
export function ownAddress(reached?: string): string {
  const likeliest = [givenAddress(), reached, hostAddress({ ...process.env, [ADDRESS_VARIABLE]: '' })];
  return likeliest.find((address) => address !== undefined && isOwnAddress(address)) ?? '127.0.0.1';
}

/** An address of IPv4 as it is, where a socket for both kinds says it in the manner of IPv6. */
export function plainAddress(address: string | undefined): string | undefined {
  return address?.replace(/^::ffff:(?=\d+\.)/i, '');
}
