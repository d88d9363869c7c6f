/** `onesided info`: what this installation can do on this machine, and why it cannot do the rest. */
import { availableParallelism, release } from 'node:os';
import { type AddonAttempt, addonAdvice, cachedAddon } from '../addon.ts';
import { cpuQuota } from '../cores.ts';
import { loadNative, nativeStatus } from '../native.ts';
import { type Availability, availability, type ProviderReport, showAvailability } from '../providers/provider-kind.ts';
import { PROVIDERS, type ProviderName } from '../providers/provider-kinds.ts';
import { VERSION } from '../version.ts';
import { type Command, readOptions, UsageError } from './command.ts';
import { listed } from './service-command.ts';

interface Info {
  readonly version: string;
  readonly node: string;
  readonly platform: string;
  readonly cores: number;
  /** How much processor time at a time a container lets its processes use, in cores. */
  readonly quota?: number;
  readonly addon: Availability & {
    readonly path?: string;
    /** Where it was looked for, in this order; without `failure`: loaded. */
    readonly attempts: readonly AddonAttempt[];
    /** Where `onesided build` puts it. */
    readonly cache?: string;
  };
  readonly providers: Readonly<Record<ProviderName, object>>;
  /** What brings together ranks that `onesided run` has not started: mpiexec and srun by PMI, mpirun by PMIx. */
  readonly managers: { readonly pmi: Availability; readonly pmix: Availability };
  /** The ranks that `onesided run` starts unless it is told otherwise. */
  readonly defaultRanks: 'processes' | 'threads';
}

export const info: Command = {
  summary: 'show what works on this machine, and why the rest does not',
  usage: `Usage: onesided info [--services] [--json]

Shows the version, the machine, whether the native addon is loaded, and which providers and launchers are available.
With --services, this user's services instead (also: onesided service).`,

  run(args) {
    const { values, positionals } = readOptions(args, { json: { type: 'boolean' }, services: { type: 'boolean' } });
    if (positionals.length > 0) throw new UsageError(`unexpected argument '${positionals[0]}'`);
    if (values.services === true) {
      process.stdout.write(`${listed(values.json === true)}\n`);
      return 0;
    }
    const reports = PROVIDERS.map((provider) => [provider.name, provider.report()] as const);
    const found = gather(reports);
    const lines = reports.flatMap(([, report]) => report.lines);
    const text = values.json === true ? JSON.stringify(found, null, 2) : describe(found, lines);
    process.stdout.write(`${text}\n`);
    return 0;
  },
};

/** @param reports what each provider says of itself */
function gather(reports: readonly (readonly [ProviderName, ProviderReport])[]): Info {
  const { loaded, path, reason, attempts } = nativeStatus();
  const withAddon = availability(loaded ? undefined : 'needs the native addon');
  const cache = process.platform === 'linux' ? cachedAddon() : undefined;
  const places = { attempts, ...(cache === undefined ? {} : { cache }) };
  const addon: Info['addon'] = loaded
    ? { available: true, path: path!, ...places }
    : { available: false, reason: reason!, ...places };
  const quota = process.platform === 'linux' ? cpuQuota() : undefined;
  return {
    version: VERSION,
    node: process.versions.node,
    platform: `${process.platform}-${process.arch} ${release()}`,
    cores: availableParallelism(),
    ...(quota !== undefined && { quota }),
    addon,
    providers: Object.fromEntries(reports.map(([name, { json }]) => [name, json])) as Info['providers'],
    managers: {
      pmi: withAddon,
      pmix: loaded ? availability(loadNative()?.pmixReason()) : withAddon,
    },
    defaultRanks: loaded ? 'processes' : 'threads',
  };
}

/** @param ofProviders their lines */
function describe(
  { version, node, platform, cores, quota, addon, managers, defaultRanks }: Info,
  ofProviders: ProviderReport['lines'],
): string {
  const lines = [
    ['onesided', version],
    ['Node', node],
    ['platform', platform],
    ['cores', quota === undefined ? String(cores) : `${cores}, of which a quota lets ${quota} be used`],
    ['addon', addon.available ? `loaded from ${addon.path}` : `not loaded: ${addon.reason!.split('; tried')[0]}`],
    ...addon.attempts.flatMap(({ path, place, failure }) =>
      failure === undefined ? [] : [['', `tried ${place}, ${path}: ${failure}`]],
    ),
    ...(addon.available ? [] : [['', `${addonAdvice()}; without it, ranks run as worker threads`]]),
    ...(addon.cache === undefined ? [] : [['', `"npx onesided build" writes ${addon.cache}`]]),
    ...ofProviders,
    ['launchers', ''],
    ['  PMI', `mpiexec, srun: ${showAvailability(managers.pmi)}`],
    ['  PMIx', `mpirun, srun: ${showAvailability(managers.pmix)}`],
    ['ranks', `${defaultRanks} by default`],
  ];
  return lines.map(([name, value]) => `${name.padEnd(12)}${value}`.trimEnd()).join('\n');
}
