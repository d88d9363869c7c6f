/** `onesided info`: what this installation can do on this machine, and why it cannot do the rest. */
import { availableParallelism, release } from 'node:os';
import { type AddonAttempt, cachedAddon } from '../addon.ts';
import { loadNative, nativeStatus, type RdmaDevice } from '../native.ts';
import { rdmaDevices } from '../providers/rdma-core/devices.ts';
import { VERSION } from '../version.ts';
import { type Command, readOptions, UsageError } from './command.ts';

interface Availability {
  readonly available: boolean;
  /** Why not, and what to do. */
  readonly reason?: string;
}

interface Info {
  readonly version: string;
  readonly node: string;
  readonly platform: string;
  readonly cores: number;
  readonly addon: Availability & {
    readonly path?: string;
    /** Where it was looked for, in this order; without `failure`: loaded. */
    readonly attempts: readonly AddonAttempt[];
    /** Where `onesided build` puts it. */
    readonly cache?: string;
  };
  readonly providers: {
    readonly emulator: { readonly processes: Availability; readonly threads: Availability };
    readonly 'rdma-core': Availability & { readonly devices: readonly RdmaDevice[] };
  };
  /** What brings ranks together that `onesided run` has not started: mpiexec and srun by PMI, mpirun by PMIx. */
  readonly managers: { readonly pmi: Availability; readonly pmix: Availability };
  /** The ranks that `onesided run` starts unless it is told otherwise. */
  readonly defaultRanks: 'processes' | 'threads';
}

export const info: Command = {
  summary: 'show what works on this machine, and why the rest does not',
  usage: `Usage: onesided info [--json]

Shows the version, the machine, whether the native addon is loaded, and which providers and launchers are available.`,

  run(args) {
    const { values, positionals } = readOptions(args, { json: { type: 'boolean' } });
    if (positionals.length > 0) throw new UsageError(`unexpected argument '${positionals[0]}'`);
    const found = gather();
    process.stdout.write(`${values.json === true ? JSON.stringify(found, null, 2) : describe(found)}\n`);
    return 0;
  },
};

function gather(): Info {
  const { loaded, path, reason, attempts } = nativeStatus();
  const { devices, reason: reasonOfRdma } = rdmaDevices();
  const needsAddon: Availability = { available: false, reason: 'needs the native addon' };
  const pmixReason = loadNative()?.pmixReason();
  const cache = cachedAddon();
  const places = { attempts, ...(cache === undefined ? {} : { cache }) };
  const addon: Info['addon'] = loaded
    ? { available: true, path: path!, ...places }
    : { available: false, reason: reason!, ...places };
  return {
    version: VERSION,
    node: process.versions.node,
    platform: `${process.platform}-${process.arch} ${release()}`,
    cores: availableParallelism(),
    addon,
    providers: {
      emulator: {
        processes: loaded ? { available: true } : needsAddon,
        threads: { available: true },
      },
      'rdma-core': {
        ...(reasonOfRdma === undefined ? { available: true } : { available: false, reason: reasonOfRdma }),
        devices,
      },
    },
    managers: {
      pmi: loaded ? { available: true } : needsAddon,
      pmix: !loaded
        ? needsAddon
        : pmixReason === undefined
          ? { available: true }
          : { available: false, reason: pmixReason },
    },
    defaultRanks: loaded ? 'processes' : 'threads',
  };
}

/** Name and value of a line for each port, and one for each of its GIDs. */
function linesOf(device: RdmaDevice): [string, string][] {
  if (device.refused !== undefined) return [[`  ${device.name}`, `cannot be opened: ${device.refused}`]];
  return (device.ports ?? []).flatMap(({ port, state, linkLayer, activeMtu, gids }) => [
    [
      `  ${device.name}`,
      `port ${port} ${state}, ${linkLayer}, MTU ${activeMtu}, firmware ${device.firmware || 'unknown'}`,
    ],
    ...gids.map(({ index, gid, type }): [string, string] => ['', `GID ${index}: ${gid}${type ? ` (${type})` : ''}`]),
  ]);
}

function describe({ version, node, platform, cores, addon, providers, managers, defaultRanks }: Info): string {
  const say = ({ available, reason }: Availability): string => (available ? 'yes' : `no: ${reason}`);
  const lines = [
    ['onesided', version],
    ['Node', node],
    ['platform', platform],
    ['cores', String(cores)],
    ['addon', addon.available ? `loaded from ${addon.path}` : `not loaded: ${addon.reason!.split('; tried')[0]}`],
    ...addon.attempts.flatMap(({ path, place, failure }) =>
      failure === undefined ? [] : [['', `tried ${place}, ${path}: ${failure}`]],
    ),
    ...(addon.available ? [] : [['', 'compile it with "npx onesided build"; without it, ranks run as worker threads']]),
    ...(addon.cache === undefined ? [] : [['', `"npx onesided build" writes ${addon.cache}`]]),
    ['emulator', ''],
    ['  processes', say(providers.emulator.processes)],
    ['  threads', say(providers.emulator.threads)],
    ['rdma-core', say(providers['rdma-core'])],
    ...providers['rdma-core'].devices.flatMap(linesOf),
    ['launchers', ''],
    ['  PMI', `mpiexec, srun: ${say(managers.pmi)}`],
    ['  PMIx', `mpirun, srun: ${say(managers.pmix)}`],
    ['ranks', `${defaultRanks} by default`],
  ];
  return lines.map(([name, value]) => `${name.padEnd(12)}${value}`.trimEnd()).join('\n');
}
