/** Where a process is: which processes share memory with it, and at which address its host is reached. */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';

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

/** This host's addresses that mean something elsewhere, those of IPv4 first. */
export function outsideAddresses(): string[] {
  const interfaces = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const outside = interfaces.filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address));
  return ['IPv4', 'IPv6'].flatMap((family) =>
    outside.filter((one) => one.family === family).map(({ address }) => address),
  );
}

/**
 * The address at which other hosts of a job are likely to reach this one: the one that the environment gives; else the
 * one at which ssh has reached it (the third word of `SSH_CONNECTION`), if it is one of this host's own and not the
 * loopback's: the variable is inherited by what is started elsewhere; else the first that means something elsewhere.
 */
export function hostAddress(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const given = env[ADDRESS_VARIABLE];
  if (given !== undefined && given !== '') return given;
  const outside = outsideAddresses();
  const reached = env['SSH_CONNECTION']?.split(' ')[2];
  return reached !== undefined && outside.includes(reached) ? reached : outside[0];
}
