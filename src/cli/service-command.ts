/** `onesided service`: the services of this user on this machine. */

import { RmaError } from '../errors.ts';
import { loadNative, type Native, nativeStatus } from '../native.ts';
import { listServices, removeService, type ServiceReport } from '../service/service-list.ts';
import { type Command, readOptions, UsageError } from './command.ts';

const CALL = 'onesided service';

export const service: Command = {
  summary: 'list services, with their members and memory; remove one',
  usage: `Usage: onesided service [--json]
       onesided service remove NAME

Lists the services of this user on this machine: their members, what they share, and how many bytes that is.
"remove" takes a service's name away: members go on with it, and processes that join begin a new one.`,

  run(args) {
    const { values, positionals } = readOptions(args, { json: { type: 'boolean' } });
    const [what, name, ...more] = positionals;
    if (what === undefined) return print(listed(values.json === true));
    if (what !== 'remove') throw new UsageError(`unexpected argument '${what}'`);
    if (name === undefined) throw new UsageError('which service? onesided service remove NAME');
    if (more.length > 0) throw new UsageError(`unexpected argument '${more[0]}'`);
    removeService(addon(), CALL, name);
    return print(`the name ${name} is free; members that are there keep what they had`);
  },
};

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function addon(): Native {
  const native = loadNative();
  if (native !== undefined) return native;
  throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `services need the addon: ${nativeStatus().reason}`);
}

/** What `onesided service` and `onesided info --services` print. */
export function listed(isJson: boolean): string {
  const services = listServices(addon(), CALL);
  if (isJson) return JSON.stringify(services, null, 2);
  return services.length === 0 ? 'no services' : services.map(describe).join('\n');
}

function describe({ name, trouble, places, members, bytes, shared }: ServiceReport): string {
  if (trouble !== undefined) return `${name}: ${trouble}`;
  const things = shared!.map((thing) => `  ${thing.kind.padEnd(8)} ${thing.name}  ${inBytes(thing.bytes)}`);
  const who = members!.map(({ place, pid }) => `${place}: process ${pid}`).join(', ') || 'none, kept for a while';
  return [`${name}: ${members!.length} of ${places} places, ${inBytes(bytes!)}`, `  members  ${who}`, ...things].join(
    '\n',
  );
}

function inBytes(bytes: number): string {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
