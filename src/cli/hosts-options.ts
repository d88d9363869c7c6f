/** `onesided run --hosts`: which hosts, how they are reached, and where their ranks work. */
import { isAbsolute, resolve } from 'node:path';
import { type HostRanks, ranksOfHosts, readHostFile, readHosts, sizeOfHosts } from '../launcher/hosts/host-list.ts';
import { splitCommand } from '../launcher/hosts/remote-shell.ts';
import { MAX_RANKS } from '../launcher/job-start.ts';
import { UsageError } from './command.ts';

export const HOSTS_OPTIONS = {
  hosts: { type: 'string' },
  hostfile: { type: 'string' },
  ssh: { type: 'string' },
  wdir: { type: 'string' },
} as const;

export const HOSTS_USAGE = `  --hosts a:4,b:4        run 4 ranks on host a and 4 on host b; -n N takes the first N
  --hostfile FILE        the same from a file with a line for each host: "a slots=4" or "a:4"
  --ssh COMMAND          reach a host by COMMAND HOST sh, or with HOST in place of {} (default: ssh, without questions)
  --wdir DIR             the directory in which the ranks start on every host (default: this one)`;

/** What the command line says of hosts. */
export interface HostsValues {
  readonly hosts?: string | undefined;
  readonly hostfile?: string | undefined;
  readonly ssh?: string | undefined;
  readonly wdir?: string | undefined;
}

/** What stands of it in `HostsOptions`. */
export interface HostsRequest {
  readonly size: number;
  readonly hosts: readonly HostRanks[];
  readonly ssh: readonly string[] | undefined;
  readonly folder: string;
}

/** @param size the value of -n, if it was given */
export function readHostsOptions(values: HostsValues, size: number | undefined): HostsRequest | undefined {
  const { hosts, hostfile, ssh, wdir } = values;
  if (hosts === undefined && hostfile === undefined) {
    for (const [name, value] of Object.entries({ ssh, wdir }))
      if (value !== undefined) throw new UsageError(`--${name} needs --hosts or --hostfile`);
    return undefined;
  }
  if (hosts !== undefined && hostfile !== undefined) throw new UsageError('give --hosts or --hostfile, not both');
  const list = hosts === undefined ? readHostFile(hostfile!) : readHosts(hosts);
  const slots = sizeOfHosts(list);
  if (size !== undefined && size > slots)
    throw new UsageError(`-n ${size} is more than the ${slots} ranks of the hosts; give hosts more, as in a:${size}`);
  if ((size ?? slots) > MAX_RANKS)
    throw new UsageError(`the hosts have ${slots} ranks, and a job at most ${MAX_RANKS}; -n N takes the first N`);
  if (wdir !== undefined && !isAbsolute(wdir))
    throw new UsageError(`--wdir must be an absolute path, the same on every host, not '${wdir}'`);
  return {
    size: size ?? slots,
    hosts: ranksOfHosts(list, size),
    ssh: ssh === undefined ? undefined : splitCommand(ssh),
    folder: wdir ?? resolve('.'),
  };
}
