/** BSP2 on processes or threads: `--units=`, `--each=`, `--delivery=`, `--counts=`, `--seed=`, `--programs=`. */
import type { BspOptions } from 'onesided/bsp';
import { unitCases } from './support/bsp-units-cases.ts';
import { argument, runCases } from './support/cases.ts';

const given = Object.fromEntries(
  ['delivery', 'counts'].flatMap((name) => {
    const value = argument(name);
    return value === undefined ? [] : [[name, value]];
  }),
) as BspOptions;
const units = argument('units') ?? 'hosts';

await runCases(
  unitCases({
    ...given,
    units: units === 'hosts' ? units : Number(units),
    each: Number(argument('each')),
    seed: Number(argument('seed') ?? 1),
    programs: Number(argument('programs') ?? 10),
    blocks: true,
  }),
);
